//! Manifests and indexes: digests, and as much of their JSON as is needed.

use reqwest::header::{CONTENT_TYPE, HeaderMap};
use serde::Deserialize;
use sha2::{Digest as _, Sha512};

use super::error::printable;
use crate::model::{
    digest::Digest,
    resolution::{ContentKind, Platform},
};

const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";

/// What is accepted, on HEAD and GET alike: with a narrower list some registries answer with one platform's manifest,
/// or not at all.
pub(super) const ACCEPT: &str = "application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json";

/// The largest manifest or configuration that is read, in bytes. Registries take none over 4 MiB.
pub(super) const MAX_MANIFEST: usize = 4 << 20;

/// The most entries of an index, and of all indexes of an image together.
pub(super) const MAX_ENTRIES: usize = 128;

/// The most layers of an image; container runtimes stop long before.
const MAX_LAYERS: usize = 1024;

/// The digest that the registry states. Anything but exactly one well-formed digest counts as none.
pub(super) fn stated_digest(headers: &HeaderMap) -> Option<Digest> {
    let mut values = headers.get_all("docker-content-digest").iter();
    let first = values.next()?.to_str().ok()?.parse().ok()?;
    values.all(|other| other.to_str().ok().and_then(|text| text.parse().ok()).as_ref() == Some(&first)).then_some(first)
}

/// The digest of these bytes, by the algorithm of `like`.
pub(super) fn digest_like(like: Option<&Digest>, bytes: &[u8]) -> Digest {
    if like.is_some_and(|digest| digest.as_str().starts_with("sha512:")) {
        let hex: String = Sha512::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        if let Ok(digest) = format!("sha512:{hex}").parse() {
            return digest;
        }
    }
    Digest::sha256(bytes)
}

/// The media type that headers state, without parameters; empty when they state none that is known.
pub(super) fn stated_type(headers: &HeaderMap) -> &'static str {
    let stated = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    known_type(stated.split(';').next().unwrap_or_default().trim())
}

fn known_type(text: &str) -> &'static str {
    [OCI_INDEX, OCI_MANIFEST, DOCKER_LIST, DOCKER_MANIFEST]
        .into_iter()
        .find(|known| known.eq_ignore_ascii_case(text))
        .unwrap_or_default()
}

/// Why bytes are no manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ManifestError {
    #[error("the answer is not a manifest (no JSON object)")]
    NotJson,
    #[error("the manifest has the old schema 1, which container runtimes no longer pull")]
    Schema1,
    #[error("the answer is JSON, but neither an image manifest nor an index")]
    Unknown,
    #[error("the index has more than {MAX_ENTRIES} entries")]
    TooManyEntries,
    #[error("the image has more than {MAX_LAYERS} layers")]
    TooManyLayers,
}

impl Content {
    /// Whether a container can be started from it. An index is what its entries are.
    pub(super) fn kind(&self) -> ContentKind {
        match self {
            Self::Artifact(name) => ContentKind::Artifact(name.clone()),
            Self::Image { .. } | Self::Index(_) => ContentKind::Image,
        }
    }
}

/// What a digest names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Manifest {
    pub(super) media_type: &'static str,
    pub(super) content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// One image: the digest of its configuration, and the bytes that a node pulls.
    Image { config: Digest, size: u64 },
    /// Something that no container can be started from; its name with an article.
    Artifact(String),
    /// Manifests for platforms, and indexes of such; attestations are left out.
    Index(Vec<Entry>),
}

/// One manifest of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) digest: Digest,
    /// None where the index does not say.
    pub(super) platform: Option<Platform>,
}

/// Reads a manifest or an index. The body decides what it is; the header only where the body has no media type.
pub(super) fn parse(bytes: &[u8], stated: &'static str) -> Result<Manifest, ManifestError> {
    let raw: RawManifest = serde_json::from_slice(bytes).map_err(|_| ManifestError::NotJson)?;
    if raw.manifests.as_ref().is_some_and(|list| list.more) {
        return Err(ManifestError::TooManyEntries);
    }
    if raw.layers.as_ref().is_some_and(|list| list.more) {
        return Err(ManifestError::TooManyLayers);
    }
    let written = known_type(&raw.media_type);
    let media_type = if written.is_empty() { stated } else { written };
    let no_entries = raw.schema_version == 2 && raw.config.is_none() && matches!(media_type, OCI_INDEX | DOCKER_LIST);
    let is_index = raw.manifests.is_some() || no_entries;
    match raw {
        RawManifest { schema_version: 1, .. } => Err(ManifestError::Schema1),
        _ if is_index => {
            let entries = entries(raw.manifests.unwrap_or_default().items);
            let media_type = if media_type == DOCKER_LIST { DOCKER_LIST } else { OCI_INDEX };
            Ok(Manifest { media_type, content: Content::Index(entries) })
        }
        RawManifest { config: Some(config), layers, artifact_type, .. } => {
            let media_type = if media_type == DOCKER_MANIFEST { DOCKER_MANIFEST } else { OCI_MANIFEST };
            let layers = layers.unwrap_or_default().items;
            let content = match artifact(&config.media_type, &layers, &artifact_type) {
                Some(name) => Content::Artifact(name),
                None => {
                    let size = layers.iter().fold(config.size, |sum, layer| sum.saturating_add(layer.size));
                    Content::Image { config: config.digest.parse().map_err(|_| ManifestError::Unknown)?, size }
                }
            };
            Ok(Manifest { media_type, content })
        }
        _ => Err(ManifestError::Unknown),
    }
}

fn entries(raw: Vec<RawDescriptor>) -> Vec<Entry> {
    raw.into_iter()
        .filter(|entry| !is_attestation(entry))
        .filter(|entry| entry.media_type.is_empty() || !known_type(&entry.media_type).is_empty())
        .filter_map(|entry| {
            let platform = entry.platform.and_then(RawPlatform::into_platform);
            Some(Entry { digest: entry.digest.parse().ok()?, platform })
        })
        .collect()
}

/// What an artifact is called; none for an image. What runtimes unpack are layers of the image's own types, under a
/// configuration of an image: <https://github.com/containerd/containerd/blob/main/core/images/mediatypes.go>.
fn artifact(config: &str, layers: &[RawDescriptor], artifact_type: &str) -> Option<String> {
    const IMAGE_CONFIGS: [&str; 3] =
        ["", "application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json"];
    const LAYERS: [&str; 2] = ["application/vnd.oci.image.layer.", "application/vnd.docker.image.rootfs."];
    let is_layer = |layer: &RawDescriptor| {
        layer.media_type.is_empty() || LAYERS.iter().any(|kind| layer.media_type.starts_with(kind))
    };
    let kind = if !IMAGE_CONFIGS.contains(&config) {
        if artifact_type.is_empty() { config } else { artifact_type }
    } else {
        &layers.iter().find(|layer| !is_layer(layer))?.media_type
    };
    let name = match kind {
        "application/vnd.cncf.helm.config.v1+json" => "a Helm chart",
        "application/vnd.docker.plugin.v1+json" => "a Docker plugin",
        "application/vnd.wasm.config.v0+json" | "application/vnd.wasm.config.v1+json" => "a WebAssembly component",
        "application/vnd.dev.cosign.simplesigning.v1+json" => "a cosign signature",
        "application/vnd.in-toto+json" => "an attestation",
        "application/vnd.buildkit.cacheconfig.v0" => "a build cache",
        other => return Some(format!("an OCI artifact of the type `{}`", printable(other))),
    };
    Some(name.to_owned())
}

/// Provenance and the like, which builders put beside the images under a platform that does not exist.
fn is_attestation(entry: &RawDescriptor) -> bool {
    entry.annotations.as_ref().is_some_and(|all| all.reference_type == "attestation-manifest")
        || entry
            .platform
            .as_ref()
            .is_some_and(|platform| platform.os == "unknown" || platform.architecture == "unknown")
}

/// The platform in an image's configuration.
pub(super) fn config_platform(bytes: &[u8]) -> Option<Platform> {
    serde_json::from_slice::<RawPlatform>(bytes).ok()?.into_platform()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawManifest {
    #[serde(default)]
    schema_version: u64,
    #[serde(default, deserialize_with = "lenient")]
    media_type: String,
    #[serde(default, deserialize_with = "lenient")]
    artifact_type: String,
    manifests: Option<Bounded<MAX_ENTRIES>>,
    config: Option<RawDescriptor>,
    layers: Option<Bounded<MAX_LAYERS>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawDescriptor {
    #[serde(default, deserialize_with = "lenient")]
    media_type: String,
    #[serde(default, deserialize_with = "lenient")]
    digest: String,
    #[serde(default)]
    size: u64,
    platform: Option<RawPlatform>,
    annotations: Option<RawAnnotations>,
}

#[derive(Deserialize)]
struct RawAnnotations {
    #[serde(default, rename = "vnd.docker.reference.type", deserialize_with = "lenient")]
    reference_type: String,
}

/// The first descriptors of a list: what 4 MiB of `{},{},…` would take in memory is not for a registry to decide.
#[derive(Default)]
struct Bounded<const MOST: usize> {
    items: Vec<RawDescriptor>,
    /// Whether there are more.
    more: bool,
}

impl<'de, const MOST: usize> Deserialize<'de> for Bounded<MOST> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<const MOST: usize>;

        impl<'de, const MOST: usize> serde::de::Visitor<'de> for Visitor<MOST> {
            type Value = Bounded<MOST>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list of descriptors")
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut bounded = Bounded::default();
                while bounded.items.len() < MOST {
                    match list.next_element()? {
                        Some(item) => bounded.items.push(item),
                        None => return Ok(bounded),
                    }
                }
                while list.next_element::<serde::de::IgnoredAny>()?.is_some() {
                    bounded.more = true;
                }
                Ok(bounded)
            }
        }

        deserializer.deserialize_seq(Visitor)
    }
}

#[derive(Deserialize)]
struct RawPlatform {
    #[serde(default, deserialize_with = "lenient")]
    os: String,
    #[serde(default, deserialize_with = "lenient")]
    architecture: String,
    #[serde(default, deserialize_with = "lenient")]
    variant: String,
}

impl RawPlatform {
    fn into_platform(self) -> Option<Platform> {
        let variant = if self.variant.is_empty() { String::new() } else { format!("/{}", self.variant) };
        format!("{}/{}{variant}", self.os, self.architecture).parse().ok()
    }
}

/// A text; null counts as empty.
fn lenient<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.unwrap_or_default())
}
