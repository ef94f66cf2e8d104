//! What the lock's commits say: which digest an image had since when.

use std::sync::Arc;

use serde::Serialize;

use super::{
    digest::Digest,
    failure::Problem,
    lock::{HoldChange, Move},
    name::{EnvironmentId, Name},
    reference::ImageReference,
};

/// A commit, as people name and date it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CommitInfo {
    /// 40 hexadecimal digits.
    pub id: String,
    /// Who wrote it: `Name <address>`; empty when the commit does not say it in a form that Git reads.
    pub author: String,
    /// Who committed it: `Name <address>`.
    pub committer: String,
    /// When it was committed.
    pub time: CommitTime,
    /// The first line of its message.
    pub subject: String,
}

impl CommitInfo {
    /// The first digits of its id, for people.
    pub fn short(&self) -> &str {
        self.id.get(..10).unwrap_or(&self.id)
    }
}

/// Which commits are wanted.
#[derive(Clone, Debug, Default)]
pub struct CommitFilter {
    /// Only those committed then or later, in seconds since 1970 (UTC).
    pub since: Option<i64>,
    /// Only those committed then or earlier, in seconds since 1970 (UTC).
    pub until: Option<i64>,
    /// Only those whose author, `Name <address>`, contains this; capitals or not.
    pub author: Option<String>,
}

impl CommitFilter {
    /// Whether a commit of that time may be wanted.
    pub fn covers_time(&self, seconds: i64) -> bool {
        self.since.is_none_or(|since| seconds >= since) && self.until.is_none_or(|until| seconds <= until)
    }

    /// Whether a commit of that author may be wanted.
    pub fn covers_author(&self, author: &str) -> bool {
        let contains = |wanted: &String| author.to_lowercase().contains(&wanted.to_lowercase());
        self.author.as_ref().is_none_or(contains)
    }

    /// Whether this commit is wanted.
    pub fn covers(&self, commit: &CommitInfo) -> bool {
        self.covers_time(commit.time.seconds) && self.covers_author(&commit.author)
    }
}

/// A commit that changed files under `lock/`, as Git has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockCommit {
    /// Which, whose and when.
    pub commit: CommitInfo,
    /// The files under `lock/` that differ from its first parent's.
    pub files: Vec<FileChange>,
}

/// One lockfile's change in a commit, followed through merges to where it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockStep {
    /// The commit.
    pub commit: CommitInfo,
    /// All of its message.
    pub message: Arc<str>,
    /// The lockfile before and after it.
    pub file: FileChange,
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
    pub old: Option<Arc<[u8]>>,
    /// Its bytes after; none when the commit removes it.
    pub new: Option<Arc<[u8]>>,
}

/// Where a walk from the newest commit to the oldest ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkEnd {
    /// At the first commit of all: the history is complete.
    Start,
    /// Where the history ends that is here (a shallow clone): what was before is not known.
    Cut,
    /// Where the visitor wanted no more.
    Stopped,
}

/// What one commit moved, held or released.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// The commit.
    #[serde(flatten)]
    pub commit: CommitInfo,
    /// What moved, in order of environments and images.
    pub moves: Vec<Move>,
    /// Holds that were set, changed or taken away, in the same order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<HoldChange>,
}

/// What an image of an environment was locked to in one commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StateRow {
    /// The environment.
    pub environment: EnvironmentId,
    /// The image.
    pub image: Name,
    /// What the environment asks for.
    pub reference: ImageReference,
    /// What the nodes had to hold.
    pub digest: Digest,
    /// Why it must not move, while it must not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<String>,
}

/// The whole lock at one commit.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    /// The commit.
    pub commit: CommitInfo,
    /// What was locked, in order of environments and images.
    pub images: Vec<StateRow>,
    /// Lockfiles of that commit that cannot be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
}

/// What moved between two commits.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// The commit that is compared from.
    pub from: CommitInfo,
    /// The commit that is compared to.
    pub to: CommitInfo,
    /// What is different, in order of environments and images.
    pub moves: Vec<Move>,
    /// Lockfiles of either commit that cannot be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
}

/// Since when an image has its present digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BlameRow {
    /// The image.
    pub image: Name,
    /// What it is locked to; its reference may have come later than its digest.
    pub reference: ImageReference,
    /// What the nodes hold.
    pub digest: Digest,
    /// The commit that brought the digest; none when it is older than the history that is here.
    pub since: Option<CommitInfo>,
    /// Why it must not move, while it must not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<String>,
}

/// Who brought the present digests of an environment, and when.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Blame {
    /// The environment.
    pub environment: EnvironmentId,
    /// Its images, in order of their names.
    pub images: Vec<BlameRow>,
    /// Lockfiles of the past that cannot be read; they were passed over.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
}

/// A time in which an image of an environment was locked to a digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Span {
    /// The environment.
    pub environment: EnvironmentId,
    /// The image.
    pub image: Name,
    /// The reference that was resolved to it, at the beginning of the time.
    pub reference: ImageReference,
    /// The locked digest.
    pub digest: Digest,
    /// The platform whose manifest was asked for, where it was not the locked digest itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
    /// The commit that locked it; none when that is older than the history that is here.
    pub from: Option<CommitInfo>,
    /// The commit that moved or removed it; none while it is still locked.
    pub to: Option<CommitInfo>,
}

/// Where and when a digest was locked.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WhoRan {
    /// The digest, in full; none when nothing that begins like it was ever locked.
    pub digest: Option<Digest>,
    /// In order of environments, images and times.
    pub spans: Vec<Span>,
    /// Lockfiles of the past that cannot be read; they were passed over.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
}
