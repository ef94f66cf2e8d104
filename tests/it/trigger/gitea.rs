//! A real Gitea that tells larder about a push: applied on the real cluster, with a poll once an hour.

use std::process::Command;

use serde_json::json;

use super::peer::{self, SECRET, passes};
use crate::{
    forge::{gitea::Gitea, hosted::Hosted},
    scenarios::{
        environment,
        world::{World, run, wait_for},
    },
};

#[test]
fn a_push_to_gitea_is_applied_without_waiting_for_the_poll() {
    let hosted = Hosted::new("webhook", "");
    let world = &hosted.world;
    let reference = format!("{}:1", world.image("notebook"));
    world.push_images(&[], &[&reference]);
    let url = format!("{}/{}.git", hosted.gitea.url, hosted.repository);
    let more = ["--repo", &url, "--git-username", "bot", "--git-password-file", "token"];
    let controller = peer::listening(world, &more);
    let address = peer::address(&controller);
    passes(&controller);
    let hook = |secret: &str| {
        let url = format!("http://{address}/hooks/gitea");
        let config = json!({"url": url, "content_type": "json", "secret": secret});
        let hook = json!({"type": "gitea", "active": true, "events": ["push"], "branch_filter": "*", "config": config});
        hosted.api("POST", "hooks", Some(&hook))["id"].to_string()
    };
    let wrong = hook("another-secret-123");
    let file =
        |name: &str| (format!("environments/research/{name}.yaml"), environment(&[("notebook", &reference)], ""));
    let count = |outcome: &str| {
        let line = format!("larder_webhooks_total{{sender=\"gitea\",outcome=\"{outcome}\"}} ");
        let metrics = controller.get("/metrics");
        metrics.lines().find_map(|found| found.strip_prefix(&line)?.parse::<f64>().ok()).unwrap_or(0.0)
    };

    let first = file("first");
    world.commit(&[(&first.0, &first.1)], "First");
    wait_for("Gitea's webhook with a wrong secret", || (count("unauthorized") >= 1.0).then_some(()));
    assert_eq!(passes(&controller), 1.0, "it changes nothing");

    hosted.api("DELETE", &format!("hooks/{wrong}"), None);
    hook(SECRET);
    let second = file("second");
    world.commit(&[(&second.0, &second.1)], "Second");
    let commit = hosted.git(&["rev-parse", "HEAD"]);
    for environment in ["research/first", "research/second"] {
        wait_for(&format!("the puller of {environment}:\n{}", controller.log()), || world.puller(environment));
    }
    assert!(controller.log().contains(&commit), "{}", controller.log());
    // Gitea tells about our own lock commit too: no pass.
    wait_for("Gitea's webhook about the lock commit", || (count("told") >= 2.0).then_some(()));
    assert_eq!(passes(&controller), 2.0, "{}", controller.log());
    assert!(!controller.log().contains(SECRET));
}

#[test]
fn an_image_that_is_pushed_to_giteas_own_registry_is_locked_at_once() {
    let gitea = Gitea::shared();
    let world = World::new("packages", &["research"]);
    let host = gitea.url.trim_start_matches("http://");
    let (image, reference) = (world.image("notebook"), format!("{host}/bot/{}:1", world.id));
    let push = |seed: &str| {
        let digest = world.push_images(&["--seed", seed], &[&format!("{image}:1")])[&format!("{image}:1")].clone();
        let mut copy = Command::new("skopeo");
        copy.args(["copy", "-q", "--preserve-digests", "--src-tls-verify=false", "--dest-tls-verify=false"]);
        copy.args(["--dest-creds", "bot:bot-password", &format!("docker://127.0.0.1:5000/{image}:1")]);
        run(copy.arg(format!("docker://{reference}")));
        digest
    };
    let first = push("1");
    let repository = world.repository();
    let controller = peer::listening(&world, &["--repo", &repository, "--target", "dir:out"]);
    let url = format!("http://{}/hooks/gitea", peer::address(&controller));
    let config = json!({"url": url, "content_type": "json", "secret": SECRET});
    let hook = json!({"type": "gitea", "active": true, "events": ["package"], "config": config});
    gitea.api("POST", "user/hooks", Some(&hook));
    let registries = format!("  registries:\n    \"{host}\": {{plainHttp: true}}\n");
    let settings = world.settings(&["research"], "").replace("  registries:\n", &registries);
    let images = environment(&[("notebook", &reference)], "  refresh: 24h\n");
    world.commit(&[("larder.yaml", &settings), ("environments/research/x.yaml", &images)], "Add");
    let locked = || world.git(&["show", "main:lock/research/x.yaml"]);
    wait_for(&format!("the first lock commit:\n{}", controller.log()), || {
        world.git(&["ls-tree", "-r", "--name-only", "main"]).contains("lock/").then_some(())
    });
    assert!(locked().contains(&first), "{}", locked());
    let second = push("2");
    wait_for(&format!("{second} to be locked:\n{}", controller.log()), || locked().contains(&second).then_some(()));
}
