//! The lock recomputed in the light of its own history, which is read only where it matters.

use std::{collections::BTreeSet, ops::ControlFlow};

use super::{
    Memory, World,
    locked::{Base, LockMode},
    memory::today,
    renames,
};
use crate::{
    io::{git, repository::Repository},
    model::{
        failure::Problem,
        history::WalkEnd,
        lock::{Lock, LockChange},
        name::EnvironmentId,
    },
    stages::{
        load::{self, Environments},
        lock::{
            self, Inputs,
            past::{self, Past, Questions, Wishes},
            rename::Renames,
            verdict::{Guards, History},
        },
    },
};

/// How many of the latest commits are looked at: more only when the fewer do not tell where an image's digest is from.
const DEPTHS: [usize; 2] = [64, 512];

/// The lock that follows from the answers, unless a person reverted an image or a registry goes back. `asked` is the
/// lock that the questions were asked of.
///
/// The history is asked when an image is to move although its reference is the same, or when another writer has moved one
/// since the last pass; so a pass over an unchanged world asks nothing.
pub(super) async fn lock<C, K>(world: &World<C, K>, memory: &mut Memory, base: &Base, asked: &Lock) -> LockChange {
    let Environments { environments, settings, .. } = &base.environments;
    let mut change = weigh(world, memory, base, asked).await;
    lock::warn(environments, settings, &memory.warnings(), &mut change);
    change
}

/// As [`lock`], without what is wrong with images whose questions have an answer.
pub(super) async fn weigh<C, K>(world: &World<C, K>, memory: &mut Memory, base: &Base, asked: &Lock) -> LockChange {
    let Environments { environments, settings, lock: old, .. } = &base.environments;
    let guards = Guards::default();
    let renames = match world.options.lock_mode {
        LockMode::Follow => Renames::default(),
        LockMode::Configured | LockMode::Commit | LockMode::Branch => {
            renames::find(&world.repository, &base.commit, &base.snapshot, &base.environments).await
        }
    };
    let (resolution, renames) = (&base.resolution, &renames);
    let inputs = Inputs { environments, settings, lock: old, asked, resolution, guards, renames, today: today() };
    let change = lock::lock(&inputs);
    if world.options.lock_mode == LockMode::Follow {
        return change;
    }
    let seen = memory.lockfiles_before(&base.snapshot);
    let questions = past::questions(environments, old, seen.as_ref(), &change);
    let read = match questions.is_empty() {
        true => None,
        false => Some(ask(&world.repository, &base.commit, &questions, old).await),
    };
    let change = match &read {
        None => change,
        Some(read) => {
            if let Err(problem) = read {
                tracing::warn!(%problem, "the lock's history could not be read; images with unchanged references stay");
            }
            let steadiness = memory.steadiness();
            let guards = Guards { past: History::from(read), steadiness: Some(&steadiness) };
            lock::lock(&Inputs { guards, ..inputs })
        }
    };
    memory.waits(&change, &base.resolution, old);
    // What is to be held is found again until it is.
    if change.holds.is_empty() && !matches!(read, Some(Err(_))) {
        memory.has_seen(base.snapshot.clone());
    }
    change
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
            return without_later_wishes(repository, commit, questions, old, found).await;
        }
    }
    tracing::info!(
        commits = DEPTHS[1],
        "some locked digests are older than the commits that are searched; nobody reverted them lately"
    );
    Ok(found)
}

/// The same without the reversals after which the image's file has asked for what is locked, and now asks for something
/// else: then it is the file that was changed last.
async fn without_later_wishes(
    repository: &Repository,
    commit: &git::CommitId,
    questions: &Questions,
    old: &Lock,
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
