//! Signed from end to end: the controller's commits, and those that it reads.

use std::fs;

use serde_json::Value;

use super::{
    environment,
    git::{hook, race},
    world::{World, problems_of},
};
use crate::git::signatures::keys::Keys;

/// A pass into a directory of manifests; its exit code, report and log.
fn pass(world: &World, more: &[&str]) -> (bool, Value, String) {
    let repository = world.repository();
    let arguments = ["run", "--once", "--output", "json", "--target", "dir:manifests", "--repo", &repository];
    let output = world.larder(&[&arguments, more].concat()).output().unwrap();
    let report = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output.status.success(), report, String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Git in the bare repository of a person who signs.
fn sign_tip(world: &World, key: &str, message: &str) -> String {
    let key = world.path(key).display().to_string();
    let options = ["-c", "gpg.format=ssh", "-c", &format!("user.signingKey={key}")];
    let commit = ["commit-tree", "-S", "-p", "main", "-m", message, "main^{tree}"];
    let commit = world.git(&[&options[..], &commit].concat());
    world.git(&["update-ref", "refs/heads/main", &commit]);
    commit
}

#[test]
fn only_signed_commits_are_read_and_what_larder_signs_can_be_verified() {
    let world = World::new("signing", &["research"]);
    let keys = Keys::new(world.path(""));
    for name in ["controller", "ada"] {
        keys.generate(name, "ed25519", "");
    }
    let reference = format!("{}:latest", world.image("notebook"));
    world.push_images(&["--seed", "1"], &[&reference]);
    world.commit(&[("environments/research/geo.yaml", &environment(&[("notebook", &reference)], ""))], "Add");
    keys.allow("signers", &["ada"]);
    keys.allow("controllers", &["controller"]);
    let strict = ["--signing-key-file", "controller", "--verify-signers", "signers"];

    // A key of larder's own that nobody trusts would stop the second pass: it stops the first.
    let (well, report, log) = pass(&world, &strict);
    assert!(!well && report == Value::Null);
    assert!(log.contains("larder's own key would not be accepted") && log.contains("--verify-signers"), "{log}");

    // An unsigned tip: nothing happens.
    keys.allow("signers", &["ada", "controller"]);
    let unsigned = world.tip();
    let (well, _, log) = pass(&world, &strict);
    assert!(!well && log.contains(&format!("the commit {unsigned}")) && log.contains("it is not signed"), "{log}");
    assert!(log.contains("one of the 2 keys of"), "{log}");
    assert_eq!(world.tip(), unsigned);
    assert!(!world.path("manifests/research").exists(), "the target stays as it is");

    // Signed by a person: locked, rendered, and the lock commit passes too.
    let begin = sign_tip(&world, "ada", "Signed");
    let (well, report, log) = pass(&world, &strict);
    assert!(well, "{report:#}\n{log}");
    let lock = world.tip();
    assert_eq!(report["lastPass"]["lockCommit"], lock);
    let (well, report, log) = pass(&world, &strict);
    assert!(well && report["lastPass"]["lockCommit"] == Value::Null, "{report:#}\n{log}");
    world.push_images(&["--seed", "2"], &[&reference]);
    let (well, report, log) = pass(&world, &strict);
    assert!(well && report["lastPass"]["lockCommit"] == world.tip(), "{report:#}\n{log}");
    assert_ne!(world.tip(), lock);
    assert!(keys_verify(&world, "signers", &[]));

    // Larders of other names record the same manifests.
    world.push_images(&["--seed", "3"], &[&reference]);
    let other = [&strict[..], &["--instance", "other", "--target", "dir:other"]].concat();
    let repository = world.repository();
    let arguments = [&["run", "--once", "--repo", &repository][..], &other].concat();
    let output = world.larder(&arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let verified = verify(&world, &[&format!("{begin}..main")]);
    assert!(verified["sound"] == true && verified["commits"].as_array().unwrap().len() == 3, "{verified:#}");
    for commit in verified["commits"].as_array().unwrap() {
        assert_eq!(commit["outcome"], "ok", "{commit:#}");
        assert_eq!(commit["signedBy"]["name"], "controller@example.com");
    }

    // Someone without a key pushes: the last good state stays.
    let good = world.tip();
    let before = fs::read_dir(world.path("manifests")).unwrap().count();
    world.remove(&["environments/research/geo.yaml"], "Remove everything");
    let (well, _, log) = pass(&world, &strict);
    assert!(!well && log.contains("it is not signed"), "{log}");
    assert_eq!(fs::read_dir(world.path("manifests")).unwrap().count(), before);
    let status = fs::read_to_string(world.path("manifests/.larder-status.json")).unwrap();
    assert!(status.contains("CannotStart") && status.contains("it is not signed"), "{status}");
    assert_eq!(world.git(&["rev-parse", "main~1"]), good);
}

fn verify(world: &World, more: &[&str]) -> Value {
    let repository = world.repository();
    let arguments = ["verify", "--repo", &repository, "--controllers", "controllers", "--output", "json"];
    let output = world.larder(&[&arguments, more].concat()).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

/// Whether the whole history is well, as the exit code says it.
fn keys_verify(world: &World, list: &str, more: &[&str]) -> bool {
    let repository = world.repository();
    let arguments = ["verify", "--repo", &repository, "--controllers", list];
    world.larder(&[&arguments, more].concat()).output().unwrap().status.success()
}

/// GitHub's words for a branch that wants verified signatures.
const GH006: &str = "echo 'error: GH006: Protected branch update failed for refs/heads/main.' >&2\n\
                     echo 'error: Commits must have verified signatures.' >&2\nexit 1\n";

#[test]
fn a_refusal_for_want_of_a_signature_is_recognised_and_not_tried_again() {
    let world = World::new("gh006", &["research"]);
    let reference = format!("{}:1", world.image("notebook"));
    world.push_images(&[], &[&reference]);
    world.commit(&[("environments/research/geo.yaml", &environment(&[("notebook", &reference)], ""))], "Add");
    let tip = world.tip();
    hook(&world, "pre-receive", &format!("#!/bin/sh\necho once >>pushes\n{GH006}"));
    let (well, report, log) = pass(&world, &[]);
    assert!(!well, "{log}");
    let problem = problems_of(&report, "LockRefused");
    assert!(problem.contains("GH006") && problem.contains("must have verified signatures"), "{problem}");
    assert!(problem.contains("--signing-key-file"), "{problem}");
    assert_eq!(fs::read_to_string(world.path("environments.git/pushes")).unwrap(), "once\n");
    assert_eq!(world.tip(), tip);
}

/// What is recorded stays true when someone else is faster, and when people merge it.
#[test]
fn races_and_proposals_record_what_they_lead_to() {
    let world = World::new("recorded", &["research"]);
    let keys = Keys::new(world.path(""));
    keys.generate("controller", "ecdsa", "256");
    keys.allow("controllers", &["controller"]);
    let (mine, theirs) = (format!("{}:1", world.image("mine")), format!("{}:1", world.image("theirs")));
    world.push_images(&[], &[&mine, &theirs]);
    world.commit(&[("environments/research/mine.yaml", &environment(&[("notebook", &mine)], ""))], "Mine");
    let before = world.tip();
    world.commit(&[("environments/research/theirs.yaml", &environment(&[("notebook", &theirs)], ""))], "Theirs");
    let colleague = world.tip();
    world.git(&["update-ref", "refs/heads/main", &before]);
    world.git(&["update-ref", "refs/keep", &colleague]);
    race(&world, &before, &colleague);
    let signing = ["--signing-key-file", "controller"];
    let (well, report, log) = pass(&world, &signing);
    assert!(well && world.path("environments.git/raced").exists(), "{report:#}\n{log}");
    assert_eq!(world.git(&["rev-parse", "main~1"]), colleague);
    let verified = verify(&world, &[]);
    assert!(verified["sound"] == true && verified["commits"].as_array().unwrap().len() == 1, "{verified:#}");

    world.push_images(&["--seed", "2"], &[&mine]);
    let branch = [&signing[..], &["--lock-mode", "branch"]].concat();
    let (_, report, log) = pass(&world, &branch);
    assert!(report["notes"].to_string().contains("wait to be merged: larder/lock"), "{report:#}\n{log}");
    let proposed = world.git(&["rev-parse", "larder/lock"]);
    let (_, _, log) = pass(&world, &branch);
    assert_eq!(world.git(&["rev-parse", "larder/lock"]), proposed, "another signature is no other proposal\n{log}");
    let merge = ["commit-tree", "-p", "main", "-p", "larder/lock", "-m", "Merge", "larder/lock^{tree}"];
    let merge = world.git(&merge);
    world.git(&["update-ref", "refs/heads/main", &merge]);
    let verified = verify(&world, &[]);
    assert!(verified["sound"] == true, "{verified:#}");
    assert_eq!(verified["commits"][0]["mergedBy"], merge, "{verified:#}");
    assert_eq!(verified["commits"][0]["id"], proposed);
}
