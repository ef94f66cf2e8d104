//! Platforms of images, in containerd's normal form.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A platform that an image is built for: `linux/amd64`, `linux/arm/v7`. Always in normal form: `linux/aarch64`,
/// `linux/arm64` and `linux/arm64/v8` are the same value.
///
/// Sources: <https://github.com/opencontainers/image-spec/blob/main/image-index.md> (`platform`),
/// <https://github.com/containerd/platforms/blob/main/database.go> (aliases).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Platform {
    /// Operating system, as Go names it.
    pub os: String,
    /// Architecture, as Go names it.
    pub architecture: String,
    /// Variant of the architecture.
    pub variant: Option<String>,
}

/// A text that is not a platform.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a valid platform: os/architecture or os/architecture/variant is expected, as in linux/amd64")]
pub struct PlatformError(String);

impl Platform {
    /// A platform in normal form.
    pub fn new(os: &str, architecture: &str, variant: Option<&str>) -> Self {
        let lower = |text: &str| text.to_ascii_lowercase();
        let os = match lower(os).as_str() {
            "macos" => "darwin".to_owned(),
            other => other.to_owned(),
        };
        let variant = lower(variant.unwrap_or_default());
        let (architecture, variant) = match (lower(architecture).as_str(), variant.as_str()) {
            ("i386" | "386", _) => ("386".to_owned(), ""),
            ("x86_64" | "x86-64" | "amd64", "v1") => ("amd64".to_owned(), ""),
            ("x86_64" | "x86-64" | "amd64", variant) => ("amd64".to_owned(), variant),
            ("aarch64" | "arm64", "8" | "v8" | "v8.0") => ("arm64".to_owned(), ""),
            ("aarch64" | "arm64", "9" | "v9.0") => ("arm64".to_owned(), "v9"),
            ("aarch64" | "arm64", variant) => ("arm64".to_owned(), variant),
            ("armhf", _) => ("arm".to_owned(), "v7"),
            ("armel", _) => ("arm".to_owned(), "v6"),
            ("arm", "" | "7") => ("arm".to_owned(), "v7"),
            ("arm", "5") => ("arm".to_owned(), "v5"),
            ("arm", "6") => ("arm".to_owned(), "v6"),
            ("arm", "8") => ("arm".to_owned(), "v8"),
            (other, variant) => (other.to_owned(), variant),
        };
        Self { os, architecture, variant: Some(variant.to_owned()).filter(|variant| !variant.is_empty()) }
    }

    /// Whether a node that asks for `self` can run an image built for `offered`. Without a variant any will do; a later
    /// variant runs images of the earlier ones.
    pub fn accepts(&self, offered: &Self) -> bool {
        let number = |platform: &Self| -> Option<u32> {
            platform.variant.as_deref().map_or(Some(0), |text| text.strip_prefix('v')?.parse().ok())
        };
        self.os == offered.os
            && self.architecture == offered.architecture
            && (self.variant.is_none()
                || self.variant == offered.variant
                || matches!((number(self), number(offered)), (Some(most), Some(other)) if other <= most))
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
            [os, architecture, variant @ ..] if variant.len() <= 1 && parts.iter().all(word) => {
                Ok(Self::new(os, architecture, variant.first().copied()))
            }
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

#[cfg(test)]
mod tests {
    use super::Platform;

    #[test]
    fn platforms_have_one_normal_form() {
        let cases = [
            ("linux/amd64", "linux/amd64"),
            ("linux/x86_64", "linux/amd64"),
            ("linux/x86-64", "linux/amd64"),
            ("Linux/AMD64/v1", "linux/amd64"),
            ("linux/amd64/v3", "linux/amd64/v3"),
            ("linux/i386", "linux/386"),
            ("linux/aarch64", "linux/arm64"),
            ("linux/arm64/v8", "linux/arm64"),
            ("linux/arm64/8", "linux/arm64"),
            ("linux/arm64/9", "linux/arm64/v9"),
            ("linux/armhf", "linux/arm/v7"),
            ("linux/armel", "linux/arm/v6"),
            ("linux/arm", "linux/arm/v7"),
            ("linux/arm/6", "linux/arm/v6"),
            ("macos/arm64", "darwin/arm64"),
            ("windows/amd64", "windows/amd64"),
            ("linux/ppc64le", "linux/ppc64le"),
        ];
        for (text, expected) in cases {
            let platform: Platform = text.parse().unwrap();
            assert_eq!(platform.to_string(), expected, "{text}");
            assert_eq!(expected.parse::<Platform>().unwrap(), platform, "{text}");
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
            ("linux/x86_64", "linux/amd64", true),
            ("linux/arm64", "linux/arm64/v8", true),
            ("linux/arm64/v8", "linux/arm64", true),
            ("linux/amd64/v3", "linux/amd64/v2", true),
            ("linux/amd64/v2", "linux/amd64/v3", false),
            ("linux/arm/v7", "linux/arm/v6", true),
            ("linux/arm/v6", "linux/arm/v7", false),
            ("linux/arm", "linux/arm/v6", true),
            ("linux/amd64", "windows/amd64", false),
        ];
        for (asked, offered, expected) in cases {
            let (asked, offered): (Platform, Platform) = (asked.parse().unwrap(), offered.parse().unwrap());
            assert_eq!(asked.accepts(&offered), expected, "{asked} {offered}");
        }
    }
}
