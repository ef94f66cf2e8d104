//! What registries are asked, and what they answer.
//!
//! Resolving works in rounds: a [`Question`] leads to an [`Answer`], which may lead to the next question. What all rounds
//! together found about a [`Lookup`] is its part of the [`Resolution`].

use std::collections::BTreeMap;

pub use super::platform::{Platform, PlatformError};
use super::{
    digest::Digest,
    failure::{Failure, Problem},
    reference::ImageReference,
};

/// One platform's part of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlatformManifest {
    /// The platform.
    pub platform: Platform,
    /// The digest of its manifest. Equal to the image's where there is no index.
    pub digest: Digest,
    /// Compressed bytes that a node pulls: configuration and layers. None while no registry had the manifest.
    pub size: Option<u64>,
}

/// Whose credentials are used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CredentialSource {
    /// The controller's own: its docker config file, or none.
    Controller,
    /// Pull secrets in a cluster.
    Secrets {
        /// Their namespace.
        namespace: String,
        /// Their names, in the order in which the kubelet is given them.
        names: Vec<String>,
    },
}

/// A reference to resolve, and with whose credentials.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lookup {
    /// What to resolve.
    pub reference: ImageReference,
    /// With whose credentials.
    pub credentials: CredentialSource,
}

/// A question to a registry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Question {
    /// Which digest the reference names.
    Digest(Lookup),
    /// What a digest is that the reference named.
    Evidence {
        /// The reference, whose repository has the digest.
        lookup: Lookup,
        /// The digest.
        digest: Digest,
    },
}

impl Question {
    /// The lookup that the question belongs to.
    pub fn lookup(&self) -> &Lookup {
        match self {
            Self::Digest(lookup) | Self::Evidence { lookup, .. } => lookup,
        }
    }
}

/// A registry's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To [`Question::Digest`].
    Digest {
        /// The digest of the index, where there is one, else of the manifest.
        digest: Digest,
        /// What is wrong although there is an answer: a pull secret that the nodes cannot use for this image.
        warnings: Vec<Problem>,
    },
    /// To [`Question::Evidence`].
    Evidence(Evidence),
}

/// What became of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A registry answered.
    Answered(Answer),
    /// No registry had a usable answer.
    Failed(Failure),
    /// Its registry used up its time before it was this question's turn. The next pass asks it.
    NotAsked,
}

/// What is known about a digest before it may be locked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The media type of what the digest names; tells an index from a manifest.
    pub media_type: String,
    /// What it is.
    pub kind: ContentKind,
    /// Its platforms, sorted, without attestations.
    pub platforms: Vec<PlatformManifest>,
}

/// What a digest names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContentKind {
    /// A container image.
    Image,
    /// Something that no container can be started from; its name with an article, such as `a Helm chart`.
    Artifact(String),
}

/// What a reference names, according to its registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedImage {
    /// The digest of the index, where there is one, else of the manifest.
    pub digest: Digest,
    /// None when the lock has everything about this digest already, so that nothing more was asked.
    pub evidence: Option<Evidence>,
    /// What is wrong although there is an answer.
    pub warnings: Vec<Problem>,
}

/// What was found in all rounds. An error is never "no such image, unlock it", only "not known now".
pub type Resolution = BTreeMap<Lookup, Result<ResolvedImage, Failure>>;

/// What is wrong with lookups that have an answer.
pub type Warnings = BTreeMap<Lookup, Vec<Problem>>;

/// The warnings of these answers.
pub fn warnings(resolution: &Resolution) -> Warnings {
    let all = resolution.iter().filter_map(|(key, answer)| Some((key.clone(), answer.as_ref().ok()?.warnings.clone())));
    all.filter(|(_, warnings)| !warnings.is_empty()).collect()
}
