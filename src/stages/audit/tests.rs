//! Blame and spans from lock commits made by passes.

use std::{ops::ControlFlow, sync::Arc};

use super::{Blamer, Spans, Wanted, difference};
use crate::{
    model::{
        history::{CommitInfo, CommitTime, FileChange, LockCommit, WalkEnd},
        lock::Lockfile,
    },
    stages::{
        lock::testing::{answers, batch, digest, environment, id, locked, lockfile},
        lockfile,
    },
};

const PATH: &str = "lock/research/geo.yaml";

/// The lockfile of `research/geo` whose images `a`, `b` have the digests of these words.
fn words(words: &[&str]) -> Lockfile {
    let images: Vec<_> = ["a", "b"].iter().zip(words).map(|(n, _)| format!("{n}=quay.io/x/{n}:1")).collect();
    let images: Vec<_> = images.iter().map(String::as_str).collect();
    let known: Vec<_> = ["a", "b"].iter().zip(words).map(|(n, word)| format!("quay.io/x/{n}:1={word}")).collect();
    let known: Vec<_> = known.iter().map(String::as_str).collect();
    lockfile(&locked(&batch([environment("research/geo", &images)]), &answers(&known)), "research/geo").clone()
}

fn info(n: usize) -> CommitInfo {
    CommitInfo {
        id: format!("{n:040}"),
        author: "Ada <ada@example.org>".to_owned(),
        committer: "larder <larder@example.org>".to_owned(),
        time: CommitTime { seconds: 0, offset: 0 },
        subject: n.to_string(),
    }
}

/// Commits from the oldest, numbered from 0: `-` removes the file, `!` breaks it, else words.
fn commits(contents: &[&str]) -> Vec<LockCommit> {
    let bytes = |content: &str| -> Option<Arc<[u8]>> {
        match content {
            "-" => None,
            "!" => Some(b"<<<<<<< ours\n".as_slice().into()),
            _ => Some(lockfile::write(&words(&content.split(' ').collect::<Vec<_>>())).into()),
        }
    };
    let mut old = None;
    let commit = |(n, content): (usize, &&str)| {
        let new = bytes(content);
        let files = vec![FileChange { path: PATH.to_owned(), old: old.clone(), new: new.clone() }];
        old = new;
        LockCommit { commit: info(n), files }
    };
    contents.iter().enumerate().map(commit).collect()
}

#[test]
fn blame_finds_the_commit_of_each_present_digest() {
    for (contents, expected) in [
        (&["one"][..], "0"),
        (&["one", "two"], "1"),
        (&["one two", "one three", "four three"], "2 1"),
        // Removed, and here again.
        (&["one", "-", "one"], "2"),
        // Unreadable in between: it was here all along, or came with what could be read again.
        (&["one", "!", "one"], "0"),
        (&["one", "!", "!", "two"], "3"),
        (&["!", "one"], "1"),
        // A new digest and back.
        (&["one", "two", "one"], "2"),
    ] {
        let last = contents.last().unwrap().split(' ').collect::<Vec<_>>();
        let mut blamer = Blamer::new(id("research/geo"), &words(&last));
        let ended = commits(contents).iter().rev().any(|commit| blamer.read(commit) == ControlFlow::Break(()));
        assert!(ended, "{contents:?}");
        let subject = |since: &Option<CommitInfo>| since.as_ref().unwrap().subject.clone();
        let found: Vec<_> = blamer.finish().images.iter().map(|row| subject(&row.since)).collect();
        assert_eq!(found.join(" "), expected, "{contents:?}");
    }
}

#[test]
fn a_digest_has_its_spans() {
    for (contents, expected) in [
        (&["one"][..], "a 0-"),
        (&["one", "two"], "a 0-1"),
        (&["two", "one", "two", "one"], "a 1-2, a 3-"),
        (&["one", "-", "one"], "a 0-1, a 2-"),
        (&["one", "!", "one", "two"], "a 0-3"),
        (&["one", "!", "!", "two"], "a 0-3"),
        (&["one", "!", "-"], "a 0-2"),
        (&["!", "one"], "a 1-"),
        (&["two", "!", "one"], "a 2-"),
        (&["one two", "two one"], "a 0-1, b 1-"),
        (&["two"], ""),
    ] {
        let wanted: Wanted = digest("one").as_str()[..20].parse().unwrap();
        let mut spans = Spans::new(wanted);
        commits(contents).iter().rev().for_each(|commit| spans.read(commit));
        let answer = spans.finish(WalkEnd::Start, &[]).unwrap();
        let subject = |commit: &Option<CommitInfo>| commit.as_ref().map(|commit| commit.subject.clone());
        let shown = answer.spans.iter().map(|span| {
            let (from, to) = (subject(&span.from).unwrap(), subject(&span.to).unwrap_or_default());
            format!("{} {from}-{to}", span.image)
        });
        assert_eq!(shown.collect::<Vec<_>>().join(", "), expected, "{contents:?}");
        assert_eq!(answer.digest.is_some(), !expected.is_empty());
    }
}

#[test]
fn what_was_before_the_history_is_not_guessed() {
    let all = commits(&["one", "two"]);
    let wanted: Wanted = digest("one").as_str().parse().unwrap();
    let mut spans = Spans::new(wanted.clone());
    spans.read(&all[1]);
    let answer = spans.finish(WalkEnd::Cut, &[]).unwrap();
    assert_eq!((answer.spans[0].from.clone(), answer.spans[0].to.clone()), (None, Some(info(1))));
    // It never changed in what is here.
    let platform = words(&["one"]).images.values().next().unwrap().platforms[0].digest.clone();
    for digest in [wanted, platform.as_str().parse().unwrap()] {
        let answer = Spans::new(digest).finish(WalkEnd::Cut, &all[0].files).unwrap();
        assert_eq!((answer.spans.len(), answer.spans[0].from.clone()), (1, None));
    }

    let mut blamer = Blamer::new(id("research/geo"), &words(&["one"]));
    assert_eq!(blamer.read(&commits(&["one", "one"])[1]), ControlFlow::Continue(()));
    assert_eq!(blamer.finish().images[0].since, None);
}

#[test]
fn a_difference_passes_over_what_cannot_be_read() {
    let all = commits(&["one", "two", "!"]);
    let found = difference(info(0), info(1), &all[1].files);
    assert_eq!((found.moves.len(), found.problems.len()), (1, 0));
    let found = difference(info(1), info(2), &all[2].files);
    assert_eq!((found.moves.len(), found.problems.len()), (0, 1));
}

#[test]
fn an_image_is_found_by_its_reference_or_its_repository() {
    for (wanted, expected) in
        [("quay.io/x/a:1", "a 0-1, a 1-2"), ("quay.io/x/a", "a 0-1, a 1-2"), ("quay.io/x/a:2", ""), ("quay.io/x", "")]
    {
        let mut spans = Spans::new(wanted.parse().unwrap());
        commits(&["one two", "three two", "-"]).iter().rev().for_each(|commit| spans.read(commit));
        let answer = spans.finish(WalkEnd::Start, &[]).unwrap();
        let subject = |commit: &Option<CommitInfo>| commit.as_ref().map(|commit| commit.subject.clone());
        let shown = answer.spans.iter().map(|span| {
            format!("{} {}-{}", span.image, subject(&span.from).unwrap(), subject(&span.to).unwrap_or_default())
        });
        let shown: Vec<_> = shown.collect();
        assert_eq!(shown.join(", "), expected, "{wanted}");
        assert_eq!(answer.digest, None, "there may be many");
    }
}

#[test]
fn a_beginning_of_an_index_and_of_a_platform_in_it_is_ambiguous() {
    let mut lockfile = words(&["one"]);
    let entry = lockfile.images.values_mut().next().unwrap();
    entry.digest = format!("sha256:aaaaaa1{}", "0".repeat(57)).parse().unwrap();
    entry.platforms[0].digest = format!("sha256:aaaaaa2{}", "0".repeat(57)).parse().unwrap();
    let new = Some(lockfile::write(&lockfile).into());
    let files = vec![FileChange { path: PATH.to_owned(), old: None, new }];
    let ask = |wanted: &str| {
        let mut spans = Spans::new(wanted.parse().unwrap());
        spans.read(&LockCommit { commit: info(0), files: files.clone() });
        spans.finish(WalkEnd::Start, &[])
    };
    assert_eq!(ask("aaaaaa").unwrap_err().len(), 2);
    assert_eq!(ask("aaaaaa2").unwrap().spans[0].platform.as_deref(), Some("linux/amd64"));
}
