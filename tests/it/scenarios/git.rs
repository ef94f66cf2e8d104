//! Other people's pushes, and remotes that refuse ours.

use std::{fs, os::unix::fs::PermissionsExt};

use super::{
    environment,
    world::{World, problems_of, wait_for},
};

pub(super) fn hook(world: &World, name: &str, script: &str) {
    let path = world.path("environments.git/hooks").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Moves the branch while the first push is under way, as someone else's push would; the file `raced` tells of it.
pub(super) fn race(world: &World, from: &str, to: &str) {
    let script = format!(
        "#!/bin/sh\n[ -e raced ] && exit 0\ntouch raced\nunset GIT_QUARANTINE_PATH GIT_OBJECT_DIRECTORY \
         GIT_ALTERNATE_OBJECT_DIRECTORIES\ngit update-ref refs/heads/main {to} {from}\n"
    );
    hook(world, "pre-receive", &script);
}

#[test]
fn a_colleague_who_pushes_during_the_pass_loses_nothing() {
    let world = World::new("race", &["research"]);
    let (mine, theirs) = (format!("{}:1", world.image("mine")), format!("{}:1", world.image("theirs")));
    world.push_images(&[], &[&mine, &theirs]);
    world.commit(&[("environments/research/mine.yaml", &environment(&[("notebook", &mine)], ""))], "Mine");
    let before = world.tip();
    world.commit(&[("environments/research/theirs.yaml", &environment(&[("notebook", &theirs)], ""))], "Theirs");
    let colleague = world.tip();
    // The branch is back at "Mine"; while larder's first push is under way, the colleague's commit arrives.
    world.git(&["update-ref", "refs/heads/main", &before]);
    world.git(&["update-ref", "refs/keep", &colleague]);
    race(&world, &before, &colleague);
    let pass = world.pass(&[]);
    assert!(pass.well, "{:#}\n{}", pass.report, pass.log);
    assert!(world.path("environments.git/raced").exists(), "the race took place");
    assert_eq!(world.git(&["rev-parse", "main~1"]), colleague, "the lock commit is on the colleague's");
    assert_eq!(pass.state("research/theirs"), "Applied", "and the lock was recomputed on it");
    assert_eq!(world.git(&["ls-tree", "-r", "--name-only", "main", "lock/"]).lines().count(), 2);
}

#[test]
fn a_refused_push_leaves_the_old_lock_in_force_and_says_why() {
    let world = World::new("refused", &["research"]);
    let image = world.image("notebook");
    let reference = format!("{image}:latest");
    let old = world.push_images(&["--seed", "1"], &[&reference])[&reference].clone();
    world.commit(&[("environments/research/x.yaml", &environment(&[("notebook", &reference)], ""))], "Add");
    assert!(world.pass(&[]).well);
    let tip = world.tip();
    hook(&world, "pre-receive", "#!/bin/sh\nprintf 'POLICY: a ticket is needed \\033[31mred\\n' >&2\nexit 1\n");
    world.push_images(&["--seed", "2"], &[&reference]);

    // The namespace is emptied, so that what is applied now comes from this pass.
    world.kubectl(&["delete", "daemonsets", "--all", "-n", &world.namespace("research")]);
    let pass = world.pass(&[]);
    assert!(!pass.well);
    assert_eq!(world.tip(), tip);
    let problem = problems_of(&pass.report, "LockRefused");
    assert!(problem.contains("POLICY: a ticket is needed"), "{problem}");
    assert!(!problem.contains("\\u001b"), "control characters are taken out: {problem}");
    let puller = world.puller("research/x").unwrap();
    assert!(puller.to_string().contains(&old), "the old lock is in force: {puller:#}");
    let (_, status) = world.status(&[]);
    assert!(problems_of(&status, "LockRefused").contains("POLICY: a ticket is needed"), "{status:#}");
}

#[test]
fn a_folder_of_a_larger_repository_is_an_environment_repository() {
    let world = World::new("path", &["research"]);
    let reference = format!("{}:1", world.image("notebook"));
    world.push_images(&[], &[&reference]);
    let settings = world.settings(&["research"], "");
    world.commit(
        &[
            ("clusters/eu/larder.yaml", &settings),
            ("clusters/eu/environments/research/x.yaml", &environment(&[("notebook", &reference)], "")),
            ("README.md", "not ours\n"),
        ],
        "A directory a cluster",
    );
    let pass = world.pass(&["--path", "clusters/eu"]);
    assert!(pass.well, "{:#}\n{}", pass.report, pass.log);
    assert_eq!(world.git(&["diff", "--name-only", "main~1", "main"]), "clusters/eu/lock/research/x.yaml");
}

/// Two controllers on one repository, each with objects of its own, converge to one commit a real change.
#[test]
fn two_controllers_share_a_repository() {
    let world = World::new("shared", &["research"]);
    let image = world.image("notebook");
    let reference = format!("{image}:latest");
    world.push_images(&["--seed", "1"], &[&reference]);
    let text = environment(&[("notebook", &reference)], "  refresh: 10s\n");
    world.commit(&[("environments/research/x.yaml", &text)], "Add");
    let commits = || world.git(&["rev-list", "--count", "main"]).parse::<u32>().unwrap();
    let before = commits();

    let controllers = ["one", "two"].map(|folder| world.controller(&["--target", &format!("dir:{folder}")]));
    let locked = |digest: &str| world.git(&["grep", "-h", "digest", "main", "--", "lock/"]).contains(digest);
    wait_for("the first lock", || (commits() > before).then_some(()));
    let new = world.push_images(&["--seed", "2"], &[&reference])[&reference].clone();
    wait_for("the new digest", || locked(&new).then_some(()));

    // Both have asked again since, and both hold the new digest in their directories.
    let resolved = |controller: &super::world::Controller| controller.log().matches("resolved").count();
    let asked = controllers.each_ref().map(resolved);
    wait_for("both to ask again", || {
        let more = controllers.each_ref().map(resolved);
        more.iter().zip(&asked).all(|(more, asked)| more > asked).then_some(())
    });
    for folder in ["one", "two"] {
        let manifests =
            std::process::Command::new("grep").args(["-rc", &new]).arg(world.path(folder)).output().unwrap();
        assert!(manifests.status.success(), "{folder} holds {new}");
    }
    assert_eq!(
        commits(),
        before + 2,
        "one commit for the first lock and one for the change:\n{}",
        world.git(&["log", "--oneline", "main"])
    );
}

/// A reference that failed and is no longer asked for wakes the controller no more, and a branch that is gone is asked for
/// once an interval.
#[test]
fn what_is_mended_or_gone_does_not_keep_the_controller_busy() {
    let world = World::new("busy", &["research"]);
    let reference = format!("{}:1", world.image("notebook"));
    world.push_images(&[], &[&reference]);
    let file = "environments/research/x.yaml";
    let missing = environment(&[("notebook", &format!("{}:1", world.image("missing")))], "");
    world.commit(&[(file, &missing)], "A missing image");
    let controller = world.controller(&["--branch", "main", "--target", "dir:out", "--listen", "127.0.0.1:0"]);
    controller.wait_for_log("failed=1");
    world.commit(&[(file, &environment(&[("notebook", &reference)], ""))], "Mended");
    controller.wait_for_log("lock committed");
    controller.wait_until_idle();

    let tip = world.tip();
    world.git(&["update-ref", "refs/heads/renamed", &tip]);
    world.git(&["update-ref", "-d", "refs/heads/main"]);
    let said = || controller.log().matches("has no branch").count();
    wait_for("a word about the branch", || (said() > 0).then_some(()));
    let (start, before) = (std::time::Instant::now(), said());
    wait_for("two more", || (said() >= before + 2).then_some(()));
    assert!(start.elapsed() > std::time::Duration::from_millis(900), "two more polls take at least one interval");
    assert!(world.path("out").exists(), "the target stays as it is");
}
