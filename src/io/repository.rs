//! The Git repository for asynchronous callers: gix blocks, so each call runs on a thread that may.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use super::git::{self, CommitId, Draft, GitError, Ledger, PushError, Pushed, Tip};
use crate::model::{
    failure::{Category, Problem},
    snapshot::Snapshot,
};

/// A [`git::Repository`], one call at a time.
pub struct Repository(Arc<Mutex<git::Repository>>);

impl Repository {
    /// See [`git::Repository::open`].
    pub fn open(options: git::Options) -> Result<Self, GitError> {
        Ok(Self(Arc::new(Mutex::new(git::Repository::open(options)?))))
    }

    /// What the branch points to now: one `ls-refs`.
    pub async fn tip(&self) -> Result<Tip, GitError> {
        self.blocking(super::git::Repository::tip).await
    }

    /// The commit that the branch points to now; that there is none is a problem.
    pub async fn commit(&self) -> Result<CommitId, Problem> {
        match self.tip().await? {
            Tip::Commit(commit) => Ok(commit),
            Tip::Gone { branch } => {
                Err(Problem::new(Category::Git, format!("the repository has no branch `{branch}`"))
                    .hint("name one with --branch"))
            }
            Tip::Empty => Err(Problem::new(Category::Git, "the repository has no commit yet")
                .hint("`larder init` makes the files of an environment repository; commit and push them")),
        }
    }

    /// The commit that a revision names.
    pub async fn revision(&self, revision: &str) -> Result<CommitId, GitError> {
        let revision = revision.to_owned();
        self.blocking(move |repository| repository.revision(&revision)).await
    }

    /// The files of that commit: a shallow fetch, when it is not there yet.
    pub async fn fetch(&self, commit: &CommitId) -> Result<Snapshot, GitError> {
        let commit = *commit;
        self.blocking(move |repository| repository.fetch(&commit)).await
    }

    /// One commit on `parent` with these changes, pushed as a compare-and-swap. `Pushed::Nothing` when the files are
    /// like that already.
    pub async fn commit_and_push(
        &self,
        parent: &CommitId,
        changes: &BTreeMap<String, Option<Vec<u8>>>,
        message: &str,
    ) -> Result<Pushed, PushError> {
        let (parent, changes, message) = (*parent, changes.clone(), message.to_owned());
        self.blocking(move |repository| {
            // A clock before 1970 is no reason to fail.
            let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
            let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
            repository.commit_and_push(&Draft { parent, changes: &changes, message: &message, seconds })
        })
        .await
    }

    /// Reads the history of the branch's tip. For a repository on this machine that needs no network; of others, what
    /// is not here yet is fetched.
    ///
    /// # Errors
    /// What `read` ends with, or that there is no history to read.
    pub async fn ledger<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Ledger) -> Result<T, GitError> + Send + 'static,
    ) -> Result<T, Problem> {
        let from = self.commit().await?;
        Ok(self.blocking(move |repository| read(&repository.ledger(&from)?)).await?)
    }

    async fn blocking<T: Send + 'static>(&self, call: impl FnOnce(&mut git::Repository) -> T + Send + 'static) -> T {
        let repository = self.0.clone();
        let call = move || call(&mut repository.lock().unwrap_or_else(PoisonError::into_inner));
        match tokio::task::spawn_blocking(call).await {
            Ok(value) => value,
            // The call panicked: go on panicking here, where the bug was called.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}
