//! History: the commits that change lockfiles.

use std::ops::ControlFlow;

use super::{CommitId, GitError, Identity, Options, address::Address};

/// Which commits are wanted.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Only those that change this lockfile (path from the root of the environment repository); otherwise any.
    pub path: Option<String>,
}

/// A commit that changes lockfiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockCommit {
    /// Its identity.
    pub id: CommitId,
    /// Who wrote it.
    pub author: Identity,
    /// Who committed it.
    pub committer: Identity,
    /// When it was committed, in seconds since 1970 (UTC).
    pub seconds: i64,
    /// Its message.
    pub message: String,
    /// The lockfiles that it changes, by path.
    pub files: Vec<LockFileChange>,
}

/// One lockfile's bytes before and after a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockFileChange {
    /// Path from the root of the environment repository.
    pub path: String,
    /// Before; `None` when the commit adds it.
    pub old: Option<Vec<u8>>,
    /// After; `None` when the commit removes it.
    pub new: Option<Vec<u8>>,
}

pub(super) fn walk(
    _options: &Options,
    _address: &Address,
    _path: &[String],
    _from: CommitId,
    _query: &Query,
    _visit: &mut dyn FnMut(LockCommit) -> ControlFlow<()>,
) -> Result<(), GitError> {
    Ok(())
}

pub(super) fn contains(
    _options: &Options,
    _address: &Address,
    _tip: CommitId,
    _commit: CommitId,
) -> Result<bool, GitError> {
    Ok(true)
}
