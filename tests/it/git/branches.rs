//! Branches that vanish, are renamed, rewritten or share their name; repositories of unusual forms.

use std::{
    fs,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
};

use larder::io::git::{GitError, PushError, Repository, Tip};

use super::{
    server::Server,
    world::{World, push, pushed, text, tip},
};

const FILES: [(&str, &str); 2] = [("larder.yaml", "kind: Larder\n"), ("lock/a/x.yaml", "old\n")];

/// The two ways to one bare repository, and the old protocol.
fn ways(world: &World) -> Vec<(String, Server)> {
    let (new, old) = (Server::start(world, None), Server::start(world, None));
    old.old_protocol();
    let spare = Server::start(world, None);
    vec![(world.up().display().to_string(), spare), (new.url(), new), (old.url(), old)]
}

#[test]
fn a_tag_of_the_branchs_name_is_not_the_branch() {
    let world = World::new(&FILES);
    let first = world.rev("refs/heads/main");
    let second = world.commit(&[("larder.yaml", "two\n")], "second");
    world.git(&world.up(), &["tag", "main", &first.to_string()]);
    world.git(&world.up(), &["branch", "main2", &first.to_string()]);
    for (url, _server) in ways(&world) {
        let mut repository = Repository::open(world.options(&url)).unwrap();
        assert_eq!(tip(&mut repository), second, "{url}");
        let mut options = world.options(&url);
        options.branch = Some("refs/tags/main".into());
        assert!(matches!(Repository::open(options), Err(GitError::Branch { .. })));
    }
}

#[test]
fn the_default_branch_is_what_head_names() {
    let world = World::new(&FILES);
    let first = world.rev("refs/heads/main");
    world.git(&world.up(), &["branch", "-m", "main", "trunk"]);
    for (url, _server) in ways(&world) {
        let mut options = world.options(&url);
        options.branch = None;
        let mut repository = Repository::open(options).unwrap();
        assert_eq!((tip(&mut repository), repository.branch()), (first, Some("trunk")), "{url}");
        // The one that was configured is gone; that is a state, not an error, and not "no environments".
        let mut repository = Repository::open(world.options(&url)).unwrap();
        assert_eq!(repository.tip(), Ok(Tip::Gone { branch: "main".into() }), "{url}");
    }
    // HEAD still names a branch that is gone.
    world.git(&world.up(), &["symbolic-ref", "HEAD", "refs/heads/main"]);
    for (url, _server) in ways(&world) {
        let mut options = world.options(&url);
        options.branch = None;
        let gone = Repository::open(options).unwrap().tip();
        assert!(matches!(gone, Ok(Tip::Gone { .. })), "{url}: {gone:?}");
    }
    // HEAD names no branch at all.
    world.git(&world.up(), &["update-ref", "--no-deref", "HEAD", &first.to_string()]);
    for (url, _server) in ways(&world) {
        let mut options = world.options(&url);
        options.branch = None;
        let error = Repository::open(options).unwrap().tip();
        assert!(matches!(error, Err(GitError::Ambiguous { .. })), "{url}: {error:?}");
        let mut options = world.options(&url);
        options.branch = Some("trunk".into());
        assert_eq!(tip(&mut Repository::open(options).unwrap()), first);
    }
}

#[test]
fn an_empty_repository_is_no_error() {
    let world = World::empty();
    for (url, _server) in ways(&world) {
        for branch in [None, Some("main".to_owned())] {
            let mut options = world.options(&url);
            options.branch = branch.clone();
            assert_eq!(Repository::open(options).unwrap().tip(), Ok(Tip::Empty), "{url} {branch:?}");
        }
    }
}

#[test]
fn a_rewritten_branch_is_followed_and_never_undone() {
    let world = World::new(&FILES);
    let first = world.rev("refs/heads/main");
    for (url, _server) in ways(&world) {
        world.git(&world.up(), &["update-ref", "refs/heads/main", &first.to_string()]);
        let dropped = world.commit(&[("larder.yaml", "dropped\n")], "dropped");
        let mut repository = Repository::open(world.options(&url)).unwrap();
        assert_eq!(tip(&mut repository), dropped);
        repository.fetch(&dropped).unwrap();
        world.git(&world.work(), &["reset", "-q", "--hard", &first.to_string()]);
        let rewritten = world.commit(&[("larder.yaml", "rewritten\n"), ("environments/a/x.yaml", &url)], "rewritten");
        let lost = push(&mut repository, dropped, &[("lock/a/x.yaml", "new\n")]);
        assert!(matches!(&lost, Err(PushError::Raced { .. })), "{url}: {lost:?}");
        assert_eq!(tip(&mut repository), rewritten);
        assert_eq!(text(&repository.fetch(&rewritten).unwrap(), "larder.yaml"), "rewritten\n");
        let ours = pushed(push(&mut repository, rewritten, &[("lock/a/x.yaml", &url)]));
        let parents = world.git(&world.up(), &["log", "--format=%P", "-1", &ours.to_string()]);
        assert_eq!(parents, rewritten.to_string());
        world.git(&world.work(), &["reset", "-q", "--hard", &first.to_string()]);
    }
}

#[test]
fn a_commit_that_is_nowhere_is_gone() {
    let world = World::new(&FILES);
    let nowhere = "1234567890123456789012345678901234567890".parse().unwrap();
    for (url, _server) in ways(&world) {
        let error = Repository::open(world.options(&url)).unwrap().fetch(&nowhere).unwrap_err();
        assert_eq!(error, GitError::CommitGone { remote: url, commit: nowhere });
    }
}

#[test]
fn packed_references_and_alternates_are_read() {
    let world = World::new(&FILES);
    world.git(&world.up(), &["pack-refs", "--all"]);
    let first = world.rev("refs/heads/main");
    assert!(!world.up().join("refs/heads/main").exists());
    let mut repository = world.local();
    assert_eq!(tip(&mut repository), first);
    let second = pushed(push(&mut repository, first, &[("lock/a/x.yaml", "new\n")]));
    // Now there is a loose reference beside the packed one.
    assert_eq!((tip(&mut repository), world.rev("refs/heads/main")), (second, second));
    world.git(&world.up(), &["gc", "-q"]);
    assert_eq!(text(&repository.fetch(&second).unwrap(), "lock/a/x.yaml"), "new\n");
    let borrower = world.root().join("borrower.git");
    world.git(&world.root(), &["clone", "-q", "--bare", "--shared", "up.git", "borrower.git"]);
    let mut repository = Repository::open(world.options(borrower.to_str().unwrap())).unwrap();
    assert_eq!(tip(&mut repository), second);
    pushed(push(&mut repository, second, &[("lock/a/x.yaml", "newer\n")]));
    world.git(&borrower, &["fsck", "--strict"]);
}

#[test]
fn other_formats_are_named() {
    let world = World::empty();
    world.git(&world.root(), &["init", "-q", "--bare", "-b", "main", "--object-format=sha256", "s.git"]);
    let server = Server::start(&world, None);
    let reftable = world.root().join("r.git");
    world.git(&world.root(), &["init", "-q", "--bare", "-b", "main", "r.git"]);
    world.git(&reftable, &["config", "core.repositoryFormatVersion", "1"]);
    world.git(&reftable, &["config", "extensions.refStorage", "reftable"]);
    for (url, expected) in [
        (world.root().join("s.git").display().to_string(), "sha256"),
        (server.url().replace("up.git", "s.git"), "sha256"),
        (reftable.display().to_string(), "reftable"),
    ] {
        let tip = Repository::open(world.options(&url)).unwrap().tip();
        assert!(
            matches!(&tip, Err(GitError::UnsupportedObjectFormat { format, .. }) if format == expected),
            "{url}: {tip:?}"
        );
    }
}

#[test]
fn nothing_there_is_said_plainly() {
    let world = World::new(&FILES);
    let server = Server::start(&world, None);
    fs::create_dir(world.root().join("plain")).unwrap();
    for url in [
        world.root().join("missing.git").display().to_string(),
        world.root().join("plain").display().to_string(),
        // Not even a directory in a repository: none is looked for above.
        world.work().join("lock").display().to_string(),
        server.url().replace("up.git", "missing.git"),
    ] {
        let error = Repository::open(world.options(&url)).unwrap().tip().unwrap_err();
        assert!(matches!(&error, GitError::NotFound { .. }), "{url}: {error:?}");
    }
}

#[test]
fn a_repository_of_another_user_is_read_and_its_hooks_explained() {
    let world = World::new(&FILES);
    world.hook("post-receive", "true");
    let mut repository = world.local();
    let first = tip(&mut repository);
    let other = std::process::Command::new("chown").args(["-R", "12345:12345"]).arg(world.up()).status().unwrap();
    assert!(other.success(), "this test gives files to another user: run it as root");
    assert_eq!(tip(&mut repository), first);
    repository.fetch(&first).unwrap();
    let error = push(&mut repository, first, &[("lock/a/x.yaml", "new\n")]).unwrap_err();
    assert_eq!(tip(&mut repository), first);
    assert!(error.to_string().contains("dubious ownership"), "{error:?}");
    let hint = format!("git config --global --add safe.directory {}", world.up().display());
    assert!(error.hint().contains(&hint), "{}", error.hint());
    // Without hooks git is not needed, and every directory stays its owner's.
    fs::remove_file(world.up().join("hooks/post-receive")).unwrap();
    let second = pushed(push(&mut repository, first, &[("lock/a/x.yaml", "new\n")]));
    assert_eq!(tip(&mut repository), second);
    let find = std::process::Command::new("find").arg(world.up()).args(["-type", "d", "!", "-uid", "12345"]).output();
    assert_eq!(String::from_utf8(find.unwrap().stdout).unwrap(), "");
    let closed = std::process::Command::new("find").arg(world.up()).args(["-type", "f", "!", "-perm", "-044"]).output();
    assert_eq!(String::from_utf8(closed.unwrap().stdout).unwrap(), "");
}

/// Set for the process that has nothing.
const BARE: &str = "LARDER_TEST_BARE_WORLD";

#[test]
fn no_home_no_user_entry_and_a_read_only_place() {
    let world = World::new(&FILES);
    let server = Server::start(&world, None);
    let cache = world.root().join("cache");
    fs::create_dir(&cache).unwrap();
    let own = world.root().join("own.git");
    world.git(&world.root(), &["clone", "-q", "--bare", "up.git", "own.git"]);
    let given = std::process::Command::new("chown").args(["-R", "4242:4242"]).args([&cache, &own]).status().unwrap();
    assert!(given.success(), "this test gives files to another user: run it as root");
    world.git(&world.root(), &["config", "--global", "safe.directory", "*"]);
    let open = std::process::Command::new("chmod").args(["a+rx"]).arg(world.root()).status().unwrap();
    assert!(open.success());
    // The test's own binary, as a user without an entry, a home or a place to write but the cache.
    let program = world.root().join("it");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let mut child = std::process::Command::new(program);
    child.args(["--exact", "git::branches::in_a_bare_world", "--nocapture"]).current_dir("/");
    child.env_clear().env("PATH", "/nonexistent").uid(4242).gid(4242);
    child.env(BARE, format!("{} {} {}", server.url(), cache.display(), own.display()));
    let output = loop {
        // Another test's new process may still hold the copy open for writing.
        match child.output() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
            result => break result.unwrap(),
        }
    };
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let who = world.git(&world.up(), &["log", "-1", "--format=%an <%ae> %cn <%ce>", "main"]);
    assert_eq!(who, "larder <larder@example.com> larder bot <bot@example.com>");
}

/// The other half of the test above: does nothing unless it is started by it.
#[test]
fn in_a_bare_world() {
    let Some(arguments) = std::env::var_os(BARE) else {
        return;
    };
    let _ = rustls::crypto::ring::default_provider().install_default();
    let arguments = arguments.into_string().unwrap();
    let [url, cache, own] = arguments.split(' ').collect::<Vec<_>>()[..] else { panic!("{arguments}") };
    for url in [url, own] {
        let mut options = super::world::options(url);
        options.cache = cache.into();
        let mut repository = Repository::open(options).unwrap();
        let first = tip(&mut repository);
        repository.fetch(&first).unwrap();
        pushed(push(&mut repository, first, &[("lock/a/x.yaml", "new\n")]));
    }
    // There is no git program here, and none was missed; only hooks need one.
    let hook = format!("{own}/hooks/update");
    fs::write(&hook, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let mut repository = Repository::open(super::world::options(own)).unwrap();
    let first = tip(&mut repository);
    let error = push(&mut repository, first, &[("lock/a/x.yaml", "newer\n")]).unwrap_err();
    assert!(matches!(&error, PushError::Git(GitError::Program { program, .. }) if program == "git"), "{error:?}");
    assert!(error.hint().contains("hooks"), "{}", error.hint());
    let mut repository = Repository::open(super::world::options("ssh://git@127.0.0.1:9/x.git")).unwrap();
    let error = repository.tip().unwrap_err();
    assert!(matches!(&error, GitError::Program { program, .. } if program == "ssh"), "{error:?}");
}
