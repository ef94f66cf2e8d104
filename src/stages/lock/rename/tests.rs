//! Renames of environments, and what becomes of their lockfiles.

use super::{Renames, between, candidates, similarity};
use crate::{
    model::{
        lock::{Hold, Lock, LockChange, Rename},
        snapshot::{Entry, Snapshot},
    },
    stages::lock::{
        Inputs, message,
        testing::{answers, batch, digest, environment, id, inputs, locked, lockfile, name, settings},
    },
};

const A: &str = "quay.io/jupyter/scipy-notebook:2026-11-02";
const A2: &str = "quay.io/jupyter/scipy-notebook:2026-11-09";

fn snapshot(files: &[(&str, &str)]) -> Snapshot {
    let file = |(id, text): &(&str, &str)| (format!("environments/{id}.yaml"), Entry::File(text.as_bytes().into()));
    Snapshot { files: files.iter().map(file).collect(), ..Snapshot::default() }
}

fn rename(from: &str, to: &str) -> Rename {
    Rename { from: id(from), to: id(to) }
}

/// The lock of environments with one image each.
fn lock_of(ids: &[&str]) -> Lock {
    let environments = batch(ids.iter().map(|id| environment(id, &[&format!("notebook={A}")])));
    locked(&environments, &answers(&[&format!("{A}=one")]))
}

#[test]
fn files_are_paired_as_git_pairs_them() {
    let text = "a\nb\nc\nd\n";
    let half = "a\nb\nx\ny\n";
    let less = "a\nx\ny\nz\n";
    type Files<'a> = &'a [(&'a str, &'a str)];
    type Case<'a> = (&'a str, Files<'a>, Files<'a>, &'a [&'a str], Vec<Rename>);
    let cases: [Case; 9] = [
        ("a move", &[("t/y", text)], &[("t/x", text)], &["t/y"], vec![rename("t/y", "t/x")]),
        ("half of it", &[("t/y", text)], &[("t/x", half)], &["t/y"], vec![rename("t/y", "t/x")]),
        ("less than half", &[("t/y", text)], &[("t/x", less)], &["t/y"], vec![]),
        ("to another tenant", &[("t/y", text)], &[("u/x", text)], &["t/y"], vec![]),
        ("the most similar", &[("t/y", text)], &[("t/w", half), ("t/x", text)], &["t/y"], vec![rename("t/y", "t/x")]),
        ("two are gone", &[("t/y", text), ("t/z", half)], &[("t/x", text)], &["t/y", "t/z"], vec![]),
        ("it was there before", &[("t/y", text), ("t/x", text)], &[("t/x", text)], &["t/y"], vec![]),
        ("it has a lockfile", &[("t/y", text)], &[("t/x", text)], &["t/y", "t/x"], vec![]),
        ("the earlier file is unknown", &[], &[("t/x", text)], &["t/y"], vec![]),
    ];
    for (what, before, now, in_lock, expected) in cases {
        let environments = batch(now.iter().map(|(id, _)| environment(id, &["a=quay.io/a:1"])));
        let found = between(&snapshot(before), &snapshot(now), &environments, &lock_of(in_lock));
        assert_eq!(found, expected, "{what}");
    }
}

#[test]
fn similarity_is_of_the_larger_file() {
    for (old, new, percent) in [
        ("", "", 0),
        ("a\n", "", 0),
        ("a\nb\n", "b\na\n", 100),
        ("a\nb\n", "a\r\nb\r\n", 66),
        ("a\n", "a\na\na\na\n", 25),
        ("a\na\na\na\n", "a\n", 25),
    ] {
        assert_eq!(similarity(old.as_bytes(), new.as_bytes()), percent, "{old:?} {new:?}");
    }
}

#[test]
fn a_renamed_environment_keeps_its_digests_and_its_hold() {
    let mut old = lock_of(&["research/y"]);
    let entry = old.get_mut(&id("research/y")).unwrap().as_mut().unwrap().images.get_mut(&name("notebook")).unwrap();
    entry.hold = Some(Hold::of_person("exam"));
    let before = old[&id("research/y")].clone();
    let environments = batch([environment("research/x", &[&format!("notebook={A}")])]);
    assert_eq!(candidates(&environments, &old).len(), 1);
    let (settings, resolution) = (settings(), answers(&[&format!("{A}=two")]));
    let known = Renames { known: vec![rename("research/y", "research/x")], ..Renames::default() };
    let moved = |known: &Renames, old: &Lock, environments| -> LockChange {
        crate::stages::lock::lock(&Inputs { renames: known, ..inputs(environments, &settings, old, &resolution) })
    };
    let change = moved(&known, &old, &environments);
    assert_eq!(change.lock[&id("research/x")], before);
    assert!(!change.lock.contains_key(&id("research/y")) && change.moves.is_empty() && change.holds.is_empty());
    let files: Vec<_> = change.files.iter().map(|(path, bytes)| (path.as_str(), bytes.is_some())).collect();
    assert_eq!(files, [("lock/research/x.yaml", true), ("lock/research/y.yaml", false)]);
    let expected = "lock: rename research/y to research/x\n\n- research/y: renamed to research/x\n\n\
                    Larder-Environment: research/x\nLarder-Renamed-From: research/y\nLarder-Version: 0.1.0\n";
    assert_eq!(message(&change, "0.1.0"), expected);

    // Its digest is what it was; only a reference that changed as well is answered.
    let free = lock_of(&["research/y"]);
    assert!(moved(&known, &free, &environments).moves.is_empty());
    let other = batch([environment("research/x", &[&format!("notebook={A2}")])]);
    let resolution = answers(&[&format!("{A2}=two")]);
    let inputs = Inputs { renames: &known, ..inputs(&other, &settings, &free, &resolution) };
    let change = crate::stages::lock::lock(&inputs);
    assert_eq!(lockfile(&change.lock, "research/x").images[&name("notebook")].previous[0].digest, digest("one"));
    assert_eq!((change.moves.len(), change.files.len()), (1, 2));
    let text = message(&change, "0.1.0");
    assert!(text.starts_with("lock: research/x notebook 2026-11-02 → 2026-11-09\n"), "{text}");
    assert!(text.contains("\nLarder-Renamed-From: research/y\n"), "{text}");

    // A file that is suspended or broken takes its lockfile along as well.
    let broken = crate::model::failure::Problem::new(crate::model::failure::Category::Syntax, "no YAML");
    let broken = [(id("research/x"), Err(broken.into()))].into();
    assert_eq!(moved(&known, &old, &broken).lock[&id("research/x")], before);

    // Unknown is not absent.
    let ids = [id("research/x"), id("research/y")].into();
    let undecided = Renames { undecided: ids, ..Renames::default() };
    let change = moved(&undecided, &old, &environments);
    assert!(change.files.is_empty() && change.lock == old, "{change:?}");
}
