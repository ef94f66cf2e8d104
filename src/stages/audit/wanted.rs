//! What `who-ran` is asked about: a digest, a reference, or a repository.

use std::{fmt, str::FromStr};

use crate::model::{digest::Digest, lock::LockedImage, reference::ImageReference};

/// The fewest digits of a digest that are taken for its beginning.
const FEWEST: usize = 6;

/// What is looked for in lockfiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A digest that begins like this, with its algorithm.
    Digest(String),
    /// Whatever this reference was resolved to.
    Reference(ImageReference),
    /// Whatever references to this repository were resolved to: the repository of this reference.
    Repository(ImageReference),
}

/// A text that is none of these.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a digest or its first {FEWEST} or more hexadecimal digits, with or without `sha256:`, an image reference \
     such as quay.io/jupyter/scipy-notebook:2026-11-02, or a repository such as quay.io/jupyter/scipy-notebook"
)]
pub struct WantedError;

/// A digest that matches in an entry.
pub(super) struct Match<'a> {
    /// The digest.
    pub(super) digest: &'a Digest,
    /// The platform that it is the manifest of, where it is not what is locked.
    pub(super) platform: Option<String>,
}

impl FromStr for Wanted {
    type Err = WantedError;

    fn from_str(text: &str) -> Result<Self, WantedError> {
        let (algorithm, digits) = text.split_once(':').unwrap_or(("sha256", text));
        let hexadecimal = digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let longest = match algorithm {
            "sha256" => 64,
            "sha512" => 128,
            _ => 0,
        };
        if hexadecimal && (FEWEST..=longest).contains(&digits.len()) {
            return Ok(Self::Digest(format!("{algorithm}:{digits}")));
        }
        // A single word is more likely a digest that was cut short than an image of Docker Hub.
        let is_digest = text.contains(':') && longest > 0;
        if is_digest || !text.contains(['/', ':']) {
            return Err(WantedError);
        }
        let reference: ImageReference = text.parse().map_err(|_| WantedError)?;
        // A reference without a tag is parsed as that of `latest`.
        let last = text.rsplit('/').next().unwrap_or_default();
        Ok(if last.contains([':', '@']) { Self::Reference(reference) } else { Self::Repository(reference) })
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Digest(digest) => f.write_str(digest),
            Self::Reference(reference) => reference.fmt(f),
            Self::Repository(reference) => f.write_str(&reference.repository()),
        }
    }
}

impl Wanted {
    /// A text that is in every lockfile that has it, however its references are spelled.
    pub fn text(&self) -> &str {
        match self {
            Self::Digest(digest) => digest,
            Self::Reference(reference) | Self::Repository(reference) => {
                reference.path().rsplit('/').next().unwrap_or_default()
            }
        }
    }

    /// The digests of an entry that are looked for.
    pub(super) fn matches<'a>(&self, entry: &'a LockedImage) -> Vec<Match<'a>> {
        let locked = Match { digest: &entry.digest, platform: None };
        let begins = |digest: &Digest, wanted: &str| digest.as_str().starts_with(wanted);
        match self {
            Self::Reference(reference) if *reference == entry.reference => vec![locked],
            Self::Repository(reference) if reference.repository() == entry.reference.repository() => vec![locked],
            Self::Reference(_) | Self::Repository(_) => Vec::new(),
            Self::Digest(wanted) => {
                let platforms = entry.platforms.iter().filter(|manifest| manifest.digest != entry.digest);
                let platforms = platforms
                    .filter(|manifest| begins(&manifest.digest, wanted))
                    .map(|manifest| Match { digest: &manifest.digest, platform: Some(manifest.platform.to_string()) });
                let locked = begins(&entry.digest, wanted).then_some(locked);
                locked.into_iter().chain(platforms).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Wanted;

    #[test]
    fn a_digest_a_reference_or_a_repository_is_wanted() {
        for text in ["abcdef", "sha256:abcdef0123", "sha512:abcdef"] {
            assert!(matches!(text.parse(), Ok(Wanted::Digest(_))), "{text}");
        }
        for text in ["ghcr.io/dask/dask:2026.10.0", "python:3", "localhost:5000/a:1"] {
            assert!(matches!(text.parse(), Ok(Wanted::Reference(_))), "{text}");
        }
        for text in ["ghcr.io/dask/dask", "jupyter/scipy-notebook", "localhost:5000/a"] {
            assert!(matches!(text.parse(), Ok(Wanted::Repository(_))), "{text}");
        }
        let long = "a".repeat(65);
        for text in ["", "abcde", "sha256:", "sha256:abc", "ABCDEF", "latest", "A/B", &long] {
            assert!(text.parse::<Wanted>().is_err(), "{text}");
        }
    }
}
