//! What `larder.yaml` and environments have in common, as it stands.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    model::environment::Strategy,
    stages::source::located::{Entries, Located, Place, number_or_text},
};

/// A set of nodes.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Placement {
    /// Labels that a node must have.
    pub node_selector: Option<Entries<Located<String>>>,
    /// Taints that are tolerated.
    pub tolerations: Option<Vec<Located<Toleration>>>,
    /// A Kubernetes `core/v1` Affinity.
    pub affinity: Option<Located<Value>>,
}

impl Placement {
    /// Where it is: at its first word; none when it says nothing.
    pub fn place(&self) -> Option<Place> {
        let selector = self.node_selector.as_ref().map(|entries| entries.0.first().map(|(key, _)| key.place));
        let toleration = self.tolerations.as_ref().map(|list| list.first().map(|toleration| toleration.place));
        let affinity = self.affinity.as_ref().map(|affinity| Some(affinity.place));
        let given = [selector, toleration, affinity];
        given.iter().any(Option::is_some).then(|| given.into_iter().flatten().flatten().next().unwrap_or_default())
    }
}

/// A Kubernetes `core/v1` Toleration.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Toleration {
    /// The taint's key; none with operator `Exists` tolerates every taint.
    pub key: Option<Located<String>>,
    /// `Equal` (the default) or `Exists`.
    pub operator: Option<Operator>,
    /// The taint's value.
    pub value: Option<Located<String>>,
    /// The taint's effect; none matches all.
    pub effect: Option<Effect>,
    /// Seconds that a `NoExecute` taint is tolerated.
    pub toleration_seconds: Option<Located<i64>>,
}

/// How a toleration compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum Operator {
    /// Key and value are equal.
    Equal,
    /// The key is there.
    Exists,
}

impl Operator {
    /// The word in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "Equal",
            Self::Exists => "Exists",
        }
    }
}

/// What a taint does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum Effect {
    /// New pods stay away.
    NoSchedule,
    /// New pods rather stay away.
    PreferNoSchedule,
    /// Pods have to go.
    NoExecute,
}

impl Effect {
    /// The word in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}

/// How an environment's images get to the nodes.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Puller {
    /// The shape of the DaemonSet; `containers` by default.
    pub strategy: Option<Located<Strategy>>,
    /// `maxUnavailable` of the DaemonSet's update: a number of pods, or a percentage; `10%` by default.
    #[serde(default)]
    #[schemars(schema_with = "number_or_text")]
    pub max_unavailable: Option<Located<String>>,
    /// Previous digests of each image that the nodes keep holding; 0 by default.
    pub retain: Option<Located<u32>>,
    /// After this long without full coverage an environment is degraded; `30m` by default.
    pub deadline: Option<Located<String>>,
}
