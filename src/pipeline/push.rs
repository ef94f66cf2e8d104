//! The Git side of a pass: the commit's files in, the lock commit out, and what happens when another push was first.

use std::{sync::Arc, time::Duration};

use super::{
    Memory, RunError, World, forward,
    locked::{Base, Locked, Locking},
    past, record,
    resolve::resolve,
};
use crate::{
    io::{cluster::Cluster, git, registry::Credentials},
    model::{
        failure::Problem,
        lock::{Lock, LockChange},
        resolution::Resolution,
        snapshot::{Origin, Snapshot},
    },
    stages::{load, lock},
};

/// Pushes that are tried before a pass gives up; each lost race means that another writer's push was accepted.
pub(super) const ATTEMPTS: u32 = 6;

/// How long to wait after the attempt with that number, counted from 1, has lost its race.
pub(super) fn wait_after(attempt: u32) -> Duration {
    Duration::from_millis(fastrand::u64(20..120) << attempt)
}

/// The files of that commit, from memory when it is the one that was seen last.
pub(super) async fn fetch<C: Cluster, K>(
    world: &World<C, K>,
    memory: &mut Memory,
    tip: &git::CommitId,
) -> Result<Arc<Snapshot>, RunError> {
    if let Some(snapshot) = memory.snapshot(tip) {
        return Ok(snapshot);
    }
    forward::check(world, memory, tip).await?;
    let snapshot = Arc::new(world.repository.fetch(tip).await.map_err(Problem::from)?);
    tracing::info!(commit = %tip, files = snapshot.files.len(), "fetched");
    memory.keep(*tip, snapshot.clone());
    Ok(snapshot)
}

/// The result of one attempt to push a lock commit.
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
enum Attempt {
    /// It is known what happened to the branch.
    Done(Locked),
    /// Another push was first.
    Raced(Lost),
}

/// An attempt that the branch did not take.
struct Lost {
    commit: git::CommitId,
    snapshot: Arc<Snapshot>,
    resolution: Resolution,
    change: LockChange,
    error: git::PushError,
}

/// Commits what moved as a compare-and-swap. A lost race is fetched, recomputed on the new tip and pushed again; a
/// refusal leaves the previous lock in force.
pub(super) async fn commit<C: Cluster, K: Credentials>(
    world: &World<C, K>,
    memory: &mut Memory,
    mut base: Base,
) -> Result<Locked, RunError> {
    let asked = base.environments.lock.clone();
    let mut number = 1;
    loop {
        let lost = match attempt(world, memory, base, &asked).await? {
            Attempt::Done(locked) => return Ok(locked),
            Attempt::Raced(lost) if number == ATTEMPTS => return refused(memory, lost),
            Attempt::Raced(lost) => lost,
        };
        let wait = wait_after(number);
        number += 1;
        let wait_ms = wait.as_millis() as u64;
        tracing::info!(
            attempt = number,
            wait_ms,
            "push rejected (non-fast-forward): recomputing the lock on the new HEAD"
        );
        tokio::time::sleep(wait).await;
        let commit = world.repository.commit().await?;
        let snapshot = fetch(world, memory, &commit).await?;
        let environments = load::load(&snapshot).map_err(RunError)?;
        let mut resolution = lost.resolution;
        resolution.extend(resolve(world, memory, &environments).await?);
        base = Base { commit, snapshot, environments, resolution };
    }
}

async fn attempt<C, K>(
    world: &World<C, K>,
    memory: &mut Memory,
    base: Base,
    asked: &Lock,
) -> Result<Attempt, RunError> {
    let change = past::lock(world, memory, &base, asked).await;
    let Base { commit, snapshot, environments, resolution } = base;
    if change.files.is_empty() {
        return Ok(Attempt::Done(Locked { commit, environments, change, outcome: Locking::Unchanged }));
    }
    // From here on the environments are those that the commit will have; there may be many, so not both are kept.
    drop(environments);
    let mut next = record::with_files(&snapshot, &change);
    let environments = load::load(&next).map_err(RunError)?;
    let message = lock::message(&change, env!("CARGO_PKG_VERSION"));
    let message = lock::with_manifests(&message, &record::digest(&environments, memory.recorder()));
    match world.repository.commit_and_push(&commit, &change.files, &message).await {
        Ok(git::Pushed::Nothing) => {
            Ok(Attempt::Done(Locked { commit, environments, change, outcome: Locking::Unchanged }))
        }
        Ok(git::Pushed::Commit(commit)) => {
            tracing::info!(%commit, moved = change.moves.len(), "lock committed");
            next.origin = Origin::Commit(commit.to_string());
            let next = Arc::new(next);
            memory.has_seen(next.clone());
            memory.keep(commit, next);
            Ok(Attempt::Done(Locked { commit, environments, change, outcome: Locking::Committed(commit) }))
        }
        Err(error) => {
            let is_race = matches!(error, git::PushError::Raced { .. });
            let lost = Lost { commit, snapshot, resolution, change, error };
            if is_race { Ok(Attempt::Raced(lost)) } else { refused(memory, lost).map(Attempt::Done) }
        }
    }
}

/// The previous lock stays in force, and all that was resolved is asked again.
fn refused(memory: &mut Memory, lost: Lost) -> Result<Locked, RunError> {
    let Lost { commit, snapshot, resolution, change, error } = lost;
    let problem = Problem::from(error);
    tracing::warn!(%problem, "the lock could not be committed; the previous one stays in force");
    memory.forget(&resolution);
    let environments = load::load(&snapshot).map_err(RunError)?;
    Ok(Locked::unmoved(commit, environments, change, Locking::Refused(problem)))
}
