//! Why a condition is as it is: a closed list, in which the earlier reason takes precedence.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::State;

/// Why a condition is as it is. Of several reasons, the one that is listed first is that of the condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Reason {
    /// No pass can start on the branch's tip.
    CannotStart,
    /// The tip of the branch could not be read: the repository does not answer, or the branch is gone.
    PollFailed,
    /// The lock could not be committed; the previous one stays in effect.
    LockRefused,
    /// It is gone from Git, but the budget does not allow its removal.
    RemovalBlocked,
    /// Its file is invalid.
    InvalidFile,
    /// Its lockfile cannot be read.
    InvalidLockfile,
    /// None of its images was ever locked.
    NotLocked,
    /// Its manifests cannot be rendered.
    RenderFailed,
    /// The target refused an object.
    ApplyFailed,
    /// The pass was ended before its objects were written.
    NotAttempted,
    /// A file under `environments/` whose path names no environment.
    MisplacedFile,
    /// `suspend: true`.
    Suspended,
    /// The cluster has no puller of it.
    NotApplied,
    /// A node cannot pull an image.
    PullFailed,
    /// Nodes are pulling, or the cluster has not taken up the puller yet.
    Pulling,
    /// An image does not resolve, so that its previous digest stays, or nodes cannot use its pull secret.
    ImageUnusable,
    /// Lock changes wait to be merged.
    ProposalWaiting,
    /// An image is on hold.
    Held,
    /// A registry went back to an earlier digest, and has to confirm it.
    Unconfirmed,
    /// No pass has ended yet.
    NoPass,
    /// It is locked and applied; its nodes were not observed.
    NotObserved,
    /// It is locked and rendered, for a target without nodes.
    Applied,
    /// Every eligible node has every image.
    NodesReady,
    /// Passes end without a problem of their own.
    Succeeded,
}

/// What a reason means for the conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Not ready; only a person can help.
    Stalled,
    /// Not ready; it is on its way or is being retried.
    Reconciling,
    /// Not ready; what was there before stays in effect.
    NotReady,
    /// It is suspended.
    Suspended,
    /// None: worth knowing, although nothing is wrong.
    Note,
    /// Whether it is ready is not known.
    Unknown,
    /// Ready.
    Ready,
}

impl Reason {
    /// All of them, in order of precedence.
    pub const ALL: [Self; 24] = [
        Self::CannotStart,
        Self::PollFailed,
        Self::LockRefused,
        Self::RemovalBlocked,
        Self::InvalidFile,
        Self::InvalidLockfile,
        Self::NotLocked,
        Self::RenderFailed,
        Self::ApplyFailed,
        Self::NotAttempted,
        Self::MisplacedFile,
        Self::Suspended,
        Self::NotApplied,
        Self::PullFailed,
        Self::Pulling,
        Self::ImageUnusable,
        Self::ProposalWaiting,
        Self::Held,
        Self::Unconfirmed,
        Self::NoPass,
        Self::NotObserved,
        Self::Applied,
        Self::NodesReady,
        Self::Succeeded,
    ];

    /// The word for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CannotStart => "CannotStart",
            Self::PollFailed => "PollFailed",
            Self::LockRefused => "LockRefused",
            Self::RemovalBlocked => "RemovalBlocked",
            Self::InvalidFile => "InvalidFile",
            Self::InvalidLockfile => "InvalidLockfile",
            Self::NotLocked => "NotLocked",
            Self::RenderFailed => "RenderFailed",
            Self::ApplyFailed => "ApplyFailed",
            Self::NotAttempted => "NotAttempted",
            Self::MisplacedFile => "MisplacedFile",
            Self::Suspended => "Suspended",
            Self::NotApplied => "NotApplied",
            Self::PullFailed => "PullFailed",
            Self::Pulling => "Pulling",
            Self::ImageUnusable => "ImageUnusable",
            Self::ProposalWaiting => "ProposalWaiting",
            Self::Held => "Held",
            Self::Unconfirmed => "Unconfirmed",
            Self::NoPass => "NoPass",
            Self::NotObserved => "NotObserved",
            Self::Applied => "Applied",
            Self::NodesReady => "NodesReady",
            Self::Succeeded => "Succeeded",
        }
    }

    /// What it means for the conditions.
    pub fn effect(self) -> Effect {
        match self {
            Self::CannotStart
            | Self::LockRefused
            | Self::RemovalBlocked
            | Self::InvalidFile
            | Self::InvalidLockfile
            | Self::RenderFailed
            | Self::MisplacedFile => Effect::Stalled,
            Self::PollFailed
            | Self::ApplyFailed
            | Self::NotAttempted
            | Self::NotApplied
            | Self::PullFailed
            | Self::Pulling => Effect::Reconciling,
            Self::NotLocked | Self::ImageUnusable => Effect::NotReady,
            Self::Suspended => Effect::Suspended,
            Self::ProposalWaiting | Self::Held | Self::Unconfirmed => Effect::Note,
            Self::NoPass | Self::NotObserved => Effect::Unknown,
            Self::Applied | Self::NodesReady | Self::Succeeded => Effect::Ready,
        }
    }

    /// An environment whose `Ready` condition has this reason, in one word.
    pub(super) fn state(self) -> State {
        match self {
            Self::RemovalBlocked => State::Blocked,
            Self::CannotStart
            | Self::PollFailed
            | Self::LockRefused
            | Self::InvalidFile
            | Self::InvalidLockfile
            | Self::NotLocked
            | Self::RenderFailed
            | Self::ApplyFailed
            | Self::NotAttempted
            | Self::MisplacedFile => State::Failed,
            Self::Suspended => State::Suspended,
            Self::NotApplied | Self::NoPass => State::NotApplied,
            Self::PullFailed | Self::ImageUnusable => State::Degraded,
            Self::Pulling => State::Pulling,
            Self::NodesReady => State::Warm,
            Self::ProposalWaiting
            | Self::Held
            | Self::Unconfirmed
            | Self::NotObserved
            | Self::Applied
            | Self::Succeeded => State::Applied,
        }
    }
}
