//! Commit statuses at the forge: pending while nodes pull, success when they have everything, failure with the reason.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    io::forge::Forge,
    model::{
        forge::CommitStatus,
        status::{Reason, Status},
    },
    stages::status,
};

/// Between two attempts to set a status that the forge did not take; doubled each time.
const SHORTEST: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_secs(60);

/// Commits whose status is remembered, so that nothing is set twice.
const REMEMBERED: usize = 16;

/// Sets commit statuses.
pub struct CommitStatuses {
    forge: Forge,
    /// What tells the statuses of several larders apart.
    context: String,
    /// The latest statuses that were set.
    set: Vec<(String, CommitStatus)>,
}

impl CommitStatuses {
    /// A reporter that has set none yet.
    pub fn new(forge: Forge, instance: &str) -> Self {
        Self { forge, context: format!("larder/{instance}"), set: Vec::new() }
    }

    /// Follows the status until `shutdown`.
    pub fn start(mut self, mut status: watch::Receiver<Arc<Status>>, shutdown: &CancellationToken) {
        let shutdown = shutdown.clone();
        tokio::spawn(async move {
            let mut wait = SHORTEST;
            loop {
                let now = status.borrow_and_update().clone();
                let all_set = self.report(&now).await;
                wait = if all_set { SHORTEST } else { (wait * 2).min(LONGEST) };
                tokio::select! {
                    () = shutdown.cancelled() => return,
                    changed = status.changed() => {
                        if changed.is_err() {
                            return;
                        }
                    }
                    () = tokio::time::sleep(wait), if !all_set => {}
                }
            }
        });
    }

    /// Sets what is new; whether the forge took all of it.
    pub async fn report(&mut self, status: &Status) -> bool {
        let Some(commit_status) = status::of_commit(status) else { return true };
        let mut all_set = true;
        for commit in commits(status) {
            if self.set.iter().any(|(known, last)| known == commit && *last == commit_status) {
                continue;
            }
            match self.forge.set_status(commit, &self.context, &commit_status).await {
                Ok(()) => {
                    let (state, description) = (commit_status.state.as_str(), &commit_status.description);
                    tracing::info!(commit, state, description, "commit status set");
                    self.set.retain(|(known, _)| known != commit);
                    self.set.push((commit.to_owned(), commit_status.clone()));
                    let surplus = self.set.len().saturating_sub(REMEMBERED);
                    self.set.drain(..surplus);
                }
                Err(problem) => {
                    let hint = problem.hint.as_deref();
                    tracing::warn!(commit, hint, "the commit status could not be set: {}", problem.message);
                    all_set = false;
                }
            }
        }
        all_set
    }
}

/// The commits that the status is about: the tip that the pass started on, and the commit that it rendered, which is the
/// lock commit where there was something to lock. What cannot start is about the tip alone.
fn commits(status: &Status) -> Vec<&str> {
    let mut commits: Vec<&str> = status.last_pass.tip.iter().map(String::as_str).collect();
    if status.problems_of(Reason::CannotStart).next().is_none() {
        commits.extend(status.commit.as_deref());
    }
    commits.dedup();
    commits
}
