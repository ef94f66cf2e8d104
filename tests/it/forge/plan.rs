//! The plan as a comment of a pull request.

use serde_json::{Value, json};

use super::hosted::Hosted;
use crate::scenarios::{NODES, environment};

fn comments(hosted: &Hosted, number: u64) -> Vec<(u64, String)> {
    let comments = hosted.api("GET", &format!("issues/{number}/comments"), None);
    let read = |value: &Value| (value["id"].as_u64().unwrap(), value["body"].as_str().unwrap().to_owned());
    comments.as_array().unwrap().iter().map(read).collect()
}

/// A change is opened, gets the comment, is updated, merged, and its commit turns green when the nodes are warm.
#[test]
fn a_change_gets_one_comment_and_turns_green_when_the_nodes_are_warm() {
    let hosted = Hosted::new("pr", "");
    let world = &hosted.world;
    let image = world.image("notebook");
    world.push_images(&[], &[&format!("{image}:1"), &format!("{image}:2")]);
    let file = "environments/research/geo.yaml";
    world.commit(&[(file, &environment(&[("notebook", &format!("{image}:1"))], ""))], "Add");
    let _controller = hosted.controller();
    let (first, _) = hosted.wait_for_status("success");

    hosted.git(&["fetch", "-q", "origin"]);
    hosted.git(&["checkout", "-q", "-b", "change", "origin/main"]);
    let edit = |path: &str, text: &str| std::fs::write(world.path("clone").join(path), text).unwrap();
    let push = |message: &str| {
        hosted.git(&["add", "-A"]);
        hosted.git(&["commit", "-q", "-m", message]);
        hosted.git(&["push", "-q", "origin", "change"]);
    };
    edit(file, &environment(&[("notebook", &format!("{image}:2"))], ""));
    push("Newer image");
    let opened = hosted.api("POST", "pulls", Some(&json!({"title": "Newer", "head": "change", "base": "main"})));
    let number = opened["number"].as_u64().unwrap();
    let plan = || {
        let number = number.to_string();
        let base = ["plan", "--from", "main", "--to", "change", "--comment", "--pull-request", &number];
        let output = hosted.larder(&[&base[..], &["--dry-run", "server", "--output", "markdown"]].concat());
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };

    let (code, said) = plan();
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("comment created"), "{said}");
    let posted = comments(&hosted, number);
    assert_eq!(posted.len(), 1);
    assert!(
        posted[0].1.contains(&format!("{image}:2")) && posted[0].1.contains("locked after the merge"),
        "{posted:?}"
    );
    let row = posted[0].1.lines().find(|line| line.starts_with("| `research/geo` | changed")).unwrap();
    assert!(row.ends_with(&format!("| {} |", NODES.len())), "the cluster's nodes are counted: {row}");

    let other = environment(&[("notebook", &format!("{image}:1"))], "");
    edit("environments/research/other.yaml", &other);
    push("And another");
    let (_, said) = plan();
    assert!(said.contains("comment updated"), "{said}");
    let updated = comments(&hosted, number);
    assert_eq!((updated.len(), updated[0].0), (1, posted[0].0), "the same comment");
    assert!(updated[0].1.contains("research/other"), "{updated:?}");
    let (_, said) = plan();
    assert!(said.contains("comment unchanged"), "{said}");

    hosted.merge(number);
    let (tip, description) = crate::scenarios::world::wait_for("the merged change to be green", || {
        let found = hosted.wait_for_status("success");
        (found.0 != first && found.1.contains("4 of 4")).then_some(found)
    });
    assert_eq!(description, "4 of 4 images are on their nodes");
    let states: Vec<_> = hosted.statuses(&tip).into_iter().map(|(state, _)| state).collect();
    assert!(states.contains(&"pending".to_owned()), "it was pending while the nodes pulled: {states:?}");
}

#[test]
fn a_change_that_breaks_larder_yaml_is_told_in_its_comment() {
    let hosted = Hosted::new("pr-broken", "");
    hosted.git(&["checkout", "-q", "-b", "change"]);
    std::fs::write(
        hosted.world.path("clone/larder.yaml"),
        "apiVersion: larder.dev/v1alpha1\nkind: Settings\nspec: {tenant: {}}\n",
    )
    .unwrap();
    hosted.git(&["commit", "-q", "-a", "-m", "@everyone break it"]);
    hosted.git(&["push", "-q", "origin", "change"]);
    let opened = hosted.api("POST", "pulls", Some(&json!({"title": "Break", "head": "change", "base": "main"})));
    let number = opened["number"].as_u64().unwrap();
    let output = hosted.larder(&[
        "plan",
        "--from",
        "main",
        "--to",
        "change",
        "--comment",
        "--pull-request",
        &number.to_string(),
    ]);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let posted = comments(&hosted, number);
    assert!(posted.len() == 1 && posted[0].1.contains("tenants"), "{posted:?}");
}
