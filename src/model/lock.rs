//! The lock: for each image of each environment the digest that the nodes must hold.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;
use serde::Serialize;

use super::{
    batch::Batch,
    digest::Digest,
    failure::Problem,
    name::{EnvironmentId, Name},
    plan::Blocked,
    reference::ImageReference,
    resolution::{Lookup, PlatformManifest},
};

/// All lockfiles together. A lockfile that cannot be read is a failure of its environment.
pub type Lock = Batch<Lockfile>;

/// `lock/<tenant>/<name>.yaml`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lockfile {
    /// The images by name.
    pub images: BTreeMap<Name, LockedImage>,
}

/// What an image's reference named when it was last resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockedImage {
    /// The reference that was resolved.
    pub reference: ImageReference,
    /// What the nodes must hold: the index, where there is one.
    pub digest: Digest,
    /// The media type of what the digest names.
    pub media_type: String,
    /// Platforms of the index, or the one platform of a single manifest, sorted.
    pub platforms: Vec<PlatformManifest>,
    /// Previous digests, newest first, as many as the environment retains.
    pub previous: Vec<Previous>,
    /// Why the digest must not move, while it must not.
    pub hold: Option<Hold>,
}

/// An image's pin at its locked digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hold {
    /// Why.
    pub reason: String,
    /// Who decided it.
    #[serde(flatten)]
    pub origin: HoldOrigin,
    /// The last day (UTC) on which it holds; none until it is released.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Date>,
}

/// Who decided a hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "origin", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum HoldOrigin {
    /// A person asked for it: it stays until a person releases it.
    Person,
    /// A person reverted the lock, and larder keeps what they went back to until they commit another reference.
    Revert {
        /// The reference that the environment's file asked for at that time.
        instead_of: ImageReference,
    },
}

impl Hold {
    /// A person's hold without an end.
    pub fn of_person(reason: &str) -> Self {
        Self { reason: reason.to_owned(), origin: HoldOrigin::Person, until: None }
    }

    /// Whether it has ended by that day (UTC).
    pub fn has_ended(&self, today: Date) -> bool {
        self.until.is_some_and(|until| until < today)
    }

    /// Whether a file that asks for `reference` lifts it.
    pub fn is_lifted_by(&self, reference: &ImageReference) -> bool {
        matches!(&self.origin, HoldOrigin::Revert { instead_of } if instead_of != reference)
    }
}

/// A digest that an image had before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Previous {
    /// The reference that was resolved then.
    pub reference: ImageReference,
    /// What it named.
    pub digest: Digest,
}

/// What one pass changes in the lock.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LockChange {
    /// The lock after the change; what is rendered.
    pub lock: Lock,
    /// Files to write or, where `None`, to delete, from the root of the environment repository. Empty: no commit.
    pub files: BTreeMap<String, Option<Vec<u8>>>,
    /// What moved, in order of environments and images.
    pub moves: Vec<Move>,
    /// Holds that are set, changed or taken away, in order of environments and images.
    pub holds: Vec<HoldChange>,
    /// Environments whose lockfile goes with their file, in order of their new names.
    pub renames: Vec<Rename>,
    /// Answers that are not taken yet, in order of environments.
    pub waiting: Vec<Waiting>,
    /// Images that could not be locked again. Their previous entries stay; the environment continues with what is locked.
    pub problems: BTreeMap<EnvironmentId, Vec<Problem>>,
    /// Environments that are gone from Git, but whose lockfiles stay because the budget does not allow their removal.
    pub blocked: Option<Blocked>,
}

impl LockChange {
    /// Leaves out what is written and said about all other environments.
    pub fn retain(&mut self, environments: &BTreeSet<EnvironmentId>) {
        let paths: BTreeSet<String> = environments.iter().map(EnvironmentId::lock_path).collect();
        self.files.retain(|path, _| paths.contains(path));
        self.moves.retain(|moved| environments.contains(&moved.environment));
        self.holds.retain(|hold| environments.contains(&hold.environment));
        self.renames.retain(|rename| environments.contains(&rename.to));
        self.waiting.retain(|waiting| environments.contains(&waiting.environment));
        self.problems.retain(|id, _| environments.contains(id));
    }
}

/// One image's change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Move {
    /// The environment.
    pub environment: EnvironmentId,
    /// The image.
    pub image: Name,
    /// The entry before; none when the image is new.
    pub old: Option<Previous>,
    /// The entry after; none when the image is gone.
    pub new: Option<Previous>,
}

/// A change of an image's hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HoldChange {
    /// The environment.
    pub environment: EnvironmentId,
    /// The image.
    pub image: Name,
    /// Where it is held, or was until now.
    pub at: Previous,
    /// What holds it; none when it is released.
    #[serde(flatten)]
    pub hold: Option<Hold>,
}

impl HoldChange {
    /// Why it must not move; none when it is released.
    pub fn reason(&self) -> Option<&str> {
        self.hold.as_ref().map(|hold| hold.reason.as_str())
    }
}

/// An environment whose file got another name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Rename {
    /// Its name before.
    pub from: EnvironmentId,
    /// Its name now.
    pub to: EnvironmentId,
}

/// An answer that would take an image back to a digest that it had before. It has to be given again.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    /// The environment.
    pub environment: EnvironmentId,
    /// The question.
    pub key: Lookup,
    /// What the image waits for, in words.
    pub note: Problem,
}
