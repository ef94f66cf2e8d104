//! Histories of lockfiles, in place and fetched.

use std::{ops::ControlFlow, sync::Arc};

use larder::{
    io::git::{CommitId, GitError, Query, Repository},
    model::history::{CommitFilter, LockCommit, WalkEnd},
};

use super::{
    server::Server,
    world::{NOW, World, push, pushed, tip},
};

fn all(repository: &mut Repository, from: CommitId, path: Option<&str>) -> Vec<LockCommit> {
    walk(repository, from, &Query { path: path.map(str::to_owned), ..Query::default() }).0
}

fn walk(repository: &mut Repository, from: CommitId, query: &Query) -> (Vec<LockCommit>, WalkEnd) {
    let mut commits = Vec::new();
    let ledger = repository.ledger(&from).unwrap();
    let end = ledger.walk(query, &mut |commit| {
        commits.push(commit);
        ControlFlow::Continue(())
    });
    (commits, end.unwrap())
}

/// A commit's files in short: `path old>new`.
fn files(commit: &LockCommit) -> Vec<String> {
    let text = |bytes: &Option<Arc<[u8]>>| match bytes {
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
        let infos: Vec<_> = commits.iter().map(|commit| &commit.commit).collect();
        let ids = [&infos[0].id, &infos[2].id, &infos[3].id];
        assert_eq!(ids.map(String::as_str), [last, second, first].map(|id| id.to_string()));
        assert_eq!(infos[0].author, "larder <larder@example.com>");
        assert_eq!(infos[0].committer, "larder bot <bot@example.com>");
        assert_eq!((infos[0].time.seconds, infos[3].time.seconds), (NOW, 1_770_000_000));
        assert_eq!((infos[0].time.offset, infos[3].time.offset), (0, 3600));
        assert_eq!((infos[0].subject.as_str(), infos[1].subject.as_str()), ("lock: test", "merge side"));
        assert_eq!(all(repository, last, Some("lock/b/y.yaml")).len(), 2);
        assert_eq!(all(repository, last, Some("lock/b")).len(), 0);
        assert_eq!(all(repository, last, Some("lock/c/z.yaml")).len(), 0);
        let mut seen = 0;
        repository
            .ledger(&last)
            .unwrap()
            .walk(&Query::default(), &mut |_| {
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
fn of_a_remote_only_its_environments_and_locks_come() {
    // With a server that can leave files out, and with one that cannot.
    let noise: String = (0..20_000).map(|number| format!("{}\n", number * 7919 % 10_007)).collect();
    let world = World::new(&[("lock/a/x.yaml", "1\n"), ("data.txt", &noise)]);
    world.commit(&[("lock/a/x.yaml", "2\n"), ("data.txt", &noise.replace('7', "8"))], "two");
    let third = world.commit(&[("lock/a/x.yaml", "3\n"), ("lock/b/y.yaml", "1\n")], "three");
    let server = Server::start(&world, None);
    let size = || {
        let folder = world.root().join("cache/history/objects/pack");
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum::<u64>()
    };
    let mut repository = Repository::open(world.options(&server.url())).unwrap();
    let whole = all(&mut repository, third, None);
    assert_eq!(
        whole.iter().map(files).collect::<Vec<_>>(),
        [vec!["lock/a/x.yaml 2>3", "lock/b/y.yaml ->1"], vec!["lock/a/x.yaml 1>2"], vec!["lock/a/x.yaml ->1"]]
    );
    let unfiltered = size();
    std::fs::remove_dir_all(world.root().join("cache/history")).unwrap();
    world.git(&world.up(), &["config", "uploadpack.allowFilter", "true"]);
    assert_eq!(all(&mut repository, third, None), whole);
    assert!(size() * 4 < unfiltered, "{} of {unfiltered}", size());
    // One that can leave files out, but may not.
    std::fs::remove_dir_all(world.root().join("cache/history")).unwrap();
    world.git(&world.up(), &["config", "uploadpackfilter.allow", "false"]);
    assert_eq!(all(&mut repository, third, None), whole);
    world.git(&world.up(), &["config", "uploadpackfilter.allow", "true"]);
    std::fs::remove_dir_all(world.root().join("cache/history")).unwrap();
    all(&mut repository, third, None);
    // More of it, and a rewritten branch.
    world.git(&world.up(), &["update-ref", "refs/heads/main", &third.to_string()]);
    let fourth = world.commit(&[("lock/a/x.yaml", "4\n"), ("data.txt", &noise.replace('6', "8"))], "four");
    let commits = all(&mut repository, fourth, None);
    assert_eq!((files(&commits[0]), commits.len()), (vec!["lock/a/x.yaml 3>4".to_owned()], 4));
    world.git(&world.work(), &["reset", "-q", "--hard", "HEAD~2"]);
    let other = world.commit(&[("lock/a/x.yaml", "5\n")], "other");
    let commits = all(&mut repository, other, None);
    assert_eq!(files(&commits[0]), ["lock/a/x.yaml 2>5"]);
    assert!(size() * 4 < unfiltered, "{} of {unfiltered}", size());
}

#[test]
fn former_commits_of_a_remote_are_whole() {
    // Also what a link leads to, and what a merge brought.
    let world = World::new(&[("larder.yaml", "x\n"), ("shared/s.yaml", "1\n"), ("environments/a/x.yaml", "1\n")]);
    std::os::unix::fs::symlink("../../shared/s.yaml", world.work().join("environments/a/link.yaml")).unwrap();
    world.commit(&[("lock/a/x.yaml", "1\n")], "a link");
    world.git(&world.work(), &["checkout", "-q", "-b", "side"]);
    world.commit(&[("shared/s.yaml", "2\n"), ("lock/a/x.yaml", "2\n")], "side");
    world.commit(&[("lock/a/x.yaml", "3\n")], "more");
    world.git(&world.work(), &["checkout", "-q", "main"]);
    world.git(&world.work(), &["merge", "-q", "--no-ff", "-m", "merge", "side"]);
    let last = world.commit(&[("shared/s.yaml", "3\n")], "last");
    world.git(&world.up(), &["config", "uploadpack.allowFilter", "true"]);
    let server = Server::start(&world, None);
    let (mut local, mut remote) = (world.local(), Repository::open(world.options(&server.url())).unwrap());
    let (local, remote) = (local.ledger(&last).unwrap(), remote.ledger(&last).unwrap());
    for revision in world.git(&world.up(), &["rev-list", "main"]).lines() {
        let commit = local.revision(revision).unwrap();
        assert_eq!(remote.snapshot(&commit).unwrap(), local.snapshot(&commit).unwrap(), "{revision}");
    }
}

#[test]
fn a_shallow_clone_tells_what_it_knows() {
    let world = World::new(&[("lock/a/x.yaml", "1\n")]);
    world.commit(&[("lock/a/x.yaml", "2\n")], "two");
    let last = world.commit(&[("lock/a/x.yaml", "3\n")], "three");
    let url = format!("file://{}", world.up().display());
    world.git(&world.root(), &["clone", "-q", "--bare", "--depth", "2", &url, "shallow.git"]);
    let mut repository = Repository::open(world.options(world.root().join("shallow.git").to_str().unwrap())).unwrap();
    let (commits, end) = walk(&mut repository, last, &Query::default());
    assert_eq!(commits.iter().map(files).collect::<Vec<_>>(), [vec!["lock/a/x.yaml 2>3"]]);
    assert_eq!(end, WalkEnd::Cut);
}

#[test]
fn only_what_is_asked_for_is_visited() {
    let world = World::new(&[("lock/a/x.yaml", "1\n")]);
    let mut repository = world.local();
    let first = tip(&mut repository);
    let last = pushed(push(&mut repository, first, &[("lock/a/x.yaml", "2\n")]));
    // With and without Git's index of commits.
    for graph in [false, true] {
        if graph {
            world.git(&world.up(), &["commit-graph", "write", "--reachable"]);
        }
        let mut subjects = |query: Query| {
            let (commits, end) = walk(&mut repository, last, &query);
            assert_eq!(end, WalkEnd::Start);
            commits.into_iter().map(|commit| commit.commit.subject).collect::<Vec<_>>()
        };
        let since =
            |since| Query { commits: CommitFilter { since: Some(since), ..Default::default() }, ..Query::default() };
        let until =
            |until| Query { commits: CommitFilter { until: Some(until), ..Default::default() }, ..Query::default() };
        let author = |author: &str| Query {
            commits: CommitFilter { author: Some(author.into()), ..Default::default() },
            ..Query::default()
        };
        assert_eq!(subjects(since(NOW)), ["lock: test"]);
        assert_eq!(subjects(since(NOW + 1)), [""; 0]);
        assert_eq!(subjects(until(NOW - 1)), ["first"]);
        assert_eq!(subjects(until(1_770_000_000)), ["first"]);
        assert_eq!(subjects(author("ADA@")), ["first"]);
        assert_eq!(subjects(author("larder <")), ["lock: test"]);
    }
}

#[test]
fn commits_by_name_and_by_time() {
    let world = World::new(&[("lock/a/x.yaml", "1\n")]);
    let mut local = world.local();
    let first = tip(&mut local);
    let last = pushed(push(&mut local, first, &[("lock/a/x.yaml", "2\n")]));
    world.git(&world.up(), &["tag", "v1", &first.to_string()]);
    let server = Server::start(&world, None);
    let mut remote = Repository::open(world.options(&server.url())).unwrap();
    tip(&mut remote);
    let (first, last) = (first.to_string(), last.to_string());
    for repository in [&mut local, &mut remote] {
        let ledger = repository.ledger(&last.parse().unwrap()).unwrap();
        let named = |text: &str| ledger.revision(text).map(|commit| commit.id);
        for text in ["HEAD", "@", "main", last.as_str(), &last[..8]] {
            assert_eq!(named(text).unwrap(), last, "{text}");
        }
        for text in ["HEAD~1", "@~", "main^", first.as_str(), &first[..8]] {
            assert_eq!(named(text).unwrap(), first, "{text}");
        }
        for text in
            ["", "-x", "HEAD~2", "HEAD..HEAD", "nothing", "HEAD:lock", "0000000000000000000000000000000000000000"]
        {
            assert!(matches!(named(text), Err(GitError::Revision { .. })), "{text}: {:?}", named(text));
        }
        let at = |seconds| ledger.at(seconds).unwrap().map(|commit| commit.id);
        assert_eq!(at(NOW), Some(last.clone()));
        assert_eq!(at(NOW - 1), Some(first.clone()));
        assert_eq!(at(1_769_999_999), None);
    }
    assert_eq!(local.ledger(&last.parse().unwrap()).unwrap().revision("v1").unwrap().id, first);
}
