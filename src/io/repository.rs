//! The Git repository for asynchronous callers: gix blocks, so each call runs on a thread that may.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use super::git::{self, CommitId, Draft, Folders, GitError, Ledger, PushError, Pushed, Rebuilt, Tip, Trace};
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

    /// Makes sure that keys can be used and that larder's own commits will be accepted.
    ///
    /// # Errors
    /// See [`git::Repository::check_keys`].
    pub async fn check_keys(&self) -> Result<(), GitError> {
        self.blocking(|repository| repository.check_keys(seconds())).await
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
            Tip::Empty => Err(no_commit()),
        }
    }

    /// The commit that a revision names.
    pub async fn revision(&self, revision: &str) -> Result<CommitId, GitError> {
        let revision = revision.to_owned();
        self.blocking(move |repository| repository.revision(&revision)).await
    }

    /// Whether a commit is read only when a trusted key has signed it.
    pub async fn wants_signatures(&self) -> bool {
        self.blocking(|repository| repository.wants_signatures()).await
    }

    /// Whether a commit descends from another one, or is it. See [`git::Repository::descends`].
    ///
    /// # Errors
    /// [`GitError`].
    pub async fn descends(&self, tip: &CommitId, from: &CommitId) -> Result<bool, GitError> {
        let (tip, from) = (*tip, *from);
        self.blocking(move |repository| repository.descends(tip, from)).await
    }

    /// The files of that commit: a shallow fetch, when it is not there yet.
    pub async fn fetch(&self, commit: &CommitId) -> Result<Snapshot, GitError> {
        let commit = *commit;
        self.reading(move |repository| repository.fetch(&commit)).await
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
            let draft = Draft { parent, changes: &changes, message: &message, seconds: seconds() };
            repository.commit_and_push(&draft)
        })
        .await
    }

    /// Where a repository on this machine is; none for one elsewhere. See [`git::Repository::folders`].
    pub async fn folders(&self) -> Result<Option<Folders>, GitError> {
        self.blocking(|repository| repository.folders()).await
    }

    /// The address of the repository, without credentials.
    pub async fn remote(&self) -> String {
        self.blocking(|repository| repository.remote()).await
    }

    /// The branch that is followed, without `refs/heads/`, as far as it is known.
    pub async fn branch(&self) -> Option<String> {
        self.blocking(|repository| repository.branch().map(str::to_owned)).await
    }

    /// Makes `branch` one commit on `parent` with these changes, and never the tracked branch. See
    /// [`git::Repository::rebuild`].
    pub async fn rebuild(
        &self,
        branch: &str,
        parent: &CommitId,
        changes: &BTreeMap<String, Option<Vec<u8>>>,
        message: &str,
    ) -> Result<Rebuilt, PushError> {
        let (branch, parent, changes, message) = (branch.to_owned(), *parent, changes.clone(), message.to_owned());
        self.blocking(move |repository| {
            let draft = Draft { parent, changes: &changes, message: &message, seconds: seconds() };
            repository.rebuild(&branch, &draft)
        })
        .await
    }

    /// Removes a branch of larder's own; whether it was there. See [`git::Repository::remove_side`].
    pub async fn remove_side(&self, branch: &str) -> Result<bool, PushError> {
        let branch = branch.to_owned();
        self.blocking(move |repository| repository.remove_side(&branch)).await
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
        let from = match self.blocking(|repository| repository.detached()).await? {
            Some(head) => head,
            None => self.commit().await?,
        };
        Ok(self.reading(move |repository| read(&repository.ledger(&from)?)).await?)
    }

    /// The changes of some lockfiles in the latest `limit` commits below `tip`. See [`git::Repository::trace`].
    ///
    /// # Errors
    /// [`GitError`].
    pub async fn trace(&self, tip: &CommitId, paths: BTreeSet<String>, limit: usize) -> Result<Trace, GitError> {
        let tip = *tip;
        self.reading(move |repository| repository.trace(&tip, paths, limit)).await
    }

    /// What `read` ends with, given the latest `limit` commits below `tip`. See [`git::Repository::latest`].
    ///
    /// # Errors
    /// [`GitError`].
    pub async fn latest<T: Send + 'static>(
        &self,
        tip: &CommitId,
        limit: usize,
        read: impl FnOnce(&Ledger) -> Result<T, GitError> + Send + 'static,
    ) -> Result<T, GitError> {
        let tip = *tip;
        self.reading(move |repository| read(&repository.latest(&tip, limit)?)).await
    }

    /// A call that reads objects, some of which a partial clone may lack.
    async fn reading<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut git::Repository) -> Result<T, GitError> + Send + 'static,
    ) -> Result<T, GitError> {
        self.blocking(|repository| call(repository).map_err(|error| repository.explained(error))).await
    }

    async fn blocking<T: Send + 'static>(&self, call: impl FnOnce(&mut git::Repository) -> T + Send + 'static) -> T {
        let repository = self.0.clone();
        let call = move || call(&mut repository.lock().unwrap_or_else(PoisonError::into_inner));
        match tokio::task::spawn_blocking(call).await {
            Ok(value) => value,
            // The call panicked: continue panicking here, where the bug was called.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}

/// That there is nothing to read yet.
pub fn no_commit() -> Problem {
    Problem::new(Category::Git, "the repository has no commit yet")
        .hint("`larder init` makes the files of an environment repository; commit and push them")
}

/// Now, in seconds since 1970. A clock before that is no reason to fail.
fn seconds() -> i64 {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    i64::try_from(seconds).unwrap_or(i64::MAX)
}
