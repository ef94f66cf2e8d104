//! The lock computed anew in the light of its own history, which is asked only where it matters.

use std::{collections::BTreeSet, ops::ControlFlow};

use super::{LockMode, Memory, World};
use crate::{
    io::{git, repository::Repository},
    model::{
        failure::Problem,
        history::WalkEnd,
        lock::{Lock, LockChange},
        name::EnvironmentId,
        resolution::Resolution,
    },
    stages::{
        load::{self, Environments},
        lock::{
            self,
            past::{self, Past, Questions, Wishes},
            verdict::Evidence,
        },
    },
};

/// How many of the latest commits are looked at: more only when the fewer do not tell where an image's digest is from.
const DEPTHS: [usize; 2] = [64, 512];

/// The lock that follows from the answers, unless a person took an image back or a registry goes back.
///
/// The history is asked when an image is to move although its reference is the same, or when somebody else has moved one
/// since the last pass; so a pass over an unchanged world asks nothing. If it cannot be read, everything is as if there
/// were none.
pub(super) async fn relock<C, K>(
    world: &World<C, K>,
    memory: &mut Memory,
    commit: &git::CommitId,
    environments: &Environments,
    (asked, resolution): (&Lock, &Resolution),
) -> LockChange {
    let Environments { environments: files, settings, lock: old, .. } = environments;
    let change = lock::relock(files, settings, old, asked, resolution, &Evidence::default());
    if world.options.lock_mode == LockMode::Follow {
        return change;
    }
    let now = memory.snapshot(commit);
    let seen = now.as_ref().and_then(|now| memory.lockfiles_before(now));
    let questions = past::questions(files, old, seen.as_ref(), &change);
    let change = if questions.is_empty() {
        change
    } else {
        weigh(world, memory, commit, environments, (asked, resolution), &questions).await
    };
    memory.waits(&change, resolution, old);
    // What is to be held is found again until it is.
    if let (Some(now), true) = (now, change.holds.is_empty()) {
        memory.has_seen(now);
    }
    change
}

async fn weigh<C, K>(
    world: &World<C, K>,
    memory: &Memory,
    commit: &git::CommitId,
    environments: &Environments,
    (asked, resolution): (&Lock, &Resolution),
    questions: &Questions,
) -> LockChange {
    let Environments { environments: files, settings, lock: old, .. } = environments;
    let past = ask(&world.repository, commit, questions, old).await.unwrap_or_else(|problem| {
        tracing::warn!(%problem, "the lock's history could not be read; images move as if nobody had taken them back");
        Past::new()
    });
    let steadiness = memory.steadiness();
    let evidence = Evidence { past: Some(&past), steadiness: Some(&steadiness) };
    lock::relock(files, settings, old, asked, resolution, &evidence)
}

/// What the latest commits say about images.
///
/// # Errors
/// When the history cannot be read.
pub async fn ask(
    repository: &Repository,
    commit: &git::CommitId,
    questions: &Questions,
    old: &Lock,
) -> Result<Past, Problem> {
    let paths: BTreeSet<String> = questions.keys().map(EnvironmentId::lock_path).collect();
    let mut found = Past::new();
    for depth in DEPTHS {
        let trace = repository.trace(commit, paths.clone(), depth).await?;
        let (past, open) = past::past(questions, old, &trace.steps);
        found = past;
        if !open || trace.end == WalkEnd::Start {
            return without_later_wishes(repository, commit, (questions, old), found).await;
        }
    }
    tracing::info!(
        commits = DEPTHS[1],
        "some locked digests are older than what is looked at; nobody took them back lately"
    );
    Ok(found)
}

/// The same without the reversals after which the image's file has asked for what is locked, and now asks for something
/// else: then it is the file that was changed last.
async fn without_later_wishes(
    repository: &Repository,
    commit: &git::CommitId,
    (questions, old): (&Questions, &Lock),
    mut past: Past,
) -> Result<Past, Problem> {
    let mut wishes = Wishes::new(questions, old, &past);
    if !wishes.is_settled() {
        let read = move |ledger: &git::Ledger| {
            ledger.states(DEPTHS[0], &mut |snapshot| {
                // What cannot be read tells nothing.
                if let Ok(then) = load::load(&snapshot) {
                    wishes.see(&then.environments, &then.lock);
                }
                if wishes.is_settled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            Ok(wishes)
        };
        repository.latest(commit, DEPTHS[0], read).await?.take_away(&mut past);
    }
    Ok(past)
}
