//! Whether the lock's commits are what they claim to be.

use serde::Serialize;

use super::{digest::Digest, history::CommitInfo};

/// What was found of one commit that changes the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Made by a trusted controller, and rendering it gives the manifests that it records.
    Ok,
    /// Made by one of the people who may change the lock.
    Person,
    /// Not signed.
    Unsigned,
    /// Signed, but not by someone who counts, or changed afterwards.
    Untrusted,
    /// Made by a trusted controller, but it changes more than the lock.
    ChangesMore,
    /// Made by a trusted controller, but rendering it gives other manifests.
    Differs,
    /// The same, but another version of larder made it, which may render differently.
    OtherVersion,
    /// Made by a trusted controller, but it does not record its manifests.
    NoDigest,
    /// Made by a trusted controller, but it cannot be rendered.
    Unreadable,
}

impl Outcome {
    /// The word in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Person => "person",
            Self::Unsigned => "unsigned",
            Self::Untrusted => "untrusted",
            Self::ChangesMore => "changes-more",
            Self::Differs => "differs",
            Self::OtherVersion => "other-version",
            Self::NoDigest => "no-digest",
            Self::Unreadable => "unreadable",
        }
    }

    /// Whether nothing has to be looked into.
    pub fn is_sound(self) -> bool {
        matches!(self, Self::Ok | Self::Person)
    }
}

/// Who signed a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SignedBy {
    /// As the list of trusted keys, or the key itself, names its owner.
    pub name: String,
    /// The key's fingerprint.
    pub key: String,
}

/// One commit that changes the lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VerifiedCommit {
    /// Which.
    #[serde(flatten)]
    pub commit: CommitInfo,
    /// What was found.
    pub outcome: Outcome,
    /// Why it is not well, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Who signed it, when that counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed_by: Option<SignedBy>,
    /// The digest that it records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<String>,
    /// The digest of the manifests that it renders to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rendered: Option<Digest>,
    /// The version of larder that it names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The merge that brought it to the branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged_by: Option<String>,
}

/// The commits that change the lock, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verification {
    /// The commits that were checked.
    pub commits: Vec<VerifiedCommit>,
    /// How many older ones there are, from before manifests were recorded; they were not checked.
    pub older: usize,
    /// Whether the history that is here goes back to where it was to be checked from.
    pub complete: bool,
    /// Whether at least one commit was checked and all of them are well.
    pub sound: bool,
}
