//! History from lock commits.

use super::{Filter, Reader};
use crate::{
    model::{
        batch::Batch,
        environment::Environment,
        failure::Problem,
        history::{CommitFilter, CommitInfo, CommitTime, FileChange, HistoryEntry, LockCommit},
        lock::{Lock, Previous},
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

/// What commits moved that are given from the oldest, and the problems; from the oldest as well.
fn history(commits: &[LockCommit], filter: &Filter) -> (Vec<HistoryEntry>, Vec<Problem>) {
    let mut reader = Reader::new(filter.clone());
    commits.iter().rev().for_each(|commit| reader.read(commit.clone()));
    let (mut entries, problems) = reader.finish();
    entries.reverse();
    (entries, problems)
}

#[test]
fn each_commit_says_what_moved() {
    let one = batch([environment("research/geo", &[&format!("a={A}")])]);
    let both = batch([
        environment("research/geo", &[&format!("a={A}")]),
        environment("teaching/intro", &[&format!("a={A}"), &format!("b={A}")]),
    ]);
    let commits = commits(&[(&one, "one"), (&both, "one"), (&both, "two")]);
    let (all, problems) = history(&commits, &Filter::default());
    assert_eq!(problems, []);
    let counts: Vec<_> = all.iter().map(|entry| (entry.commit.subject.as_str(), entry.moves.len())).collect();
    assert_eq!(counts, [("lock: 1", 1), ("lock: 2", 2), ("lock: 3", 3)]);
    assert_eq!(all[0].commit.author, "Ada <ada@example.org>");

    let (geo, _) = history(&commits, &Filter { environment: Some(id("research/geo")), ..Filter::default() });
    let digests: Vec<_> = geo.iter().map(|entry| entry.moves[0].new.clone().unwrap().digest).collect();
    assert_eq!(digests, [digest("one"), digest("two")], "the second commit is none of this environment's");
}

#[test]
fn a_removed_environment_and_a_persons_revert_count() {
    let both =
        batch([environment("research/geo", &[&format!("a={A}")]), environment("research/maps", &[&format!("a={A}")])]);
    let one = batch([environment("research/maps", &[&format!("a={A}")])]);
    let mut commits = commits(&[(&both, "one"), (&one, "two")]);
    let moved = &commits[1].files.iter().find(|file| file.path == "lock/research/maps.yaml").unwrap().clone();
    commits.push(commit(9, vec![("lock/research/maps.yaml", bytes(&moved.new), bytes(&moved.old))]));
    let (found, _) = history(&commits, &Filter::default());
    let shown: Vec<_> = found[1..]
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
    let (found, problems) = history(&commits, &Filter::default());
    let moved = |entry: &HistoryEntry| {
        let side = |side: &Option<Previous>| side.as_ref().map_or("-", |entry| entry.digest.short()).to_owned();
        format!("{} {} {}", entry.commit.subject, side(&entry.moves[0].old), side(&entry.moves[0].new))
    };
    let (one, two) = (digest("one"), digest("two"));
    let (one, two) = (one.short(), two.short());
    let expected = [format!("lock: 1 - {one}"), format!("lock: 2 {one} {two}"), format!("lock: 4 {two} -")];
    assert_eq!(found.iter().map(moved).collect::<Vec<_>>(), expected, "compared with the last that can be read");
    let messages: Vec<_> = problems.iter().map(ToString::to_string).collect();
    let message = "lock/research/geo.yaml:1: passed over in commit 030303030303: ";
    assert!(messages.len() == 1 && messages[0].starts_with(message), "{messages:?}");

    // Other commits are read, but not shown.
    let late = CommitFilter { since: Some(4 * 3600), ..CommitFilter::default() };
    let (found, problems) = history(&commits, &Filter { commits: late, ..Filter::default() });
    assert_eq!((found.iter().map(moved).collect::<Vec<_>>(), problems.len()), (expected[2..].to_vec(), 1));
    let early = CommitFilter { until: Some(2 * 3600), ..CommitFilter::default() };
    let (found, problems) = history(&commits, &Filter { commits: early, ..Filter::default() });
    assert_eq!((found.len(), problems), (2, vec![]));
    // What is older than the history that is here is not guessed.
    assert_eq!(history(&commits[3..], &Filter::default()).0, []);
}
