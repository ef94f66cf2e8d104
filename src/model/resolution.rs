//! What registries are asked, and what they answer.

use std::{collections::BTreeMap, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::{
    digest::Digest,
    failure::{Failure, Problem},
    reference::ImageReference,
};

/// A platform that an image is made for: `linux/amd64`, `linux/arm64/v8`.
///
/// Source: <https://github.com/opencontainers/image-spec/blob/main/image-index.md> (`platform`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Platform {
    /// Operating system, in Go's words.
    pub os: String,
    /// Architecture, in Go's words.
    pub architecture: String,
    /// Variant of the architecture.
    pub variant: Option<String>,
}

/// A text that is no platform.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no platform: os/architecture or os/architecture/variant is expected, as in linux/amd64")]
pub struct PlatformError(String);

impl Platform {
    /// Whether a node that asks for `self` can run an image made for `offered`. Without a variant any will do;
    /// 64-bit ARM is always v8 unless something else is said.
    pub fn accepts(&self, offered: &Self) -> bool {
        fn variant(platform: &Platform) -> Option<&str> {
            match (platform.architecture.as_str(), platform.variant.as_deref()) {
                ("arm64", None) => Some("v8"),
                (_, variant) => variant,
            }
        }
        self.os == offered.os
            && self.architecture == offered.architecture
            && (self.variant.is_none() || variant(self) == variant(offered))
    }
}

impl FromStr for Platform {
    type Err = PlatformError;

    fn from_str(text: &str) -> Result<Self, PlatformError> {
        let word = |part: &&str| -> bool {
            !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
        };
        let parts: Vec<&str> = text.split('/').collect();
        match parts.as_slice() {
            [os, architecture, variant @ ..] if variant.len() <= 1 && parts.iter().all(word) => Ok(Self {
                os: (*os).to_owned(),
                architecture: (*architecture).to_owned(),
                variant: variant.first().map(|&variant| variant.to_owned()),
            }),
            _ => Err(PlatformError(text.to_owned())),
        }
    }
}

impl TryFrom<String> for Platform {
    type Error = PlatformError;

    fn try_from(text: String) -> Result<Self, PlatformError> {
        text.parse()
    }
}

impl From<Platform> for String {
    fn from(platform: Platform) -> Self {
        platform.to_string()
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        self.variant.as_ref().map_or(Ok(()), |variant| write!(f, "/{variant}"))
    }
}

/// One platform's part of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlatformManifest {
    /// The platform.
    pub platform: Platform,
    /// The digest of its manifest. Equal to the image's where there is no index.
    pub digest: Digest,
    /// Compressed bytes that a node pulls: configuration and layers.
    pub size: u64,
}

/// What a reference names, according to its registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedImage {
    /// The digest of the index, where there is one, else of the manifest.
    pub digest: Digest,
    /// The media type of what the digest names; tells an index from a manifest.
    pub media_type: String,
    /// Its platforms, sorted; attestations are none. None when the digest is the one already known, so that nothing
    /// more was asked.
    pub platforms: Option<Vec<PlatformManifest>>,
    /// What is wrong although there is an answer: a pull secret that the nodes cannot use for this image.
    pub warnings: Vec<Problem>,
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

/// A question to a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What to resolve.
    pub reference: ImageReference,
    /// With whose credentials.
    pub credentials: CredentialSource,
    /// The digest that the lock holds; if it is still right, one HEAD is all that is asked.
    pub known: Option<Digest>,
}

impl Request {
    /// The key of its answer.
    pub fn key(&self) -> RequestKey {
        RequestKey { reference: self.reference.clone(), credentials: self.credentials.clone() }
    }
}

/// What makes two questions the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKey {
    /// What to resolve.
    pub reference: ImageReference,
    /// With whose credentials.
    pub credentials: CredentialSource,
}

/// The registries' answers. An error is never "no such image, unlock it", only "not known now".
pub type Resolution = BTreeMap<RequestKey, Result<ResolvedImage, Failure>>;

/// What is wrong beside questions that have an answer.
pub type Warnings = BTreeMap<RequestKey, Vec<Problem>>;

/// The warnings of these answers.
pub fn warnings(resolution: &Resolution) -> Warnings {
    let all = resolution.iter().filter_map(|(key, answer)| Some((key.clone(), answer.as_ref().ok()?.warnings.clone())));
    all.filter(|(_, warnings)| !warnings.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::Platform;

    #[test]
    fn platforms_read_and_write() {
        for text in ["linux/amd64", "linux/arm64/v8", "windows/amd64"] {
            assert_eq!(text.parse::<Platform>().unwrap().to_string(), text);
        }
        for text in ["", "linux", "linux/", "/amd64", "linux/arm/v7/x", "linux/amd 64", "unknown"] {
            text.parse::<Platform>().unwrap_err();
        }
    }

    #[test]
    fn platforms_accept_what_their_nodes_run() {
        let cases = [
            ("linux/amd64", "linux/amd64", true),
            ("linux/amd64", "linux/arm64", false),
            ("linux/arm64", "linux/arm64/v8", true),
            ("linux/arm64/v8", "linux/arm64", true),
            ("linux/arm/v7", "linux/arm/v6", false),
            ("linux/arm", "linux/arm/v6", true),
            ("linux/amd64", "windows/amd64", false),
        ];
        for (asked, offered, expected) in cases {
            let (asked, offered): (Platform, Platform) = (asked.parse().unwrap(), offered.parse().unwrap());
            assert_eq!(asked.accepts(&offered), expected, "{asked} {offered}");
        }
    }
}
