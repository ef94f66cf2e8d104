//! Objects that someone who may push has replaced: what is signed is what is read, in place and over the network.

use std::fs;

use larder::io::git::{GitError, Repository, Trust, Until};

use super::{
    server::Server,
    signatures::keys::Keys,
    world::{World, text},
};

const OLD: &str = "digest: old\n";
const NEW: &str = "digest: new\n";

/// Two lock commits, `OLD` and then `NEW`, the latter signed.
fn world() -> World {
    let world = World::new(&[("larder.yaml", "x\n"), ("lock/a/x.yaml", OLD)]);
    let keys = Keys::new(world.root());
    keys.generate("ed", "ed25519", "");
    keys.allow("signers", &["ed"]);
    fs::write(world.work().join("lock/a/x.yaml"), NEW).unwrap();
    let key = format!("user.signingKey={}", keys.private("ed").display());
    world.git(&world.work(), &["-c", &key, "-c", "gpg.format=ssh", "commit", "-q", "-a", "-S", "-m", "signed"]);
    world.git(&world.work(), &["push", "-q", "origin", "HEAD:refs/heads/main"]);
    world
}

/// Pushes a replacement of one revision by another; git itself then shows the other.
fn replace(world: &World, base: &str, one: &str, other: &str) {
    let id = |revision: &str| world.git(&world.work(), &["rev-parse", revision]);
    world.git(&world.work(), &["push", "-q", "origin", &format!("{}:{base}{}", id(other), id(one))]);
}

#[test]
fn a_replaced_object_is_read_as_what_was_signed() {
    for (one, other) in [
        ("HEAD:lock/a/x.yaml", "HEAD~1:lock/a/x.yaml"),
        ("HEAD:lock/a", "HEAD~1:lock/a"),
        ("HEAD^{tree}", "HEAD~1^{tree}"),
        ("HEAD", "HEAD~1"),
    ] {
        let world = world();
        replace(&world, "refs/replace/", one, other);
        assert_eq!(world.file("lock/a/x.yaml"), OLD.trim(), "git shows the replacement of {one}");
        let server = Server::start(&world, None);
        let file = format!("file://{}", world.up().display());
        for url in [world.up().display().to_string(), file, server.url()] {
            let mut options = world.options(&url);
            options.trust = Trust { signers: Some(world.root().join("signers")), keyring: None };
            let mut repository = Repository::open(options).unwrap();
            let commit = super::world::tip(&mut repository);
            let snapshot = repository.fetch(&commit).unwrap();
            assert_eq!(text(&snapshot, "lock/a/x.yaml"), NEW, "{one} at {url}");
            let ledger = repository.ledger(&commit).unwrap();
            assert_eq!(ledger.file("lock/a/x.yaml").unwrap().as_deref(), Some(NEW.as_bytes()), "{one} at {url}");
            let mut seen = Vec::new();
            let visit = &mut |commit: larder::io::git::LockingCommit| {
                seen.push(commit.message.trim().to_owned());
                Ok(std::ops::ControlFlow::Continue(()))
            };
            ledger.lock_commits(&ledger.tip().unwrap(), &Until::Start, visit).unwrap();
            assert_eq!(seen, ["signed", "first"], "{one} at {url}");
        }
    }
}

#[test]
fn neither_another_base_nor_a_graft_replaces_anything() {
    let world = world();
    world.git(&world.up(), &["config", "gitoxide.objects.replaceRefBase", "refs/heads/other/"]);
    world.git(&world.up(), &["config", "core.useReplaceRefs", "true"]);
    replace(&world, "refs/heads/other/", "HEAD", "HEAD~1");
    fs::write(world.up().join("info/grafts"), format!("{}\n", world.rev("main"))).unwrap();
    let mut repository = world.local();
    let commit = super::world::tip(&mut repository);
    assert_eq!(text(&repository.fetch(&commit).unwrap(), "lock/a/x.yaml"), NEW);
    let ledger = repository.ledger(&commit).unwrap();
    assert!(ledger.revision("HEAD~1").is_ok(), "the graft would make it the first commit");
}

/// Objects of an alternate store may have been written by others, who keep to no rule.
#[test]
fn an_object_that_is_not_what_its_name_says_is_not_read() {
    for revision in ["HEAD:lock/a/x.yaml", "HEAD:lock/a", "HEAD"] {
        let world = world();
        let (id, other) = {
            let id = |revision: &str| world.git(&world.work(), &["rev-parse", revision]);
            (id(revision), id(&revision.replace("HEAD", "HEAD~1")))
        };
        let place = |id: &str| format!("objects/{}/{}", &id[..2], &id[2..]);
        let alternate = world.root().join("alternate");
        let evil = alternate.join(place(&id).strip_prefix("objects/").unwrap());
        fs::create_dir_all(evil.parent().unwrap()).unwrap();
        fs::copy(world.work().join(".git").join(place(&other)), &evil).unwrap();
        fs::remove_file(world.up().join(place(&id))).unwrap();
        fs::write(world.up().join("objects/info/alternates"), format!("{}\n", alternate.display())).unwrap();
        let mut repository = world.local();
        let error = repository.fetch(&world.rev("main")).unwrap_err();
        assert!(matches!(&error, GitError::Corrupt { detail, .. } if detail.contains("belongs to")), "{error:?}");
    }
}
