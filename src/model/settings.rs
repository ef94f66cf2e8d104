//! `larder.yaml` as larder uses it: what holds for all environments of a repository.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    environment::{Placement, Puller, Strategy},
    lint::Lint,
    name::{EnvironmentId, Name},
    pattern::RepositoryPattern,
    reference::ImageReference,
    registries::Registries,
};

/// The whole of `larder.yaml`, completed with defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Tenants by name. A directory of `environments/` that is not listed here is a failure of its environments: a new
    /// directory must not reach a namespace that nobody gave it.
    pub tenants: BTreeMap<Name, Tenant>,
    /// Pools by name.
    pub pools: BTreeMap<String, Placement>,
    /// What an environment has that says nothing else.
    pub defaults: Defaults,
    /// How registries are reached.
    pub registries: Registries,
    /// The records' ConfigMap.
    pub records: Records,
    /// How lock changes get into the tracked branch.
    pub lock: LockSettings,
    /// What may be deleted.
    pub prune: Prune,
    /// Images that the pullers themselves run.
    pub helpers: Helpers,
    /// Lints that are not reported for anything.
    pub allow: BTreeSet<Lint>,
}

/// A tenant's part of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tenant {
    /// Its namespace; no two tenants share one.
    pub namespace: String,
    /// Whether larder makes the namespace. It never deletes one.
    pub create_namespace: bool,
    /// What its environments may do.
    pub bounds: Bounds,
    /// Secrets of its namespace that are used for every image, besides the image's own.
    pub pull_secrets: Vec<String>,
    /// The user that larder acts as when it applies the tenant's objects: `system:serviceaccount:NAMESPACE:NAME`.
    pub impersonate: Option<String>,
}

impl Tenant {
    /// Whether the tenant may use an image of this repository.
    pub fn allows(&self, reference: &ImageReference) -> bool {
        self.bounds.registries.as_ref().is_none_or(|patterns| patterns.iter().any(|p| p.matches(reference)))
    }
}

/// What the environments of a tenant may do; by default, everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Where images may come from; None: anywhere.
    pub registries: Option<Vec<RepositoryPattern>>,
    /// The pools that may be named; None: any.
    pub pools: Option<BTreeSet<String>>,
    /// Whether nodes may be chosen by pools only.
    pub pools_only: bool,
    /// The strategies that may be chosen; None: any.
    pub strategies: Option<BTreeSet<Strategy>>,
    /// The most images of all environments together.
    pub max_images: Option<usize>,
    /// The most compressed bytes of all environments' images together.
    pub max_size: Option<u64>,
}

/// Defaults of environments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// The pool's name; none: every Linux node.
    pub pool: Option<String>,
    /// How often references are resolved again.
    pub refresh: Duration,
    /// How the images get to the nodes.
    pub puller: Puller,
}

/// The ConfigMap that lists a tenant's images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Records {
    /// Its name; by default `submarine-image-pull-operator-records`.
    pub name: String,
}

/// How lock changes get into the tracked branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockSettings {
    /// By a push, or by a pull request.
    pub mode: LockMode,
    /// The branch that pull requests come from; larder's own, forced at will.
    pub branch: String,
}

impl Default for LockSettings {
    fn default() -> Self {
        Self { mode: LockMode::default(), branch: "larder/lock".to_owned() }
    }
}

/// By what lock changes get into the tracked branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum LockMode {
    /// A push to the branch itself.
    #[default]
    Commit,
    /// A pull request that a person merges.
    Branch,
}

/// What may be deleted without a word, and what a commit has confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prune {
    /// The largest share of a tenant's environments that one pass removes, in percent. One environment is always allowed
    /// unless it is its tenant's last; tenants that remove one beyond their share may together remove this share of all.
    pub budget: u8,
    /// Removals that someone has confirmed in `larder.yaml`; these never count.
    pub confirmed: Vec<Confirmed>,
}

/// A removal that is wanted, whatever the budget says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confirmed {
    /// `tenant/name`.
    Environment(EnvironmentId),
    /// `tenant/*`.
    Tenant(Name),
}

impl Confirmed {
    /// Whether this confirms the removal of that environment.
    pub fn covers(&self, id: &EnvironmentId) -> bool {
        match self {
            Self::Environment(confirmed) => confirmed == id,
            Self::Tenant(tenant) => *tenant == id.tenant,
        }
    }

    /// The tenant that loses something.
    pub fn tenant(&self) -> &Name {
        match self {
            Self::Environment(id) => &id.tenant,
            Self::Tenant(tenant) => tenant,
        }
    }
}

/// Images that the pullers themselves run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Helpers {
    /// Has a static `/bin/busybox` that runs in any image; strategy `containers`.
    pub hold: ImageReference,
    /// Sleeps forever; strategies `initContainers` and `imageVolumes`.
    pub pause: ImageReference,
}
