//! Submarine's `JupyterImagePuller`, as it stands.

use schemars::JsonSchema;
use serde::{Deserialize, de::IgnoredAny};

use super::auth::Auth;
use crate::stages::{
    environment::file,
    source::{
        header::Kind,
        located::{Entries, Located, anything, number_or_text},
    },
};

/// The kind.
pub const KIND: Kind =
    Kind { version: "org.apache.submarine/v1", name: "JupyterImagePuller", max_nodes: file::KIND.max_nodes };

/// Submarine's list of images to pull, read as an environment. The file's path is its identity, and its tenant gives the
/// namespace.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "JupyterImagePuller")]
pub struct JupyterImagePullerFile {
    /// `org.apache.submarine/v1`.
    #[schemars(extend("const" = "org.apache.submarine/v1"))]
    pub api_version: Located<String>,
    /// `JupyterImagePuller`.
    #[schemars(extend("const" = "JupyterImagePuller"))]
    pub kind: Located<String>,
    /// Kubernetes' metadata.
    pub metadata: Option<Metadata>,
    /// The images and the nodes.
    pub spec: PullerSpec,
    /// What Submarine's operator reports; not used.
    #[serde(default)]
    #[schemars(schema_with = "anything")]
    #[expect(dead_code, reason = "documents a field that is not used")]
    pub status: IgnoredAny,
}

/// Kubernetes' metadata. Fields that are not listed here are not used.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Metadata {
    /// Not used: the file's path is its identity.
    #[serde(default)]
    #[schemars(schema_with = "anything")]
    #[expect(dead_code, reason = "documents a field that is not used")]
    pub name: IgnoredAny,
    /// If it is there, the namespace of the tenant.
    pub namespace: Option<Located<String>>,
}

/// The images and the nodes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "JupyterImagePullerSpec")]
pub struct PullerSpec {
    /// The images, at least one.
    #[schemars(extend("minItems" = 1))]
    pub images: Located<Vec<PullerImage>>,
    /// Labels that a node must have; an empty one means every Linux node.
    pub node_selector: Option<Entries<Located<String>>>,
    /// Hours between two looks at the registry, as a text or a number: `'2'`, `0.5`.
    #[serde(default)]
    #[schemars(schema_with = "number_or_text")]
    pub refresh_hours: Option<Located<String>>,
}

/// One image.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "JupyterImagePullerImage")]
pub struct PullerImage {
    /// A name, unique in the file.
    pub name: Located<String>,
    /// What to pull: `host/path:tag`.
    pub image: Located<String>,
    /// Credentials.
    pub auth: Option<Auth>,
}
