//! Content digests, as the OCI image specification defines them.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// `sha256:` with 64, or `sha512:` with 128 lower-case hexadecimal digits.
///
/// Source: <https://github.com/opencontainers/image-spec/blob/main/descriptor.md#digests>.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(String);

/// Why a text is not a digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DigestError {
    /// No `algorithm:` in front.
    #[error("`{0}` is not a digest: `sha256:` and 64 hexadecimal digits are expected")]
    NoAlgorithm(String),
    /// An algorithm that is not registered.
    #[error("the digest algorithm `{0}` is not supported: use sha256 or sha512")]
    Algorithm(String),
    /// The wrong number of digits.
    #[error("a {algorithm} digest has {expected} hexadecimal digits, not {found}")]
    Length {
        /// `sha256` or `sha512`.
        algorithm: &'static str,
        /// Digits that it must have.
        expected: usize,
        /// Digits that it has.
        found: usize,
    },
    /// Something else than `0-9a-f`.
    #[error("a digest is written in lower-case hexadecimal digits, not with {0:?}")]
    Digit(char),
}

impl Digest {
    /// The SHA-256 of these bytes.
    pub fn sha256(bytes: &[u8]) -> Self {
        let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        Self(format!("sha256:{hex}"))
    }

    /// The text, `sha256:…`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// `sha256:` and the first 12 digits, for people.
    pub fn short(&self) -> &str {
        let start = self.0.find(':').map_or(0, |colon| colon + 1);
        &self.0[..(start + 12).min(self.0.len())]
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let (algorithm, hex) = text.split_once(':').ok_or_else(|| DigestError::NoAlgorithm(text.to_owned()))?;
        let (algorithm, expected) = match algorithm {
            "sha256" => ("sha256", 64),
            "sha512" => ("sha512", 128),
            other => return Err(DigestError::Algorithm(other.to_owned())),
        };
        // By bytes first: histories hold very many digests.
        if !hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
            && let Some(c) = hex.chars().find(|c| !matches!(c, '0'..='9' | 'a'..='f'))
        {
            return Err(DigestError::Digit(c));
        }
        if hex.len() != expected {
            return Err(DigestError::Length { algorithm, expected, found: hex.len() });
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, DigestError> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
