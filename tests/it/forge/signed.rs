//! A branch of a real Gitea that takes signed commits only.

use std::{fs, process::Command};

use serde_json::{Value, json};

use super::hosted::Hosted;
use crate::{
    git::signatures::keys::Keys,
    scenarios::{
        environment,
        world::{problems_of, run},
    },
};

/// One pass of a larder that signs; its report.
fn pass(hosted: &Hosted, key: &[&str]) -> Value {
    // Gitea asks that the key belongs to the user whose address the committer has.
    let arguments = [&["run", "--once", "--output", "json", "--author-email", "bot@example.com"], key].concat();
    let output = hosted.larder(&arguments);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("no report ({error}): {}", String::from_utf8_lossy(&output.stderr));
    })
}

/// Registers a key with the user `bot` and proves that it is its own, as its owner would on the page of settings: the API
/// has no call for it.
fn register(hosted: &Hosted, keys: &Keys, name: &str) {
    hosted.gitea.api("POST", "user/keys", Some(&json!({"title": hosted.world.id, "key": keys.public(name)})));
    let url = &hosted.gitea.url;
    let cookies = hosted.world.path("cookies");
    let curl = |arguments: &[&str]| {
        let mut command = Command::new("curl");
        command.args(["--fail", "-sS", "-o", "/dev/null", "-b"]).arg(&cookies).arg("-c").arg(&cookies);
        run(command.args(arguments));
    };
    fs::write(&cookies, "").unwrap();
    let login = format!("{url}/user/login");
    curl(&["--data", "user_name=bot", "--data", "password=bot-password", &login]);
    let token = run(Command::new("curl")
        .args(["--fail", "-sS", "-u", "bot:bot-password"])
        .arg(format!("{url}/api/v1/user/gpg_key_token")));
    let signature = keys.sign(name, "gitea", &token.stdout);
    let signature = format!("signature={signature}");
    let fingerprint = format!("fingerprint={}", keys.fingerprint(name));
    let page = format!("{url}/user/settings/keys");
    let form = ["type=verify_ssh", "title=none", "content=ssh-key", &fingerprint, &signature];
    let form: Vec<&str> = form.iter().flat_map(|field| ["--data-urlencode", *field]).collect();
    curl(&[form.as_slice(), &[&page]].concat());
}

#[test]
fn a_branch_that_wants_signatures_gets_them() {
    let hosted = Hosted::new("signed", "");
    let world = &hosted.world;
    let reference = format!("{}:1", world.image("notebook"));
    world.push_images(&[], &[&reference]);
    world.commit(&[("environments/research/geo.yaml", &environment(&[("notebook", &reference)], ""))], "Add");
    let base = hosted.tip("main");
    let rule = json!({"rule_name": "main", "enable_push": true, "require_signed_commits": true});
    hosted.api("POST", "branch_protections", Some(&rule));

    // Unsigned: refused, with a hint that helps. (Gitea 1.26 has no words for it: its own check fails with an internal
    // error where "protected from unverified commit" is meant.)
    let report = pass(&hosted, &[]);
    let problem = problems_of(&report, "LockRefused");
    assert!(problem.contains("was refused") && problem.contains("--signing-key-file"), "{problem}");
    assert_eq!(hosted.tip("main"), base);

    // Signed with a key that nobody has registered.
    let keys = Keys::new(world.path(""));
    keys.generate("key", "ed25519", "");
    let report = pass(&hosted, &["--signing-key-file", "key"]);
    assert!(problems_of(&report, "LockRefused").contains("was refused"), "{report:#}");
    assert_eq!(hosted.tip("main"), base);

    // Registered.
    register(&hosted, &keys, "key");
    let report = pass(&hosted, &["--signing-key-file", "key"]);
    assert_eq!(problems_of(&report, "LockRefused"), "", "{report:#}");
    let tip = hosted.tip("main");
    assert_ne!(tip, base);
    assert_eq!(report["lastPass"]["lockCommit"], tip);
    let commit = hosted.api("GET", &format!("git/commits/{tip}"), None);
    assert_eq!(commit["commit"]["verification"]["verified"], true, "{commit:#}");
}
