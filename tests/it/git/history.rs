//! Histories of lockfiles, in place and fetched.

use std::ops::ControlFlow;

use larder::io::git::{CommitId, LockCommit, Query, Repository};

use super::{
    server::Server,
    world::{NOW, World, push, pushed, tip},
};

fn all(repository: &mut Repository, from: CommitId, path: Option<&str>) -> Vec<LockCommit> {
    let mut commits = Vec::new();
    let query = Query { path: path.map(str::to_owned) };
    repository
        .history(&from, &query, &mut |commit| {
            commits.push(commit);
            ControlFlow::Continue(())
        })
        .unwrap();
    commits
}

/// A commit's files in short: `path old>new`.
fn files(commit: &LockCommit) -> Vec<String> {
    let text = |bytes: &Option<Vec<u8>>| match bytes {
        Some(bytes) => String::from_utf8_lossy(bytes).trim().to_owned(),
        None => "-".into(),
    };
    commit.files.iter().map(|file| format!("{} {}>{}", file.path, text(&file.old), text(&file.new))).collect()
}

#[test]
fn what_moved_when_and_in_which_commit() {
    let world = World::new(&[("larder.yaml", "x\n"), ("lock/a/x.yaml", "1\n")]);
    let mut local = world.local();
    let first = tip(&mut local);
    let second = pushed(push(&mut local, first, &[("lock/a/x.yaml", "2\n"), ("lock/b/y.yaml", "1\n")]));
    world.git(&world.work(), &["pull", "-q", "--ff-only", "origin", "main"]);
    // A colleague's change without a lock, and a merge that brings a reverted lockfile.
    world.commit(&[("larder.yaml", "y\n")], "no lock");
    world.git(&world.work(), &["checkout", "-q", "-b", "side"]);
    std::fs::write(world.work().join("lock/a/x.yaml"), "1\n").unwrap();
    world.git(&world.work(), &["commit", "-q", "-am", "revert"]);
    world.git(&world.work(), &["checkout", "-q", "main"]);
    world.git(&world.work(), &["merge", "-q", "--no-ff", "-m", "merge side", "side"]);
    let merge = world.commit(&[("larder.yaml", "z\n")], "after the merge");
    let last = pushed(push(&mut local, merge, &[("lock/b/y.yaml", "")]));

    let server = Server::start(&world, None);
    let mut remote = Repository::open(world.options(&server.url())).unwrap();
    for repository in [&mut local, &mut remote] {
        let commits = all(repository, last, None);
        let shown: Vec<_> = commits.iter().map(files).collect();
        assert_eq!(
            shown,
            [
                vec!["lock/b/y.yaml 1>-"],
                vec!["lock/a/x.yaml 2>1"],
                vec!["lock/a/x.yaml 1>2", "lock/b/y.yaml ->1"],
                vec!["lock/a/x.yaml ->1"]
            ]
        );
        assert_eq!((commits[0].id, commits[2].id, commits[3].id), (last, second, first));
        assert_eq!(
            (commits[0].author.name.as_str(), commits[0].committer.email.as_str()),
            ("larder", "bot@example.com")
        );
        assert_eq!((commits[0].seconds, commits[3].seconds), (NOW, 1_770_000_000));
        assert_eq!((commits[0].message.as_str(), commits[1].message.trim()), ("lock: test\n", "merge side"));
        assert_eq!(all(repository, last, Some("lock/b/y.yaml")).len(), 2);
        assert_eq!(all(repository, last, Some("lock/b")).len(), 0);
        assert_eq!(all(repository, last, Some("lock/c/z.yaml")).len(), 0);
        let mut seen = 0;
        repository
            .history(&last, &Query::default(), &mut |_| {
                seen += 1;
                ControlFlow::Break(())
            })
            .unwrap();
        assert_eq!(seen, 1);
    }
    // Only what is new comes the next time, and nothing for a tip that is known.
    server.requests();
    all(&mut remote, last, None);
    assert_eq!(server.requests(), [""; 0]);
    let next = pushed(push(&mut local, last, &[("lock/a/x.yaml", "3\n")]));
    assert_eq!(all(&mut remote, next, Some("lock/a/x.yaml")).len(), 4);
    // A rewritten branch has another history.
    let rewritten = world.git(&world.up(), &["commit-tree", "-m", "all new", &format!("{last}^{{tree}}")]);
    world.git(&world.up(), &["update-ref", "refs/heads/main", &rewritten]);
    assert_eq!(all(&mut remote, rewritten.parse().unwrap(), None).len(), 1);
}

#[test]
fn a_folder_of_a_larger_repository_has_its_own_history() {
    let world = World::new(&[("one/larder.yaml", "x\n"), ("two/lock/a/x.yaml", "1\n"), ("lock/a/x.yaml", "0\n")]);
    let mut options = world.options(world.up().to_str().unwrap());
    options.path = Some("one".into());
    let mut repository = Repository::open(options).unwrap();
    let first = tip(&mut repository);
    let second = pushed(push(&mut repository, first, &[("lock/a/x.yaml", "2\n")]));
    let commits = all(&mut repository, second, None);
    assert_eq!(commits.iter().map(files).collect::<Vec<_>>(), [vec!["lock/a/x.yaml ->2"]]);
}

#[test]
fn a_shallow_clone_tells_what_it_knows() {
    let world = World::new(&[("lock/a/x.yaml", "1\n")]);
    world.commit(&[("lock/a/x.yaml", "2\n")], "two");
    let last = world.commit(&[("lock/a/x.yaml", "3\n")], "three");
    let url = format!("file://{}", world.up().display());
    world.git(&world.root(), &["clone", "-q", "--bare", "--depth", "2", &url, "shallow.git"]);
    let mut repository = Repository::open(world.options(world.root().join("shallow.git").to_str().unwrap())).unwrap();
    let commits = all(&mut repository, last, None);
    assert_eq!(commits.iter().map(files).collect::<Vec<_>>(), [vec!["lock/a/x.yaml 2>3"]]);
}
