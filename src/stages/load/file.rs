//! The files that people write, as they stand: the schema, with the place of each value and without any check beyond
//! types. The JSON Schemas are generated from these types.

pub mod environment;
pub mod jupyter_image_puller;
pub mod settings;
pub mod submarine;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;

use super::located::{Entries, Located};

/// The version of larder's own kinds.
pub const API_VERSION: &str = "larder.dev/v1alpha1";

/// The schema of a text that may be written like a number: what is read is the text as it stands.
pub fn number_or_text(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "number", "null"]})
}

/// The schema of what is read and not used.
pub fn anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({})
}

/// How every file starts; read leniently, to tell files of other kinds.
#[derive(Debug, Deserialize)]
pub struct Header {
    /// `apiVersion`.
    #[serde(default, rename = "apiVersion")]
    pub api_version: Option<Located<String>>,
    /// `kind`.
    #[serde(default)]
    pub kind: Option<Located<String>>,
    /// What only a Submarine environment has.
    #[serde(default, rename = "dockerImage")]
    pub docker_image: Option<IgnoredAny>,
    /// What SOPS adds to the files that it encrypts.
    #[serde(default)]
    pub sops: Option<IgnoredAny>,
}

/// A set of nodes.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Placement {
    /// Labels that a node must have.
    #[serde(default)]
    pub node_selector: Option<Entries<Located<String>>>,
    /// Taints that are tolerated.
    #[serde(default)]
    pub tolerations: Option<Vec<Located<Toleration>>>,
    /// A Kubernetes `core/v1` Affinity.
    #[serde(default)]
    pub affinity: Option<Located<Value>>,
}

/// A Kubernetes `core/v1` Toleration.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Toleration {
    /// The taint's key; none with operator `Exists` tolerates every taint.
    #[serde(default)]
    pub key: Option<Located<String>>,
    /// `Equal` (the default) or `Exists`.
    #[serde(default)]
    pub operator: Option<Operator>,
    /// The taint's value.
    #[serde(default)]
    pub value: Option<Located<String>>,
    /// The taint's effect; none matches all.
    #[serde(default)]
    pub effect: Option<Effect>,
    /// Seconds that a `NoExecute` taint is tolerated.
    #[serde(default)]
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
    #[serde(default)]
    pub strategy: Option<Located<Strategy>>,
    /// `maxUnavailable` of the DaemonSet's update: a number of pods, or a percentage; `10%` by default.
    #[serde(default)]
    #[schemars(schema_with = "number_or_text")]
    pub max_unavailable: Option<Located<String>>,
    /// Former digests of each image that the nodes keep holding; 0 by default.
    #[serde(default)]
    pub retain: Option<Located<u32>>,
    /// After this long without full coverage an environment is degraded; `30m` by default.
    #[serde(default)]
    pub deadline: Option<Located<String>>,
}

/// The shape of a puller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Strategy {
    /// Each image is a container that runs a helper.
    Containers,
    /// Each image is an init container that runs `/bin/sh`.
    InitContainers,
    /// Each image is a volume; needs Kubernetes 1.35.
    ImageVolumes,
}

impl From<Strategy> for crate::model::environment::Strategy {
    fn from(strategy: Strategy) -> Self {
        match strategy {
            Strategy::Containers => Self::Containers,
            Strategy::InitContainers => Self::InitContainers,
            Strategy::ImageVolumes => Self::ImageVolumes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{environment::EnvironmentFile, settings::SettingsFile};

    #[test]
    fn schemas_are_those_of_the_values() {
        let schema = serde_json::to_value(schemars::schema_for!(EnvironmentFile)).unwrap();
        assert_eq!(schema["title"], "Environment");
        let image = &schema["$defs"]["ImageEntry"];
        assert_eq!(image["properties"]["image"]["type"], "string");
        assert_eq!(image["required"], serde_json::json!(["name", "image"]));
        assert_eq!(image["additionalProperties"], false);
        let schema = serde_json::to_value(schemars::schema_for!(SettingsFile)).unwrap();
        assert_eq!(schema["$defs"]["Tenant"]["properties"]["namespace"]["type"], "string");
        let tenants = &schema["$defs"]["SettingsSpec"]["properties"]["tenants"];
        assert!(tenants.to_string().contains("additionalProperties"), "{tenants}");
    }
}
