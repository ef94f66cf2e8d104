//! A repository behind smart HTTP.

use std::fs;

use larder::io::git::{GitError, Options, PushError, Pushed, Repository, Tip};

use super::{
    server::{Fault, Server},
    world::{World, push, pushed, text, tip},
};

const FILES: [(&str, &str); 3] =
    [("larder.yaml", "kind: Larder\n"), ("environments/a/x.yaml", "one\n"), ("lock/a/x.yaml", "old\n")];

fn with_password(world: &World, server: &Server, password: &str) -> Options {
    let file = world.root().join("password");
    fs::write(&file, password).unwrap();
    let mut options = world.options(&server.url());
    options.credentials.username = Some("bot".into());
    options.credentials.password_file = Some(file);
    options
}

#[test]
fn the_whole_way_over_http() {
    let world = World::new(&FILES);
    let server = Server::start(&world, None);
    let mut repository = Repository::open(world.options(&server.url())).unwrap();
    let first = tip(&mut repository);
    // Invariant 1: an unchanged tip costs the handshake and one question.
    assert_eq!(server.requests(), ["GET /up.git/info/refs?service=git-upload-pack", "POST /up.git/git-upload-pack"]);
    let snapshot = repository.fetch(&first).unwrap();
    assert_eq!(text(&snapshot, "environments/a/x.yaml"), "one\n");
    server.requests();
    assert_eq!(repository.fetch(&first).unwrap(), snapshot);
    assert_eq!(server.requests(), [""; 0]);

    let before = world.count();
    let second = pushed(push(&mut repository, first, &[("lock/a/x.yaml", "new\n")]));
    assert_eq!((world.rev("refs/heads/main"), world.rev("refs/heads/main~1")), (second, first));
    assert_eq!(world.count(), before + 1);
    world.git(&world.up(), &["fsck", "--strict"]);
    // Our own commit is known already.
    server.requests();
    assert_eq!(text(&repository.fetch(&second).unwrap(), "lock/a/x.yaml"), "new\n");
    assert_eq!(push(&mut repository, second, &[("lock/a/x.yaml", "new\n")]), Ok(Pushed::Nothing));
    assert_eq!(server.requests(), [""; 0]);

    let third = world.commit(&[("environments/b/y.yaml", "three\n")], "a colleague");
    assert_eq!(tip(&mut repository), third);
    let snapshot = repository.fetch(&third).unwrap();
    assert_eq!(text(&snapshot, "environments/b/y.yaml"), "three\n");
    assert_eq!(text(&snapshot, "environments/a/x.yaml"), "one\n");
}

#[test]
fn credentials_come_from_a_file_and_never_show() {
    let world = World::new(&FILES);
    let server = Server::start(&world, Some("bot:s3cr@t"));
    let mut repository = Repository::open(with_password(&world, &server, "s3cr@t\n")).unwrap();
    let first = tip(&mut repository);
    // No request without the credentials goes before.
    assert_eq!(server.requests().len(), 2);
    repository.fetch(&first).unwrap();
    pushed(push(&mut repository, first, &[("lock/a/x.yaml", "new\n")]));
    // A rotated password is used at once, and a wrong one is not shown.
    fs::write(world.root().join("password"), "wr0ng-s3cret").unwrap();
    let error = repository.tip().unwrap_err();
    assert!(matches!(error, GitError::Authentication { .. }), "{error:?}");
    assert!(!format!("{error} {error:?}").contains("s3cr"), "{error:?}");
    for file in walk(&world.root().join("cache")) {
        let bytes = fs::read(&file).unwrap();
        assert!(!bytes.windows(4).any(|window| window == b"s3cr"), "{}", file.display());
    }
}

#[test]
fn a_missing_credential_fails_at_once() {
    let world = World::new(&FILES);
    let server = Server::start(&world, Some("bot:s3cr@t"));
    let mut repository = Repository::open(world.options(&server.url())).unwrap();
    let error = repository.tip().unwrap_err();
    assert!(matches!(error, GitError::Authentication { .. }), "{error:?}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn what_is_refused_once_is_asked_again_once() {
    // Forges take a moment to know a new token, and say 404 to hide what it might not see.
    let world = World::new(&FILES);
    let server = Server::start(&world, Some("bot:s3cr@t"));
    let mut repository = Repository::open(with_password(&world, &server, "s3cr@t")).unwrap();
    let first = tip(&mut repository);
    for status in [401, 403, 404] {
        server.requests();
        server.fault(Some(Fault::Once(status)));
        assert_eq!(tip(&mut repository), first, "{status}");
        assert_eq!(server.requests().len(), 3, "{status}: one request more than else");
    }
    server.fault(Some(Fault::Status(403)));
    server.requests();
    assert!(matches!(repository.tip(), Err(GitError::Authentication { .. })));
    assert_eq!(server.requests().len(), 2, "and no more than once");
    // Without a login there is nothing to wait for.
    let mut stranger = Repository::open(world.options(&server.url())).unwrap();
    assert!(stranger.tip().is_err());
    assert_eq!(server.requests().len(), 1);
    // The push as well.
    server.fault(None);
    repository.fetch(&first).unwrap();
    server.fault(Some(Fault::Once(401)));
    pushed(push(&mut repository, first, &[("lock/a/x.yaml", "new\n")]));
}

#[test]
fn credentials_are_not_sent_in_the_clear() {
    let world = World::new(&FILES);
    let server = Server::start(&world, None);
    let mut options = with_password(&world, &server, "s3cr@t");
    options.url = "http://git.example.com/x.git".into();
    let error = Repository::open(options).unwrap().tip().unwrap_err();
    assert!(matches!(error, GitError::Address { .. }) && error.hint().contains("https"), "{error:?}");
}

#[test]
fn what_a_server_says_is_told_apart() {
    let world = World::new(&FILES);
    let server = Server::start(&world, None);
    let mut repository = Repository::open(world.options(&server.url())).unwrap();
    for (status, expected) in [
        (404, "not-found"),
        (403, "authentication"),
        (401, "authentication"),
        (503, "status"),
        (429, "status"),
        (413, "status"),
    ] {
        server.fault(Some(Fault::Status(status)));
        let error = repository.tip().unwrap_err();
        let found = match &error {
            GitError::NotFound { .. } => "not-found",
            GitError::Authentication { .. } => "authentication",
            GitError::Network { .. } => "network",
            GitError::Status { .. } => "status",
            _ => "other",
        };
        assert_eq!(found, expected, "{status}: {error:?}");
        assert!(error.to_string().contains(&status.to_string()), "{error}");
    }
    let mut options = world.options("http://127.0.0.1:9/x.git");
    options.cache = world.root().join("other");
    let error = Repository::open(options).unwrap().tip().unwrap_err();
    assert!(matches!(error, GitError::Network { .. }), "{error:?}");
}

#[test]
fn a_push_counts_only_when_the_branch_moved() {
    let world = World::new(&FILES);
    let server = Server::start(&world, None);
    let mut repository = Repository::open(world.options(&server.url())).unwrap();
    let first = tip(&mut repository);
    repository.fetch(&first).unwrap();
    server.fault(Some(Fault::Lie));
    let lied = push(&mut repository, first, &[("lock/a/x.yaml", "new\n")]);
    assert!(matches!(&lied, Err(PushError::Refused { message, .. }) if message.contains("still at")), "{lied:?}");
    assert_eq!(repository.tip(), Ok(Tip::Commit(first)));
    // The other way round: done, but the answer was lost.
    server.fault(Some(Fault::AnswerLost));
    let second = pushed(push(&mut repository, first, &[("lock/a/x.yaml", "new\n")]));
    server.fault(None);
    assert_eq!(tip(&mut repository), second);
}

/// All files below a directory.
fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(walk(&path)) } else { files.push(path) }
    }
    files
}
