//! A branch that goes back: what was signed once is not accepted forever.

use std::{fs, process::Command};

use super::{server::Server, signatures::keys::Keys, world::World};

const SETTINGS: &str =
    "apiVersion: larder.dev/v1alpha1\nkind: Settings\nspec:\n  tenants: {research: {namespace: research}}\n";

/// One pass into a directory of manifests; whether it was well, and what it logged and printed.
fn pass(world: &World, url: &str, more: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.current_dir(world.root()).env("LARDER_CACHE_DIR", world.root().join("cache"));
    command
        .args(["run", "--once", "--follow", "--target", "dir:manifests", "--branch", "main", "--repo", url])
        .args(more);
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn an_older_signed_commit_is_refused_until_it_is_confirmed() {
    let world = World::new(&[("larder.yaml", SETTINGS)]);
    let keys = Keys::new(world.root());
    keys.generate("ed", "ed25519", "");
    keys.allow("signers", &["ed"]);
    let key = format!("user.signingKey={}", keys.private("ed").display());
    let signed = |message: &str| {
        let sign = ["-c", &key, "-c", "gpg.format=ssh", "commit", "-q", "--allow-empty", "-S", "-m", message];
        world.git(&world.work(), &sign);
        world.git(&world.work(), &["push", "-q", "-f", "origin", "HEAD:refs/heads/main"]);
        world.rev("refs/heads/main").to_string()
    };
    let (first, second) = (signed("first"), signed("second"));
    let strict = ["--verify-signers", "signers"];
    let record = world.root().join("manifests/.larder-accepted");
    let server = Server::start(&world, None);
    for url in [world.up().display().to_string(), server.url()] {
        let _ = fs::remove_dir_all(world.root().join("manifests"));
        world.git(&world.up(), &["update-ref", "refs/heads/main", &second]);
        let (well, said) = pass(&world, &url, &strict);
        assert!(well, "{said}");
        assert_eq!(fs::read_to_string(&record).unwrap().trim(), second);

        // Back to an older commit, which is signed as well; each pass is a process of its own.
        world.git(&world.up(), &["update-ref", "refs/heads/main", &first]);
        let (well, said) = pass(&world, &url, &strict);
        assert!(!well && said.contains(&format!("{first} does not descend from {second}")), "{said}");
        assert!(said.contains(&format!("echo {first} >")), "how to confirm: {said}");
        assert_eq!(fs::read_to_string(&record).unwrap().trim(), second);

        // Confirmed as the hint says.
        fs::write(&record, format!("{first}\n")).unwrap();
        let (well, said) = pass(&world, &url, &strict);
        assert!(well, "{said}");

        // What descends from it is accepted again.
        world.git(&world.up(), &["update-ref", "refs/heads/main", &second]);
        let (well, said) = pass(&world, &url, &strict);
        assert!(well, "{said}");
        assert_eq!(fs::read_to_string(&record).unwrap().trim(), second);
    }
}
