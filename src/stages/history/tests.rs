//! History from lock commits.

use super::{Filter, history};
use crate::{
    model::{
        batch::Batch,
        environment::Environment,
        history::{CommitInfo, CommitTime, FileChange, LockCommit},
        lock::Lock,
        name::EnvironmentId,
    },
    stages::{
        lock::testing::{answers, batch, change, digest, environment, id},
        lockfile,
    },
};

const A: &str = "quay.io/x/a:1";

/// Path, bytes before, bytes after.
type Change<'a> = (&'a str, Option<Vec<u8>>, Option<Vec<u8>>);

fn commit(n: u8, files: Vec<Change>) -> LockCommit {
    let file = |(path, old, new): Change| FileChange {
        path: path.to_owned(),
        old: old.map(Into::into),
        new: new.map(Into::into),
    };
    let commit = CommitInfo {
        id: format!("{n:02x}").repeat(20),
        author: "Ada <ada@example.org>".to_owned(),
        committer: "larder <larder@example.org>".to_owned(),
        time: CommitTime { seconds: i64::from(n) * 3600, offset: 7200 },
        subject: format!("lock: {n}"),
    };
    LockCommit { commit, files: files.into_iter().map(file).collect() }
}

fn bytes(side: &Option<std::sync::Arc<[u8]>>) -> Option<Vec<u8>> {
    side.as_ref().map(|side| side.to_vec())
}

/// Commits as passes over these environments with these answers make them, oldest first.
fn commits(passes: &[(&Batch<Environment>, &str)]) -> Vec<LockCommit> {
    let mut lock = Lock::new();
    let mut commits = Vec::new();
    for (n, (environments, word)) in (1..).zip(passes) {
        let change = change(environments, &lock, &answers(&[&format!("{A}={word}")]));
        let bytes =
            |id: &EnvironmentId, lock: &Lock| lock.get(id).map(|lockfile| lockfile::write(lockfile.as_ref().unwrap()));
        let files = change.files.iter().map(|(path, new)| {
            let id = lockfile::environment_of(path).unwrap();
            (path.as_str(), bytes(&id, &lock), new.clone())
        });
        commits.push(commit(n, files.collect()));
        lock = change.lock;
    }
    commits
}

#[test]
fn each_commit_says_what_moved() {
    let one = batch([environment("research/geo", &[&format!("a={A}")])]);
    let both = batch([
        environment("research/geo", &[&format!("a={A}")]),
        environment("teaching/intro", &[&format!("a={A}"), &format!("b={A}")]),
    ]);
    let commits = commits(&[(&one, "one"), (&both, "one"), (&both, "two")]);
    let all = history(&commits, &Filter::default());
    assert_eq!(all.problems, []);
    let counts: Vec<_> = all.entries.iter().map(|entry| (entry.commit.subject.as_str(), entry.moves.len())).collect();
    assert_eq!(counts, [("lock: 1", 1), ("lock: 2", 2), ("lock: 3", 3)]);
    assert_eq!(all.entries[0].commit.author, "Ada <ada@example.org>");

    let geo = history(&commits, &Filter { environment: Some(id("research/geo")), image: None });
    let digests: Vec<_> = geo.entries.iter().map(|entry| entry.moves[0].new.clone().unwrap().digest).collect();
    assert_eq!(digests, [digest("one"), digest("two")], "the second commit is none of this environment's");

    let newest_first: Vec<_> = commits.iter().rev().cloned().collect();
    let reversed: Vec<_> = history(&newest_first, &Filter::default()).entries.into_iter().rev().collect();
    assert_eq!(reversed, all.entries);
}

#[test]
fn a_removed_environment_and_a_persons_revert_count() {
    let both =
        batch([environment("research/geo", &[&format!("a={A}")]), environment("research/maps", &[&format!("a={A}")])]);
    let one = batch([environment("research/maps", &[&format!("a={A}")])]);
    let mut commits = commits(&[(&both, "one"), (&one, "two")]);
    let moved = &commits[1].files.iter().find(|file| file.path == "lock/research/maps.yaml").unwrap().clone();
    commits.push(commit(9, vec![("lock/research/maps.yaml", bytes(&moved.new), bytes(&moved.old))]));
    let found = history(&commits, &Filter::default());
    let shown: Vec<_> = found.entries[1..]
        .iter()
        .flat_map(|entry| &entry.moves)
        .map(|moved| (moved.environment.to_string(), moved.new.as_ref().map(|new| new.digest.clone())))
        .collect();
    let (geo, maps) = ("research/geo".to_owned(), "research/maps".to_owned());
    assert_eq!(shown, [(geo, None), (maps.clone(), Some(digest("two"))), (maps, Some(digest("one")))]);
}

#[test]
fn unreadable_lockfiles_are_passed_over_with_a_problem() {
    let one = batch([environment("research/geo", &[&format!("a={A}")])]);
    let mut commits = commits(&[(&one, "one"), (&one, "two")]);
    let good = commits[1].files[0].clone();
    let torn = b"<<<<<<< ours\n".to_vec();
    let path = "lock/research/geo.yaml";
    commits.push(commit(3, vec![(path, bytes(&good.new), Some(torn.clone()))]));
    commits.push(commit(4, vec![(path, Some(torn), None), ("lock/README.md", None, Some(b"hello".to_vec()))]));
    let found = history(&commits, &Filter::default());
    assert_eq!(found.entries.len(), 2);
    let messages: Vec<_> = found.problems.iter().map(ToString::to_string).collect();
    let message = "lock/research/geo.yaml:1: passed over in commit";
    assert_eq!(messages.len(), 2);
    assert!(messages[0].starts_with(&format!("{message} 030303030303: ")), "{messages:?}");
    assert!(messages[1].starts_with(&format!("{message} 040404040404: ")), "{messages:?}");
}
