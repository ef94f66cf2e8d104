//! `environments/<tenant>/<name>.yaml`, as it stands.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    model::lint::Lint,
    stages::{
        settings::file::shared::{Puller, Toleration},
        source::{
            header::{API_VERSION, Kind},
            located::{Entries, Located, number_or_text},
        },
    },
};

/// The kind of an environment's file. A thousand images have fewer nodes.
pub const KIND: Kind = Kind { version: API_VERSION, name: "Environment", max_nodes: 20_000 };

/// A set of images for a pool. Its identity is the file's path.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Environment")]
pub struct EnvironmentFile {
    /// `larder.dev/v1alpha1`.
    #[schemars(extend("const" = "larder.dev/v1alpha1"))]
    pub api_version: Located<String>,
    /// `Environment`.
    #[schemars(extend("const" = "Environment"))]
    pub kind: Located<String>,
    /// The environment.
    pub spec: EnvironmentSpec,
}

/// What an environment consists of.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct EnvironmentSpec {
    /// A title for menus: one line.
    pub display_name: Option<Located<String>>,
    /// A sentence for menus.
    pub description: Option<Located<String>>,
    /// The images, at least one.
    #[schemars(extend("minItems" = 1))]
    pub images: Located<Vec<ImageEntry>>,
    /// The name of a pool of larder.yaml.
    pub pool: Option<Located<String>>,
    /// Labels that a node must have, instead of a pool.
    pub node_selector: Option<Entries<Located<String>>>,
    /// Taints that are tolerated, instead of a pool.
    pub tolerations: Option<Vec<Located<Toleration>>>,
    /// A Kubernetes `core/v1` Affinity, instead of a pool.
    pub affinity: Option<Located<Value>>,
    /// How often references are resolved again, for example `2h`.
    pub refresh: Option<Located<String>>,
    /// How the images get to the nodes.
    pub puller: Option<Puller>,
    /// Resources for the spawn menu.
    pub resources: Option<Resources>,
    /// Lints that are not told of this environment.
    pub allow: Option<Vec<Lint>>,
    /// While true, nothing of the environment changes.
    pub suspend: Option<bool>,
}

/// One image.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ImageEntry {
    /// A name, unique in the file.
    pub name: Located<String>,
    /// What to pull: `host/path:tag`.
    pub image: Located<String>,
    /// Which tags are followed. Not supported yet: an image with a policy is refused.
    #[serde(default)]
    #[schemars(schema_with = "crate::stages::source::located::anything")]
    pub policy: Option<Located<Value>>,
    /// A Secret of the tenant's namespace with registry credentials.
    pub pull_secret: Option<Located<String>>,
    /// Platforms that the image must be made for.
    pub platforms: Option<Vec<Located<String>>>,
}

/// Resources for the spawn menu, as KubeSpawner names them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Resources {
    /// Memory: `2G`, `512Mi`.
    pub memory: Option<Range>,
    /// CPUs: `0.5`, `4`.
    pub cpu: Option<Range>,
    /// Extended resources of a server by name: `nvidia.com/gpu: 1`.
    pub extra: Option<Entries<Located<String>>>,
}

/// What is promised and what is the most.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Range {
    /// Promised.
    #[serde(default)]
    #[schemars(schema_with = "number_or_text")]
    pub guarantee: Option<Located<String>>,
    /// The most.
    #[serde(default)]
    #[schemars(schema_with = "number_or_text")]
    pub limit: Option<Located<String>>,
}
