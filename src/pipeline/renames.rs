//! Environments whose files got other names, which the history is asked about where a lockfile has lost its file.

use std::ops::ControlFlow;

use crate::{
    io::{git, repository::Repository},
    model::{failure::Problem, snapshot::Snapshot},
    stages::{
        load::Environments,
        lock::rename::{self, Candidate, Renames},
    },
};

/// How many commits are searched for the file that is gone.
const DEPTH: usize = 64;

/// The renames between the newest commits, at `commit` or below it, that still have the files that are gone, and `now`.
pub async fn find(
    repository: &Repository,
    commit: &git::CommitId,
    now: &Snapshot,
    environments: &Environments,
) -> Renames {
    let candidates = rename::candidates(&environments.environments, &environments.lock);
    if candidates.is_empty() {
        return Renames::default();
    }
    let undecided = candidates.iter().flat_map(|one| [&one.gone].into_iter().chain(&one.there).cloned()).collect();
    match decide(repository, commit, now, candidates).await {
        Ok(known) => Renames { known, ..Renames::default() },
        Err(problem) => {
            tracing::warn!(%problem, "the history could not be read; environments that may have been renamed stay");
            Renames { undecided, ..Renames::default() }
        }
    }
}

async fn decide(
    repository: &Repository,
    commit: &git::CommitId,
    now: &Snapshot,
    mut open: Vec<Candidate>,
) -> Result<Vec<crate::model::lock::Rename>, Problem> {
    let now = now.clone();
    let read = move |ledger: &git::Ledger| {
        let mut known = Vec::new();
        ledger.states(DEPTH, &mut |before| {
            for candidate in open.extract_if(.., |candidate| candidate.is_in(&before)) {
                known.extend(candidate.decide(&before, &now));
            }
            if open.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(known)
    };
    Ok(repository.latest(commit, DEPTH, read).await?)
}
