//! Remotes that say no, and what is shown of it.

use std::fs;

use larder::io::git::{GitError, PushError, Pushed, Repository};

use super::{
    server::Server,
    world::{World, push, pushed, tip},
};

const FILES: [(&str, &str); 2] = [("larder.yaml", "kind: Larder\n"), ("lock/a/x.yaml", "old\n")];
const CHANGE: [(&str, &str); 1] = [("lock/a/x.yaml", "new\n")];

fn refusal(result: Result<Pushed, PushError>) -> String {
    match result {
        Err(PushError::Refused { message, .. }) => message,
        other => panic!("a refusal was expected, not {other:?}"),
    }
}

#[test]
fn a_hooks_own_words_are_shown_without_its_escapes() {
    let world = World::new(&FILES);
    world.hook("pre-receive", r"printf 'POLICY: need ticket \033[31mred\033[0m\007\n' >&2; exit 1");
    let server = Server::start(&world, None);
    for url in [world.up().display().to_string(), format!("file://{}", world.up().display()), server.url()] {
        let mut repository = Repository::open(world.options(&url)).unwrap();
        let first = tip(&mut repository);
        let message = refusal(push(&mut repository, first, &CHANGE));
        assert_eq!(
            message, "POLICY: need ticket \u{fffd}[31mred\u{fffd}[0m\u{fffd}\n(pre-receive hook declined)",
            "{url}"
        );
        assert_eq!(tip(&mut repository), first);
    }
}

#[test]
fn a_refusal_is_no_race_and_a_race_no_refusal() {
    // The hook refuses while its words speak of fetching.
    let world = World::new(&FILES);
    world.hook("update", "echo 'fetch first: cannot lock ref' >&2; exit 1");
    let server = Server::start(&world, None);
    let mut repository = Repository::open(world.options(&server.url())).unwrap();
    let first = tip(&mut repository);
    assert!(refusal(push(&mut repository, first, &CHANGE)).contains("hook declined"));
    // A colleague pushes while our pack is being received: git itself finds that the branch is elsewhere.
    let theirs = world.git(&world.up(), &["commit-tree", "-p", "main", "-m", "theirs", "main^{tree}"]);
    let hook = format!(
        "test -e raced || {{ touch raced; env -u GIT_QUARANTINE_PATH git update-ref refs/heads/main {theirs}; }}"
    );
    fs::remove_file(world.up().join("hooks/update")).unwrap();
    for url in [server.url(), world.up().display().to_string()] {
        let _ = fs::remove_file(world.up().join("raced"));
        world.git(&world.up(), &["update-ref", "refs/heads/main", &first.to_string()]);
        world.hook("pre-receive", &hook);
        let mut repository = Repository::open(world.options(&url)).unwrap();
        tip(&mut repository);
        let lost = push(&mut repository, first, &CHANGE);
        assert!(matches!(&lost, Err(PushError::Raced { .. })), "{lost:?}");
        assert_eq!(tip(&mut repository).to_string(), theirs);
    }
}

#[test]
fn hooks_run_for_a_local_repository_too() {
    let world = World::new(&FILES);
    world.hook("post-receive", "cat > pushed");
    world.hook("pre-commit", "exit 1");
    let mut repository = world.local();
    let first = tip(&mut repository);
    let second = pushed(push(&mut repository, first, &CHANGE));
    let seen = fs::read_to_string(world.up().join("pushed")).unwrap();
    assert_eq!(seen.trim(), format!("{first} {second} refs/heads/main"));
    assert_eq!(world.rev("refs/heads/main"), second);
}

#[test]
fn hooks_in_another_folder_are_found() {
    let world = World::new(&FILES);
    world.hook("../elsewhere/update", "exit 1");
    world.git(&world.up(), &["config", "core.hooksPath", "elsewhere"]);
    let mut repository = world.local();
    let first = tip(&mut repository);
    assert!(refusal(push(&mut repository, first, &CHANGE)).contains("hook declined"));
}

#[test]
fn a_checked_out_branch_is_refused_by_git_itself() {
    let world = World::new(&FILES);
    let mut repository = Repository::open(world.options(world.work().to_str().unwrap())).unwrap();
    let first = tip(&mut repository);
    let error = push(&mut repository, first, &CHANGE).unwrap_err();
    assert!(error.hint().contains("bare repository"), "{error} {}", error.hint());
    assert!(error.to_string().contains("is checked out in a work tree"), "{error}");
    // Another branch of it is fine, and so is one that git may update together with the files.
    world.git(&world.work(), &["branch", "other"]);
    let mut options = world.options(world.work().to_str().unwrap());
    options.branch = Some("other".into());
    let mut other = Repository::open(options).unwrap();
    pushed(push(&mut other, first, &CHANGE));
    world.git(&world.work(), &["config", "receive.denyCurrentBranch", "updateInstead"]);
    pushed(push(&mut repository, first, &CHANGE));
    assert_eq!(fs::read_to_string(world.work().join("lock/a/x.yaml")).unwrap(), "new\n");
}

#[test]
fn rules_of_a_forge_get_a_hint_of_their_own() {
    let world = World::new(&FILES);
    for words in [
        "error: GH006: Protected branch update failed. Commits must have verified signatures.",
        "remote: GitLab: Commit must be signed with a GPG key",
        "Gitea: branch main is protected from unverified commit 0123",
    ] {
        world.hook("update", &format!("echo '{words}' >&2; exit 1"));
        let mut repository = world.local();
        let first = tip(&mut repository);
        let error = push(&mut repository, first, &CHANGE).unwrap_err();
        assert!(error.hint().contains("wants signed commits"), "{words}: {}", error.hint());
    }
}

#[test]
fn a_server_without_rights_to_push_says_so() {
    let world = World::new(&FILES);
    let server = Server::start(&world, None);
    world.git(&world.up(), &["config", "http.receivepack", "false"]);
    let mut repository = Repository::open(world.options(&server.url())).unwrap();
    let first = tip(&mut repository);
    let error = push(&mut repository, first, &CHANGE).unwrap_err();
    assert!(matches!(&error, PushError::Git(GitError::Authentication { .. })), "{error:?}");
}
