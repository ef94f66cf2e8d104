//! What lockfiles were lately: through merges, and no deeper than is asked for.

use std::{collections::BTreeSet, fs};

use larder::{
    io::git::{CommitId, Repository, Trace},
    model::history::WalkEnd,
};

use super::{
    server::Server,
    world::{World, tip},
};

const X: &str = "lock/a/x.yaml";
const Y: &str = "lock/a/y.yaml";

fn trace(repository: &mut Repository, from: CommitId, paths: &[&str], limit: usize) -> Trace {
    let paths: BTreeSet<String> = paths.iter().map(|&path| path.to_owned()).collect();
    repository.trace(&from, paths, limit).unwrap()
}

/// `path old>new subject` of each change.
fn shown(trace: &Trace) -> Vec<String> {
    let text = |bytes: &Option<std::sync::Arc<[u8]>>| match bytes {
        Some(bytes) => String::from_utf8_lossy(bytes).trim().to_owned(),
        None => "-".into(),
    };
    let line = |step: &larder::model::history::LockStep| {
        let file = &step.file;
        format!("{} {}>{} {}", file.path, text(&file.old), text(&file.new), step.commit.subject)
    };
    trace.steps.iter().map(line).collect()
}

#[test]
fn changes_are_followed_through_merges() {
    let world = World::new(&[("larder.yaml", "x\n"), (X, "1\n"), (Y, "1\n")]);
    // A pull request that reverts x is merged, while y moves on the branch.
    world.commit(&[(X, "2\n")], "two");
    world.git(&world.work(), &["checkout", "-q", "-b", "side"]);
    fs::write(world.work().join(X), "1\n").unwrap();
    world.git(&world.work(), &["commit", "-q", "-am", "revert\n\nwith a body"]);
    world.git(&world.work(), &["checkout", "-q", "main"]);
    world.commit(&[(Y, "2\n")], "y moves");
    world.git(&world.work(), &["merge", "-q", "--no-ff", "-m", "merge", "side"]);
    // Someone pulls before they push: what the branch did is on the second parent.
    world.git(&world.work(), &["checkout", "-q", "-b", "local", "HEAD~1"]);
    fs::write(world.work().join("larder.yaml"), "y\n").unwrap();
    world.git(&world.work(), &["commit", "-q", "-am", "local"]);
    world.git(&world.work(), &["merge", "-q", "-m", "pulled", "main"]);
    world.git(&world.work(), &["branch", "-q", "-f", "main", "local"]);
    let last = world.commit(&[("larder.yaml", "z\n")], "pushed");

    let server = Server::start(&world, None);
    let mut remote = Repository::open(world.options(&server.url())).unwrap();
    for repository in [&mut world.local(), &mut remote] {
        let found = trace(repository, last, &[X], 64);
        assert_eq!(shown(&found), [format!("{X} 2>1 revert"), format!("{X} 1>2 two"), format!("{X} ->1 first")]);
        assert_eq!(found.end, WalkEnd::Start);
        assert_eq!(&*found.steps[0].message, "revert\n\nwith a body\n");
        let found = trace(repository, last, &[Y, "lock/b/none.yaml"], 64);
        assert_eq!(shown(&found), [format!("{Y} 1>2 y moves"), format!("{Y} ->1 first")]);
    }
}

// The history is asked for a bounded number of commits, in a cache of its own; the snapshot's stays one commit deep.
#[test]
fn only_as_much_history_comes_as_is_asked_for() {
    let world = World::new(&[("larder.yaml", "x\n"), (X, "0\n")]);
    for number in 1..=100 {
        let text = format!("{number}\n");
        let file = if number == 10 { X } else { "larder.yaml" };
        fs::write(world.work().join(file), text).unwrap();
        world.git(&world.work(), &["commit", "-q", "-am", &format!("{number}")]);
    }
    let last = world.commit(&[("larder.yaml", "last\n")], "last");
    let server = Server::start(&world, None);
    let mut remote = Repository::open(world.options(&server.url())).unwrap();
    assert_eq!(tip(&mut remote), last);
    remote.fetch(&last).unwrap();
    let commits = |cache: &str| {
        let folder = world.root().join("cache").join(cache);
        world.git(&folder, &["rev-list", "--count", &last.to_string()])
    };
    let short = trace(&mut remote, last, &[X], 64);
    assert_eq!((shown(&short), short.end), (vec![], WalkEnd::Cut));
    assert_eq!(commits("latest"), "64");
    let long = trace(&mut remote, last, &[X], 512);
    assert_eq!((shown(&long), long.end), (vec![format!("{X} 0>10 10"), format!("{X} ->0 first")], WalkEnd::Start));
    assert_eq!(commits("trees"), "1");
    // Nothing is asked for that is here.
    server.requests();
    for depth in [64, 512] {
        trace(&mut remote, last, &[X], depth);
    }
    assert_eq!(server.requests(), [""; 0]);
}
