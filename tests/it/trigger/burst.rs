//! Many deliveries are one pass, and nothing that is replayed or made up keeps larder busy.

use std::{process::Command, time::Instant};

use super::peer::{self, SECRET, passes};
use crate::scenarios::{
    environment,
    world::{World, run, script, wait_for},
};

/// A world behind a Git server, so that nothing but webhooks tells of its commits.
fn served(name: &str) -> (World, String) {
    let output = run(Command::new(script("git-server")).arg("up"));
    let folder = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    let mut world = World::new(name, &["research"]);
    world.serve_from(&folder);
    let url = format!("http://127.0.0.1:8418/open/{}.git", world.id);
    (world, url)
}

#[test]
fn a_hundred_deliveries_are_one_pass() {
    let (world, url) = served("burst");
    let reference = format!("{}:1", world.image("notebook"));
    world.push_images(&["--seed", "1"], &[&reference]);
    let controller = peer::listening(&world, &["--repo", &url, "--target", "dir:out"]);
    let address = peer::address(&controller);
    let before = passes(&controller);
    let file = ("environments/research/x.yaml", environment(&[("notebook", &reference)], ""));
    let tip = world.commit(&[(file.0, &file.1)], "Add");
    assert_eq!(passes(&controller), before, "nobody has said anything yet");

    let (started, polls) = (Instant::now(), controller.metric("larder_polls_total"));
    let threads: Vec<_> = (0..10)
        .map(|_| {
            let (address, tip) = (address.clone(), tip.clone());
            std::thread::spawn(move || {
                (0..10).for_each(|_| assert!(matches!(peer::send_push(&address, "main", &tip), 200 | 202)));
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let lock = wait_for("the lock commit", || (world.tip() != tip).then(|| world.tip()));
    wait_for("the pass to end", || (passes(&controller) > before).then_some(()));
    // Our own push, told by the forge, and other branches.
    assert_eq!(peer::send_push(&address, "main", &lock), 202);
    assert_eq!(peer::send_push(&address, "other", &tip), 200);
    let tell = |repository: &str| {
        let headers = [format!("Authorization: Bearer {SECRET}")];
        peer::send(&format!("http://{address}/hooks/registry"), &headers, &peer::pushed(repository, "1"))
    };
    // A tag that nobody uses causes a look, no pass and no request to a registry.
    let looks = || controller.metric("larder_polls_total") - polls;
    let (requests, so_far) = (controller.metric("larder_registry_requests_total"), looks());
    assert_eq!(tell("some/thing"), 202);
    wait_for("a look because of it", || (looks() > so_far).then_some(()));
    assert_eq!(controller.metric("larder_registry_requests_total"), requests);
    assert_eq!(passes(&controller), before + 1.0, "a hundred deliveries were one pass");
    // A registry tells a hundred times that a tag has moved, and it has.
    world.push_images(&["--seed", "2"], &[&reference]);
    let repository = reference.trim_end_matches(":1");
    std::thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| (0..10).for_each(|_| assert_eq!(tell(repository), 202)));
        }
    });
    wait_for("the second lock commit", || (world.tip() != lock).then_some(()));
    wait_for("the pass to end", || (passes(&controller) > before + 1.0).then_some(()));
    // The deliveries may have taken longer than one burst: then one pass more has found nothing.
    let extra = passes(&controller) - before;
    assert!((2.0..=3.0).contains(&extra), "{extra} passes:\n{}", controller.log());
    assert_eq!(world.git(&["rev-list", "--count", &format!("{tip}..main")]), "2", "and two lock commits");
    // Eight at once and two a second is what news may cause, however slow this machine is.
    let allowed = 2.0f64.mul_add(started.elapsed().as_secs_f64(), 9.0);
    assert!(looks() <= allowed, "{} looks, {allowed} are allowed", looks());
    let log = controller.log();
    assert!(!log.contains(SECRET), "{log}");
}

#[test]
fn secrets_that_cannot_be_used_are_told_at_the_start() {
    let world = World::new("no-secret", &["research"]);
    std::fs::write(world.path("short"), "guess-me\n").unwrap();
    let repository = world.repository();
    for (file, message) in [("absent", "cannot be read"), ("short", "less than 16 characters")] {
        let listen = ["--webhook-listen", "127.0.0.1:0", "--webhook-secret-file", file];
        let run = ["run", "--repo", &repository, "--target", "dir:out"];
        let output = world.larder(&[&run[..], &listen[..]].concat()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(message) && said.contains("hint"), "{said}");
        assert!(!said.contains("guess-me"), "{said}");
    }
}

#[test]
fn a_webhook_that_is_faster_than_its_repository_is_not_lost() {
    let (world, url) = served("early");
    let reference = format!("{}:1", world.image("notebook"));
    world.push_images(&[], &[&reference]);
    let controller = peer::listening(&world, &["--repo", &url, "--target", "dir:out", "--follow"]);
    let address = peer::address(&controller);
    let before = passes(&controller);
    let first = world.tip();
    let file = ("environments/research/x.yaml", environment(&[("notebook", &reference)], ""));
    let tip = world.commit(&[(file.0, &file.1)], "Add");
    // The server shows the commit only once larder has looked in vain.
    world.git(&["update-ref", "refs/heads/main", &first]);
    let polls = controller.metric("larder_polls_total");
    assert_eq!(peer::send_push(&address, "main", &tip), 202);
    wait_for("a look", || (controller.metric("larder_polls_total") > polls).then_some(()));
    assert_eq!(passes(&controller), before);
    world.git(&["update-ref", "refs/heads/main", &tip]);
    wait_for("the pass", || (passes(&controller) > before).then_some(()));
}
