//! The Git side of a pass: the commit's files in, the lock commit out, and what happens when somebody was faster.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::{Memory, RunError, World, forward, past, propose, record, resolve::resolve};
use crate::{
    io::{cluster::Cluster, git, registry::Credentials},
    model::{
        failure::Problem,
        lock::LockChange,
        resolution::Resolution,
        settings::{self, Settings},
        snapshot::{Origin, Snapshot},
    },
    stages::{
        load::{self, Environments},
        lock,
    },
};

/// Pushes that are tried before a pass gives up; each lost race means that somebody else's push was taken.
pub(super) const ATTEMPTS: u32 = 6;

/// How long to wait after the attempt with that number, counted from 1, has lost its race.
pub(super) fn wait_after(attempt: u32) -> Duration {
    Duration::from_millis(fastrand::u64(20..120) << attempt)
}

/// Whether and how a pass may move the lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LockMode {
    /// As `larder.yaml` says.
    #[default]
    Configured,
    /// What has moved is committed to the branch.
    Commit,
    /// What has moved is proposed from a branch of larder's own, by pull request where there is a forge.
    Branch,
    /// The lock is taken as it is: no registry is asked and nothing is pushed.
    Follow,
}

/// A commit whose lock is in force.
#[derive(Debug)]
pub struct Locked {
    /// The commit: the fetched tip, or the lock commit on it.
    pub commit: git::CommitId,
    /// The lock commit, when there was something to commit.
    pub lock_commit: Option<git::CommitId>,
    /// The environments as that commit has them.
    pub environments: Environments,
    /// What changed in the lock, and the lock that is in force now.
    pub change: LockChange,
    /// Why the lock could not be committed. The former lock is in force then.
    pub problem: Option<Problem>,
    /// Where lock changes wait to be merged: the pull request's address, or the branch.
    pub proposal: Option<String>,
}

impl LockMode {
    /// Whether lock changes are proposed.
    fn proposes(self, settings: &Settings) -> bool {
        match self {
            Self::Configured => settings.lock.mode == settings::LockMode::Branch,
            Self::Branch => true,
            Self::Commit | Self::Follow => false,
        }
    }
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

/// Commits what moved as a compare-and-swap. A lost race is fetched, recomputed on the new tip and pushed again; a
/// refusal leaves the former lock in force.
pub(super) async fn lock<C: Cluster, K: Credentials>(
    world: &World<C, K>,
    memory: &mut Memory,
    tip: &git::CommitId,
    mut snapshot: Arc<Snapshot>,
    mut environments: Environments,
    mut resolution: Resolution,
) -> Result<Locked, RunError> {
    if world.options.lock_mode.proposes(&environments.settings) {
        return Ok(propose::propose(world, memory, tip, environments, resolution).await);
    }
    let asked = environments.lock.clone();
    let mut commit = *tip;
    let mut attempt = 1;
    loop {
        let mut change = past::relock(world, memory, &commit, &environments, (&asked, &resolution)).await;
        let Environments { environments: files, settings, .. } = &environments;
        lock::warn(files, settings, &memory.warnings(), &mut change);
        if world.options.lock_mode == LockMode::Follow {
            let change = unmoved(&environments, change);
            return Ok(Locked { commit, lock_commit: None, environments, change, problem: None, proposal: None });
        }
        if change.files.is_empty() {
            return Ok(Locked { commit, lock_commit: None, environments, change, problem: None, proposal: None });
        }
        // From here on the environments are those that the commit will have; there may be many, so not both are kept.
        drop(environments);
        let mut next = record::with_files(&snapshot, &change);
        environments = load::load(&next).map_err(RunError)?;
        let message = lock::message(&change, env!("CARGO_PKG_VERSION"));
        let message = lock::with_manifests(&message, &record::digest(&environments, memory.recorder()));
        match world.repository.commit_and_push(&commit, &change.files, &message).await {
            Ok(git::Pushed::Nothing) => {
                return Ok(Locked { commit, lock_commit: None, environments, change, problem: None, proposal: None });
            }
            Ok(git::Pushed::Commit(lock_commit)) => {
                tracing::info!(commit = %lock_commit, moved = change.moves.len(), "lock committed");
                next.origin = Origin::Commit(lock_commit.to_string());
                let next = Arc::new(next);
                memory.has_seen(next.clone());
                memory.keep(lock_commit, next);
                return Ok(Locked {
                    commit: lock_commit,
                    lock_commit: Some(lock_commit),
                    environments,
                    change,
                    problem: None,
                    proposal: None,
                });
            }
            Err(git::PushError::Raced { .. }) if attempt < ATTEMPTS => {
                let wait = wait_after(attempt);
                attempt += 1;
                let wait_ms = wait.as_millis() as u64;
                tracing::info!(
                    attempt,
                    wait_ms,
                    "push rejected (non-fast-forward): recomputing the lock on the new tip"
                );
                tokio::time::sleep(wait).await;
                commit = world.repository.commit().await?;
                snapshot = fetch(world, memory, &commit).await?;
                environments = load::load(&snapshot).map_err(RunError)?;
                resolution.extend(resolve(world, memory, &environments).await?);
            }
            Err(error) => {
                let problem = Problem::from(error);
                tracing::warn!(%problem, "the lock could not be committed; the former one stays in force");
                memory.forget(&resolution);
                let environments = load::load(&snapshot).map_err(RunError)?;
                let change = unmoved(&environments, change);
                return Ok(Locked {
                    commit,
                    lock_commit: None,
                    environments,
                    change,
                    problem: Some(problem),
                    proposal: None,
                });
            }
        }
    }
}

/// The former lock stays in force; what the change found wrong is still reported.
pub(super) fn unmoved(environments: &Environments, change: LockChange) -> LockChange {
    LockChange {
        lock: environments.lock.clone(),
        files: BTreeMap::new(),
        moves: Vec::new(),
        holds: Vec::new(),
        ..change
    }
}
