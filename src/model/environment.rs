//! An environment as larder uses it: one file of `environments/`, checked and completed with the defaults.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    lint::Lint,
    name::{EnvironmentId, Name},
    reference::ImageReference,
    resolution::Platform,
};

/// A set of images for a pool.
#[derive(Clone, Debug, PartialEq)]
pub struct Environment {
    /// Its identity, from the file's path.
    pub id: EnvironmentId,
    /// The file it was read from, from the root of the environment repository.
    pub path: String,
    /// A title for menus.
    pub display_name: Option<String>,
    /// A sentence for menus.
    pub description: Option<String>,
    /// Its images, in the file's order; names and references are checked to be distinct.
    pub images: Vec<Image>,
    /// The nodes that must hold them.
    pub placement: Placement,
    /// How often references are resolved again.
    pub refresh: Duration,
    /// How the images get to the nodes.
    pub puller: Puller,
    /// Resources for the spawn menu.
    pub resources: Option<Resources>,
    /// While true, neither its lockfile nor its objects change.
    pub suspend: bool,
    /// Lints that are not reported for it.
    pub allow: BTreeSet<Lint>,
}

/// One image of an environment.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    /// Its name, unique in the environment.
    pub name: Name,
    /// What is resolved.
    pub reference: ImageReference,
    /// A Secret of the tenant's namespace with registry credentials.
    pub pull_secret: Option<String>,
    /// Platforms that the index must hold; empty: no demand.
    pub platforms: Vec<Platform>,
    /// Line of the file where the image's reference is, counted from 1; for later problems.
    pub line: usize,
}

/// A set of nodes, in Kubernetes' own words.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Placement {
    /// Labels that a node must have.
    pub node_selector: BTreeMap<String, String>,
    /// Taints that are tolerated.
    pub tolerations: Vec<Toleration>,
    /// A `core/v1` Affinity, as JSON.
    pub affinity: Option<Value>,
}

impl Placement {
    /// Every Linux node, by the label that each has: <https://kubernetes.io/docs/reference/labels-annotations-taints/>.
    pub fn every_linux_node() -> Self {
        Self { node_selector: [("kubernetes.io/os".to_owned(), "linux".to_owned())].into(), ..Self::default() }
    }
}

/// A `core/v1` Toleration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Toleration {
    /// The taint's key; none with operator `Exists` tolerates every taint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// `Equal` (the default) or `Exists`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    /// The taint's value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`; none matches all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    /// Seconds that a `NoExecute` taint is tolerated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
}

/// How an environment's images get to the nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Puller {
    /// The shape of the DaemonSet.
    pub strategy: Strategy,
    /// `maxUnavailable` of its rolling update: a number of pods, or a percentage such as `10%`.
    pub max_unavailable: String,
    /// Previous digests of each image that the nodes keep holding.
    pub retain: usize,
    /// After this long without full coverage an environment is degraded.
    pub deadline: Duration,
}

/// The shape of a puller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Strategy {
    /// Each image is a container that runs a helper; images pull independently and stay held.
    #[default]
    Containers,
    /// Each image is an init container that runs `/bin/sh`; as zero-to-jupyterhub and Submarine have it.
    InitContainers,
    /// Each image is a volume; needs Kubernetes 1.35.
    ImageVolumes,
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Containers => "containers",
            Self::InitContainers => "initContainers",
            Self::ImageVolumes => "imageVolumes",
        })
    }
}

/// Resources for the spawn menu, as KubeSpawner names them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Resources {
    /// Memory, as the file writes it: `2G`, `512Mi`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Range>,
    /// CPUs, as the file writes them: `0.5`, `4`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Range>,
    /// Extended resources by name: `nvidia.com/gpu`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, String>,
}

/// What is promised and what is the most.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Range {
    /// Promised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guarantee: Option<String>,
    /// The most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
}
