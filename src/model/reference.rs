//! Image references in one canonical form.

mod error;
mod lint;
mod parse;
#[cfg(test)]
mod tests;

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

pub use self::{error::ReferenceError, lint::ReferenceLint};
use super::digest::Digest;

/// The host of Docker Hub in references. Its API is at another one, `registry-1.docker.io`.
pub const DOCKER_HUB: &str = "docker.io";

/// The tag of a reference that names neither tag nor digest.
const DEFAULT_TAG: &str = "latest";

/// An image reference, canonical: `debian` and `index.docker.io/library/debian:latest` are the same value.
///
/// The grammar and the rules of the default host are those of the container runtimes:
/// <https://github.com/distribution/reference>. How it was written is not kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ImageReference {
    host: String,
    path: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

impl ImageReference {
    /// The registry's host, with its port if one was given: `docker.io`, `registry.example.com:5000`.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The repository's path at the registry: `library/debian`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// `host/path`, without tag and digest.
    pub fn repository(&self) -> String {
        format!("{}/{}", self.host, self.path)
    }

    /// The tag. None only where a digest stands alone.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The digest, if one was written. It wins over the tag, which is then only for people.
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    /// `host/path[:tag]@sha256:…`: what nodes pull. The digest replaces one of the reference itself.
    pub fn pinned(&self, digest: &Digest) -> String {
        match &self.tag {
            Some(tag) => format!("{}/{}:{tag}@{digest}", self.host, self.path),
            None => format!("{}/{}@{digest}", self.host, self.path),
        }
    }

    /// What is allowed and yet looks like a mistake.
    pub fn lints(&self) -> Vec<ReferenceLint> {
        lint::lints(self)
    }
}

impl FromStr for ImageReference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        parse::parse(text)
    }
}

impl TryFrom<String> for ImageReference {
    type Error = ReferenceError;

    fn try_from(text: String) -> Result<Self, ReferenceError> {
        text.parse()
    }
}

impl From<ImageReference> for String {
    fn from(reference: ImageReference) -> Self {
        reference.to_string()
    }
}

impl fmt::Display for ImageReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.path)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{digest}")?;
        }
        Ok(())
    }
}
