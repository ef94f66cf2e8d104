//! Revisions, and a branch of larder's own beside the tracked one.

use std::collections::BTreeMap;

use larder::io::git::{CommitId, Draft, GitError, PushError, Rebuilt, Repository};

use super::{
    server::Server,
    world::{NOW, World, tip},
};

const FILES: [(&str, &str); 2] = [("larder.yaml", "kind: Larder\n"), ("lock/a/x.yaml", "old\n")];

#[test]
fn revisions_are_what_git_takes() {
    let world = World::new(&FILES);
    let first = world.rev("main");
    let second = world.commit(&[("README.md", "more\n")], "second");
    world.git(&world.up(), &["tag", "-a", "-m", "a tag", "v1", "main~1"]);
    let short: String = first.to_string().chars().take(9).collect();
    let mut local = world.local();
    for (rev, expected) in
        [("HEAD", second), ("main", second), ("HEAD~1", first), ("v1", first), (short.as_str(), first)]
    {
        assert_eq!(local.revision(rev), Ok(expected), "{rev}");
    }
    for rev in ["nothing", "", "HEAD~7", "main:larder.yaml", "--help", "a b\u{1b}[31m"] {
        let error = local.revision(rev).unwrap_err();
        assert!(matches!(error, GitError::Revision { .. }), "{rev}: {error}");
        assert!(!error.to_string().contains('\u{1b}') && !error.hint().is_empty());
    }
    let server = Server::start(&world, None);
    let mut remote = Repository::open(world.options(&server.url())).unwrap();
    assert_eq!(remote.revision("main"), Ok(second));
    assert_eq!(remote.revision(&first.to_string()), Ok(first));
    for rev in ["HEAD~1", "next"] {
        assert!(matches!(remote.revision(rev), Err(GitError::Revision { .. })), "{rev}");
    }
}

fn rebuild(repository: &mut Repository, parent: CommitId, text: &str, seconds: i64) -> Result<Rebuilt, PushError> {
    let changes = BTreeMap::from([("lock/a/x.yaml".to_owned(), Some(text.as_bytes().to_vec()))]);
    let message = "lock: test\n\nLarder-Version: 1\n";
    repository.rebuild("larder/lock", &Draft { parent, changes: &changes, message, seconds })
}

/// The whole life of a side branch, anyone who moves it: larder in place, git for its hooks, or a server.
fn lives(world: &World, mut repository: Repository) {
    let first = tip(&mut repository);
    let Ok(Rebuilt::Commit(made)) = rebuild(&mut repository, first, "new\n", NOW) else { panic!("made") };
    assert_eq!((world.rev("larder/lock"), world.rev("larder/lock~1"), world.rev("main")), (made, first, first));
    assert_eq!(rebuild(&mut repository, first, "new\n", NOW + 60), Ok(Rebuilt::Unchanged(made)));

    // The base moves: rebuilt on it, by force.
    let second = world.commit(&[("README.md", "more\n")], "second");
    let Ok(Rebuilt::Commit(moved)) = rebuild(&mut repository, second, "new\n", NOW + 60) else { panic!("moved") };
    assert_eq!((world.rev("larder/lock"), world.rev("larder/lock~1")), (moved, second));
    assert_eq!(world.git(&world.up(), &["show", "larder/lock:lock/a/x.yaml"]), "new");

    // The files are like that already: nothing to propose.
    assert_eq!(rebuild(&mut repository, second, "old\n", NOW), Ok(Rebuilt::Nothing));
    assert_eq!(world.rev("larder/lock"), moved);
    assert_eq!((repository.remove_side("larder/lock"), repository.remove_side("larder/lock")), (Ok(true), Ok(false)));

    // A person's commit is never lost, nor is the tracked branch ever touched.
    let own = world.git(&world.work(), &["commit-tree", "-p", "HEAD", "-m", "own", "HEAD^{tree}"]);
    world.git(&world.work(), &["push", "-q", "origin", &format!("{own}:refs/heads/larder/lock")]);
    let refused = rebuild(&mut repository, second, "new\n", NOW).unwrap_err();
    assert!(
        matches!(&refused, PushError::Refused { message, .. } if message.contains("not made by larder")),
        "{refused}"
    );
    assert!(repository.remove_side("larder/lock").is_err());
    assert_eq!(world.rev("larder/lock").to_string(), own);

    // Once it is merged, nothing is lost: the branch that was kept is larder's again.
    world.git(&world.work(), &["reset", "-q", "--hard", &own]);
    let merged = world.commit(&[("README.md", "most\n")], "after the merge");
    let Ok(Rebuilt::Commit(made)) = rebuild(&mut repository, merged, "new\n", NOW) else { panic!("replaced") };
    assert_eq!((world.rev("larder/lock"), world.rev("larder/lock~1")), (made, merged));
    world.git(&world.work(), &["push", "-q", "-f", "origin", &format!("{own}:refs/heads/larder/lock")]);
    assert_eq!(repository.remove_side("larder/lock"), Ok(true));
    let changes = BTreeMap::new();
    let draft = Draft { parent: second, changes: &changes, message: "", seconds: NOW };
    assert!(matches!(repository.rebuild("main", &draft), Err(PushError::Git(GitError::Branch { .. }))));
    assert!(repository.remove_side("main").is_err());
    world.git(&world.up(), &["fsck", "--strict"]);
}

#[test]
fn a_side_branch_of_a_local_repository() {
    let world = World::new(&FILES);
    lives(&world, world.local());
}

#[test]
fn a_side_branch_of_a_repository_with_hooks() {
    let world = World::new(&FILES);
    world.hook("post-receive", "exit 0");
    lives(&world, world.local());
}

#[test]
fn a_side_branch_behind_http() {
    let world = World::new(&FILES);
    let server = Server::start(&world, None);
    let repository = Repository::open(world.options(&server.url())).unwrap();
    lives(&world, repository);
}

#[test]
fn a_hook_that_refuses_a_side_branch_is_heard() {
    let world = World::new(&FILES);
    world.hook("pre-receive", "echo 'POLICY: no such branches' >&2; exit 1");
    let mut repository = world.local();
    let first = tip(&mut repository);
    let refused = rebuild(&mut repository, first, "new\n", NOW).unwrap_err();
    assert!(refused.to_string().contains("POLICY: no such branches"), "{refused}");
}
