//! Controllers that share a repository.

use super::{A, A2, B, answered, moves, with};
use crate::{
    model::{
        batch::Batch,
        environment::Environment,
        lock::{Lock, LockChange},
        resolution::Resolution,
    },
    stages::lock::{
        Inputs,
        testing::{answers, batch, change, environment, inputs, lock, locked, settings},
    },
};

/// The lock on a tip that another controller has pushed since the questions were asked of `asked`.
fn relock(environments: &Batch<Environment>, tip: &Lock, asked: &Lock, resolution: &Resolution) -> LockChange {
    crate::stages::lock::lock(&Inputs { asked, ..inputs(environments, &settings(), tip, resolution) })
}

// Two controllers with equal answers: the second one finds its work done.
#[test]
fn the_same_change_is_committed_once() {
    let environments = batch([environment("research/geo", &[&with(A, "notebook")])]);
    let asked = locked(&environments, &answered(A, "one"));
    let first = change(&environments, &asked, &answered(A, "two"));
    let second = relock(&environments, &first.lock, &asked, &answered(A, "two"));
    assert!(second.files.is_empty() && second.moves.is_empty());
}

// The slower one saw the registry before the tag moved: what is in Git is newer than its question.
#[test]
fn an_older_answer_gives_way_to_what_was_pushed_since() {
    let environments = batch([environment("research/geo", &[&with(A, "notebook"), &with(B, "r")])]);
    let asked = locked(&environments, &answers(&[&format!("{A}=one"), &format!("{B}=one")]));
    let tip = change(&environments, &asked, &answered(A, "two")).lock;
    let older = answers(&[&format!("{A}=one"), &format!("{B}=three")]);

    let after = relock(&environments, &tip, &asked, &older);
    assert_eq!(moves(&after), ["r one → three"], "only what nobody else has moved");
    assert!(after.problems.is_empty());

    let new_tip = change(&environments, &Lock::new(), &answered(A, "two")).lock;
    let after = relock(&environments, &new_tip, &Lock::new(), &older);
    assert_eq!(moves(&after), ["r - → three"], "also where nothing was locked when it was asked");
}

// A later pass asks of that tip, and its answers count.
#[test]
fn a_newer_answer_moves_what_others_pushed() {
    let environments = batch([environment("research/geo", &[&with(A, "notebook")])]);
    let tip = locked(&environments, &answered(A, "two"));
    assert_eq!(moves(&lock(&environments, &settings(), &tip, &answered(A, "three"))), ["notebook two → three"]);
}

// The push that won also changed the file: its reference needs an answer of its own.
#[test]
fn a_reference_that_changed_meanwhile_is_not_answered_by_the_old_one() {
    let asked = locked(&batch([environment("research/geo", &[&with(A, "notebook")])]), &answered(A, "one"));
    let environments = batch([environment("research/geo", &[&with(A2, "notebook")])]);
    let after = relock(&environments, &asked, &asked, &answered(A, "two"));
    assert!(after.files.is_empty());
    assert_eq!(after.problems.len(), 1);
}
