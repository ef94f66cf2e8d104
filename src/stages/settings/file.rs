//! `larder.yaml`, as it stands.

use schemars::JsonSchema;
use serde::Deserialize;

use self::shared::{Placement, Puller};
use crate::{
    model::{environment::Strategy, lint::Lint, settings::LockMode},
    stages::source::{
        header::{API_VERSION, Kind},
        located::{Entries, Located, number_or_text},
    },
};

pub mod shared;

/// The kind of `larder.yaml`. Ten thousand tenants have fewer nodes.
pub const KIND: Kind = Kind { version: API_VERSION, name: "Settings", max_nodes: 250_000 };

/// What holds for all environments of a repository.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Settings")]
pub struct SettingsFile {
    /// `larder.dev/v1alpha1`.
    #[schemars(extend("const" = "larder.dev/v1alpha1"))]
    pub api_version: Located<String>,
    /// `Settings`.
    #[schemars(extend("const" = "Settings"))]
    pub kind: Located<String>,
    /// The settings.
    pub spec: Option<SettingsSpec>,
}

/// The settings.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SettingsSpec {
    /// What an environment has that says nothing else.
    pub defaults: Option<Defaults>,
    /// Tenants: the directories of `environments/`, by name.
    pub tenants: Option<Entries<Tenant>>,
    /// Pools by name.
    pub pools: Option<Entries<Placement>>,
    /// Registries by host.
    pub registries: Option<Entries<Registry>>,
    /// The ConfigMap that lists a tenant's images.
    pub records: Option<Records>,
    /// How lock changes get into the tracked branch.
    pub lock: Option<Lock>,
    /// What may be deleted.
    pub prune: Option<Prune>,
    /// Images that the pullers themselves run.
    pub helpers: Option<Helpers>,
    /// What looks like a mistake.
    pub lints: Option<Lints>,
}

/// What an environment has that says nothing else.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Defaults {
    /// A pool's name; every Linux node by default.
    pub pool: Option<Located<String>>,
    /// How often references are resolved again; `2h` by default.
    pub refresh: Option<Located<String>>,
    /// How the images get to the nodes.
    pub puller: Option<Puller>,
}

/// A tenant's part of the cluster.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Tenant {
    /// Its namespace, which no other tenant shares.
    pub namespace: Located<String>,
    /// Whether larder makes the namespace; false by default.
    pub create_namespace: Option<bool>,
    /// Where its images may come from: patterns of `host/path` without a tag, in which `*` stands for any text without a
    /// slash and `**` for any text; a host alone stands for all of its images. Docker Hub is `docker.io`, with `library/`
    /// before official images. Anywhere by default.
    pub registries: Option<Located<Vec<Located<String>>>>,
    /// The pools that its environments may name; any by default.
    pub pools: Option<Located<Vec<Located<String>>>>,
    /// Whether its environments may have nodeSelector, tolerations or affinity of their own, or none at all, which means
    /// every Linux node; true by default, and false where `pools` is given.
    pub inline_placement: Option<bool>,
    /// The strategies that its environments may choose; any by default.
    pub strategies: Option<Located<Vec<Strategy>>>,
    /// The largest number of images of all its environments together.
    pub max_images: Option<Located<u32>>,
    /// The largest size of the images of all its environments together: compressed, as the lock has it, of each image its
    /// largest platform, the same digest once. `200Gi`, for example.
    #[serde(default)]
    #[schemars(schema_with = "number_or_text")]
    pub max_size: Option<Located<String>>,
    /// Secrets of its namespace that are used for every image, besides the image's own `pullSecret`.
    pub pull_secrets: Option<Vec<Located<String>>>,
    /// Whom larder acts for when it applies this tenant's objects (other than the namespace):
    /// `system:serviceaccount:NAMESPACE:NAME`. larder itself by default.
    pub impersonate: Option<Located<String>>,
}

/// How a registry is reached.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Registry {
    /// Where its images are looked for first: `host[:port][/path]`, with `http://` before it for plain http.
    pub mirrors: Option<Vec<Located<String>>>,
    /// Whether it is asked over http instead of https.
    pub plain_http: Option<bool>,
    /// A file of certificates on the controller's machine, to be trusted in addition to the system's.
    pub ca_file: Option<Located<String>>,
    /// Certificates to be trusted in addition to the system's, as PEM text.
    pub ca: Option<Located<String>>,
}

/// The ConfigMap that lists a tenant's images.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Records {
    /// Its name; `submarine-image-pull-operator-records` by default.
    pub name: Option<Located<String>>,
}

/// How lock changes get into the tracked branch.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Lock {
    /// `commit` pushes to the branch itself, `branch` proposes by pull request; `commit` by default.
    pub mode: Option<LockMode>,
    /// The branch that pull requests come from; `larder/lock` by default. It belongs to larder alone.
    pub branch: Option<Located<String>>,
}

/// What may be deleted.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Prune {
    /// The largest share of environments that one pass removes; `30%` by default.
    #[serde(default)]
    #[schemars(schema_with = "number_or_text")]
    pub budget: Option<Located<String>>,
    /// Removals that are wanted, whatever the budget says: `tenant/name`, or `tenant/*`.
    pub confirmed: Option<Vec<Located<String>>>,
}

/// What looks like a mistake.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Lints {
    /// Lints that are not told of anything.
    pub allow: Option<Vec<Lint>>,
}

/// Images that the pullers themselves run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Helpers {
    /// Has a static `/bin/busybox`; `docker.io/library/busybox:1.37.0-musl` by default.
    pub hold: Option<Located<String>>,
    /// Sleeps forever; `registry.k8s.io/pause:3.10` by default.
    pub pause: Option<Located<String>>,
}
