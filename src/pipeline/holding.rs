//! A person's holds, releases and rollbacks: one commit on the branch, in that person's name.

use std::sync::Arc;

use jiff::civil::Date;

use super::{
    audit::{Moment, find, too_early},
    push::{ATTEMPTS, wait_after},
    record::{self, with_files},
};
use crate::{
    io::{
        git::{self, CommitId},
        repository::Repository,
    },
    model::{
        failure::{Failure, Problem},
        history::CommitInfo,
        lock::{Hold, HoldOrigin, LockChange, Lockfile},
        name::{EnvironmentId, Name},
    },
    stages::{
        load,
        lock::{
            self,
            holds::{self, Act, Target},
        },
        lockfile,
        render::Renderer,
    },
};

/// What a person asks for.
#[derive(Clone, Debug)]
pub struct Order {
    /// Whose images.
    pub environment: EnvironmentId,
    /// Which images; none: all that are locked.
    pub images: Vec<Name>,
    /// What is to become of them.
    pub wish: Wish,
    /// Whether it is done, or only said.
    pub mode: Mode,
}

/// What is to become of images.
#[derive(Clone, Debug)]
pub enum Wish {
    /// They stay at what is locked.
    Hold(Hold),
    /// They may move again.
    Release,
    /// They go back to what was locked then, and stay there.
    RollBack {
        /// When.
        to: Moment,
        /// Why; by default that they were rolled back, and to which commit.
        reason: Option<String>,
        /// The last day of the hold, if it has one.
        until: Option<Date>,
    },
}

/// Whether something is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It is.
    Commit,
    /// It is only said what would be done.
    DryRun,
}

/// What was done.
#[derive(Debug)]
pub struct Done {
    /// The commit; none when nothing was to be done, or nothing was meant to be.
    pub commit: Option<CommitId>,
    /// What it changes.
    pub change: LockChange,
}

/// Does what a person asks for. When another push comes first, it is computed again on the new HEAD commit.
///
/// # Errors
/// When that cannot be done to these images, or the remote does not take the commit.
pub async fn carry_out(repository: &Arc<Repository>, order: &Order) -> Result<Done, Failure> {
    let act = match &order.wish {
        Wish::Hold(hold) => Act::Hold(hold.clone()),
        Wish::Release => Act::Release,
        Wish::RollBack { to, reason, until } => {
            let (commit, then) = lockfile_at(repository, to.clone(), &order.environment).await?;
            let revision = commit.short().to_owned();
            let reason = reason.clone().unwrap_or_else(|| format!("rolled back to {revision}"));
            let hold = Hold { reason, origin: HoldOrigin::Person, until: *until };
            Act::RollBack { then, revision, hold }
        }
    };
    let mut attempt = 1;
    loop {
        let tip = repository.commit().await?;
        let snapshot = repository.fetch(&tip).await.map_err(Problem::from)?;
        let environments = load::load(&snapshot)?;
        let target = Target { environment: &order.environment, images: &order.images };
        let change = holds::act(&environments.lock, &environments.settings, target, &act)?;
        if order.mode == Mode::DryRun || change.files.is_empty() {
            return Ok(Done { commit: None, change });
        }
        let next = load::load(&with_files(&snapshot, &change))?;
        let message = lock::message(&change, env!("CARGO_PKG_VERSION"));
        let message = lock::with_manifests(&message, &record::digest(&next, &mut Renderer::default()));
        match repository.commit_and_push(&tip, &change.files, &message).await {
            Ok(git::Pushed::Commit(commit)) => return Ok(Done { commit: Some(commit), change }),
            Ok(git::Pushed::Nothing) => return Ok(Done { commit: None, change }),
            Err(git::PushError::Raced { .. }) if attempt < ATTEMPTS => {
                tokio::time::sleep(wait_after(attempt)).await;
                attempt += 1;
            }
            Err(error) => return Err(Problem::from(error).into()),
        }
    }
}

/// An environment's lockfile at a moment; without images where there was none.
async fn lockfile_at(
    repository: &Arc<Repository>,
    moment: Moment,
    environment: &EnvironmentId,
) -> Result<(CommitInfo, Lockfile), Failure> {
    let path = environment.lock_path();
    let read = {
        let path = path.clone();
        move |ledger: &git::Ledger| {
            let Some(commit) = find(ledger, &moment)? else { return Ok(None) };
            let bytes = ledger.file_in(&commit, &path)?;
            Ok(Some((commit, bytes)))
        }
    };
    let (commit, bytes) = repository.ledger(read).await?.ok_or_else(too_early)?;
    let lockfile = bytes.map_or_else(|| Ok(Lockfile::default()), |bytes| lockfile::parse(&path, &bytes))?;
    Ok((commit, lockfile))
}
