//! Lock mode `branch`: the lock as one pull request.

use serde_json::Value;

use super::hosted::Hosted;
use crate::scenarios::{
    environment,
    world::{problems_of, state},
};

fn digest(digests: &std::collections::BTreeMap<String, String>, reference: &str) -> String {
    digests[reference].chars().take("sha256:".len() + 12).collect()
}

/// A pull request is made, updated, merged; another one is made and closed again when it is moot.
/// Where lock changes wait to be merged, in words; empty when none do.
fn proposal(report: &Value) -> String {
    let notes = report["notes"].as_array().into_iter().flatten();
    notes.filter(|note| note["reason"] == "ProposalWaiting").map(|note| note["message"].to_string()).collect()
}

#[test]
fn lock_changes_are_one_pull_request_that_is_kept_up_to_date_and_closed_when_moot() {
    let hosted = Hosted::new("branch", "  lock: {mode: branch}\n");
    let world = &hosted.world;
    let reference = format!("{}:latest", world.image("notebook"));
    let push = |seed: &str| digest(&world.push_images(&["--seed", seed], &[&reference]), &reference);
    let one = push("1");
    world.commit(&[("environments/research/geo.yaml", &environment(&[("notebook", &reference)], ""))], "Add");
    let base = hosted.tip("main");

    // Made, and only once.
    let report = hosted.pass();
    let open = hosted.open_pull_requests();
    assert_eq!(open.len(), 1, "{report:#}");
    assert!(proposal(&report).contains(open[0]["html_url"].as_str().unwrap()), "{report:#}");
    assert_eq!(open[0]["title"], "lock: add research/geo");
    assert!(open[0]["body"].as_str().unwrap().contains(&one), "{}", open[0]["body"]);
    assert_eq!(hosted.tip("main"), base, "nothing is pushed to the tracked branch");
    assert!(world.puller("research/geo").is_none(), "what is not merged is not applied");
    let proposed = hosted.tip("larder/lock");
    hosted.pass();
    assert_eq!(hosted.tip("larder/lock"), proposed, "the same proposal is not made twice");

    // Updated: the tag moves, and so does the tracked branch.
    let two = push("2");
    world.commit(&[("README.md", "hello\n")], "Unrelated");
    hosted.pass();
    let updated = hosted.open_pull_requests();
    assert_eq!(updated.len(), 1);
    assert_eq!(updated[0]["number"], open[0]["number"]);
    assert!(updated[0]["body"].as_str().unwrap().contains(&two), "{}", updated[0]["body"]);
    let commits = hosted.api("GET", &format!("pulls/{}/commits", open[0]["number"]), None);
    assert_eq!(commits.as_array().map(Vec::len), Some(1), "one commit on the new base");

    // Merged: applied, and nothing is left to propose.
    hosted.merge(open[0]["number"].as_u64().unwrap());
    let report = hosted.pass();
    assert_eq!(state(&report, "research/geo"), "Applied", "{report:#}");
    assert_eq!(proposal(&report), "");
    assert!(world.puller("research/geo").unwrap().to_string().contains(&two));
    assert!(hosted.open_pull_requests().is_empty());

    // Moot: the tag moves there and back.
    push("3");
    hosted.pass();
    let moot = hosted.open_pull_requests();
    assert_eq!(moot.len(), 1);
    push("2");
    hosted.pass();
    assert!(hosted.open_pull_requests().is_empty());
    let closed = hosted.api("GET", &format!("pulls/{}", moot[0]["number"]), None);
    assert_eq!((&closed["state"], &closed["merged"]), (&Value::from("closed"), &Value::from(false)));
    let branches = hosted.api("GET", "branches", None);
    let names: Vec<&Value> = branches.as_array().unwrap().iter().map(|branch| &branch["name"]).collect();
    assert_eq!(names, ["main"]);
}

#[test]
fn what_a_person_closed_or_pushed_is_respected() {
    let hosted = Hosted::new("rejected", "  lock: {mode: branch}\n");
    let world = &hosted.world;
    let reference = format!("{}:latest", world.image("notebook"));
    world.push_images(&["--seed", "1"], &[&reference]);
    world.commit(&[("environments/research/geo.yaml", &environment(&[("notebook", &reference)], ""))], "Add");
    hosted.pass();
    let open = hosted.open_pull_requests();
    let number = open[0]["number"].as_u64().unwrap();
    hosted.api("PATCH", &format!("pulls/{number}"), Some(&serde_json::json!({"state": "closed"})));
    hosted.pass();
    assert!(hosted.open_pull_requests().is_empty(), "a person has said no");
    world.push_images(&["--seed", "2"], &[&reference]);
    hosted.pass();
    assert_eq!(hosted.open_pull_requests().len(), 1, "something else is proposed again");

    // A person works on larder's branch: that is not lost.
    hosted.git(&["fetch", "-q", "origin"]);
    hosted.git(&["checkout", "-q", "-b", "mine", "origin/larder/lock"]);
    hosted.git(&["commit", "-q", "--allow-empty", "-m", "Mine"]);
    hosted.git(&["push", "-q", "origin", "HEAD:larder/lock"]);
    let mine = hosted.tip("larder/lock");
    let report = hosted.pass();
    let problem = problems_of(&report, "LockRefused");
    assert!(problem.contains("was not made by larder"), "{report:#}");
    assert_eq!(hosted.tip("larder/lock"), mine);
}
