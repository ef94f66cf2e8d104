//! What the lock's commits say: which digest an image had since when.

use serde::Serialize;

use super::{failure::Problem, lock::Move};

/// A commit that changed files under `lock/`, as Git has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockCommit {
    /// 40 hexadecimal digits.
    pub id: String,
    /// Who wrote it: `Name <address>`.
    pub author: String,
    /// Who committed it: `Name <address>`.
    pub committer: String,
    /// When it was committed.
    pub time: CommitTime,
    /// The first line of its message.
    pub subject: String,
    /// The files under `lock/` that differ from its first parent's.
    pub files: Vec<FileChange>,
}

/// When a commit was made, as the commit says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CommitTime {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub seconds: i64,
    /// The committer's offset from UTC in seconds, positive to the east.
    pub offset: i32,
}

/// A file before and after a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Path from the root of the environment repository, with `/`.
    pub path: String,
    /// Its bytes before; none when the commit adds it.
    pub old: Option<Vec<u8>>,
    /// Its bytes after; none when the commit removes it.
    pub new: Option<Vec<u8>>,
}

/// What one commit moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// The commit, 40 hexadecimal digits.
    pub commit: String,
    /// When it was committed.
    pub time: CommitTime,
    /// Who wrote it: `Name <address>`.
    pub author: String,
    /// The first line of its message.
    pub subject: String,
    /// What moved, in order of environments and images; at least one.
    pub moves: Vec<Move>,
}

/// What the lock's commits moved.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct History {
    /// Commits in the order in which they were given, without those that moved nothing.
    pub entries: Vec<HistoryEntry>,
    /// Lockfiles of the past that cannot be read; they were passed over.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
}
