//! What the lock step of a pass works with, and its result.

use std::{collections::BTreeMap, sync::Arc};

use super::{Memory, World, past};
use crate::{
    io::git,
    model::{
        failure::Problem,
        lock::LockChange,
        resolution::Resolution,
        settings::{self, Settings},
        snapshot::Snapshot,
    },
    stages::load::Environments,
};

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

/// How a pass moves the lock, regardless of who decided that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Commit,
    Propose,
    Follow,
}

impl LockMode {
    /// The same, with what `larder.yaml` says.
    pub(super) fn way(self, settings: &Settings) -> Way {
        match (self, settings.lock.mode) {
            (Self::Commit, _) | (Self::Configured, settings::LockMode::Commit) => Way::Commit,
            (Self::Branch, _) | (Self::Configured, settings::LockMode::Branch) => Way::Propose,
            (Self::Follow, _) => Way::Follow,
        }
    }
}

/// A commit, and what the registries answered: what a lock is computed from.
pub(super) struct Base {
    /// The branch's tip.
    pub commit: git::CommitId,
    /// Its files.
    pub snapshot: Arc<Snapshot>,
    /// The environments that they hold.
    pub environments: Environments,
    /// The answers.
    pub resolution: Resolution,
}

/// A commit whose lock is in force.
#[derive(Debug)]
pub struct Locked {
    /// The commit: the fetched tip, or the lock commit on it.
    pub commit: git::CommitId,
    /// The environments as that commit has them.
    pub environments: Environments,
    /// What changed in the lock, and the lock that is in force now.
    pub change: LockChange,
    /// What happened to the branch.
    pub outcome: Locking,
}

/// What happened to the branch.
#[derive(Clone, Debug, PartialEq)]
pub enum Locking {
    /// Nothing: there was nothing to lock.
    Unchanged,
    /// It got this lock commit.
    Committed(git::CommitId),
    /// It did not take the lock commit, or the proposal; the previous lock stays in force.
    Refused(Problem),
    /// Lock changes wait to be merged: at this pull request's address, or on this branch.
    Proposed(String),
}

impl Locked {
    /// The previous lock stays in force; what `change` found wrong is still reported.
    pub(super) fn unmoved(
        commit: git::CommitId,
        environments: Environments,
        change: LockChange,
        outcome: Locking,
    ) -> Self {
        let lock = environments.lock.clone();
        let (files, moves, holds, renames) = (BTreeMap::new(), Vec::new(), Vec::new(), Vec::new());
        let change = LockChange { lock, files, moves, holds, renames, ..change };
        Self { commit, environments, change, outcome }
    }

    /// The lock as it is, whatever it could be.
    pub(super) async fn follow<C, K>(world: &World<C, K>, memory: &mut Memory, base: Base) -> Self {
        let change = past::lock(world, memory, &base, &base.environments.lock).await;
        Self::unmoved(base.commit, base.environments, change, Locking::Unchanged)
    }
}

impl Locking {
    /// The lock commit, if there is one.
    pub fn commit(&self) -> Option<&git::CommitId> {
        match self {
            Self::Committed(commit) => Some(commit),
            Self::Unchanged | Self::Refused(_) | Self::Proposed(_) => None,
        }
    }

    /// Why the lock could not be committed or proposed, if it could not.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Refused(problem) => Some(problem),
            Self::Unchanged | Self::Committed(_) | Self::Proposed(_) => None,
        }
    }

    /// Where lock changes wait to be merged, if they do.
    pub fn proposal(&self) -> Option<&str> {
        match self {
            Self::Proposed(place) => Some(place),
            Self::Unchanged | Self::Committed(_) | Self::Refused(_) => None,
        }
    }
}
