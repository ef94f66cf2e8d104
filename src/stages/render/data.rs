//! What templates see. Documented for their authors in `docs/reference/templates.md`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{names, shards};
use crate::model::{
    environment::{Environment, Placement, Strategy},
    lock::Lockfile,
    name::{EnvironmentId, Name},
    settings::{Helpers, Settings, Tenant},
};

/// The label by which Kubernetes tells nodes' operating systems apart.
const OS_LABEL: &str = "kubernetes.io/os";

/// What every template sees.
#[derive(Clone, Serialize)]
pub struct Common<'a> {
    pub instance: &'a str,
    pub tenant: TenantData<'a>,
}

#[derive(Clone, Serialize)]
pub struct TenantData<'a> {
    pub name: &'a Name,
    pub namespace: &'a str,
}

/// What `namespace.yaml.j2` and `records.yaml.j2` see.
#[derive(Serialize)]
pub struct TenantContext<'a> {
    #[serde(flatten)]
    pub common: Common<'a>,
    pub records: RecordsData<'a>,
}

#[derive(Serialize)]
pub struct RecordsData<'a> {
    pub name: &'a str,
    pub list: &'a str,
}

/// What `service-account.yaml.j2` and `puller.yaml.j2` see.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentContext<'a> {
    #[serde(flatten)]
    pub common: Common<'a>,
    pub environment: EnvironmentData<'a>,
    pub service_account: String,
    pub image_pull_secrets: Vec<SecretName<'a>>,
    pub placement: Placement,
    pub helpers: HelpersData,
    /// One shard; none for `service-account.yaml.j2`.
    pub puller: Option<PullerData>,
    pub images: Vec<ImageData>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentData<'a> {
    pub id: &'a EnvironmentId,
    pub name: &'a Name,
    pub display_name: Option<&'a str>,
    pub description: Option<&'a str>,
}

/// An element of Kubernetes' `imagePullSecrets`.
#[derive(Serialize)]
pub struct SecretName<'a> {
    name: &'a str,
}

#[derive(Serialize)]
pub struct HelpersData {
    pub hold: String,
    pub pause: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PullerData {
    pub name: String,
    pub selector: String,
    pub strategy: Strategy,
    pub max_unavailable: IntOrString,
    pub shard: usize,
    pub shards: usize,
}

/// Kubernetes' type of that name.
#[derive(Serialize)]
#[serde(untagged)]
pub enum IntOrString {
    Int(u32),
    String(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImageData {
    pub name: Name,
    /// For names of containers and volumes; unique in the environment.
    pub slug: String,
    /// What nodes pull: `host/path:tag@sha256:…`.
    pub pinned: String,
    pub reference: String,
    pub digest: String,
    /// Whether it is a previous digest that is retained.
    pub former: bool,
}

impl<'a> Common<'a> {
    pub fn new(instance: &'a str, name: &'a Name, tenant: &'a Tenant) -> Self {
        Self { instance, tenant: TenantData { name, namespace: &tenant.namespace } }
    }
}

impl<'a> EnvironmentContext<'a> {
    /// What is the same for all shards.
    pub fn new(common: Common<'a>, environment: &'a Environment, tenant: &'a Tenant, settings: &Settings) -> Self {
        let own = environment.images.iter().filter_map(|image| image.pull_secret.as_deref());
        let secrets: BTreeSet<&str> = own.chain(tenant.pull_secrets.iter().map(String::as_str)).collect();
        Self {
            environment: EnvironmentData {
                id: &environment.id,
                name: &environment.id.name,
                display_name: environment.display_name.as_deref(),
                description: environment.description.as_deref(),
            },
            service_account: names::service_account(common.instance, &environment.id),
            image_pull_secrets: secrets.into_iter().map(|name| SecretName { name }).collect(),
            placement: on_linux(&environment.placement),
            helpers: HelpersData::from(&settings.helpers),
            puller: None,
            images: Vec::new(),
            common,
        }
    }
}

impl From<&Helpers> for HelpersData {
    fn from(helpers: &Helpers) -> Self {
        Self { hold: helpers.hold.to_string(), pause: helpers.pause.to_string() }
    }
}

impl PullerData {
    pub fn new(instance: &str, environment: &Environment, shard: usize, shards: usize) -> Self {
        let limit = &environment.puller.max_unavailable;
        Self {
            name: names::daemon_set(instance, &environment.id, shard),
            selector: names::selector(instance, &environment.id, shard),
            strategy: environment.puller.strategy,
            max_unavailable: limit.parse().map_or_else(|_| IntOrString::String(limit.clone()), IntOrString::Int),
            shard,
            shards,
        }
    }
}

/// The images that are locked, in the environment's order, then those that only the lockfile still has, then the previous
/// digests that are retained; each digest of a repository once, so that an image is not pulled by two containers. A previous
/// one that the tenant may not use any more is let go.
pub fn images(environment: &Environment, tenant: &Tenant, lockfile: &Lockfile) -> Vec<ImageData> {
    let named: BTreeSet<&Name> = environment.images.iter().map(|image| &image.name).collect();
    let rest = || lockfile.images.iter().filter(|(name, _)| !named.contains(name));
    let locked = || {
        let named = environment.images.iter().filter_map(|i| lockfile.images.get_key_value(&i.name));
        named.chain(rest())
    };
    let current = locked().map(|(name, image)| ImageData {
        slug: names::image(name),
        pinned: image.reference.pinned(&image.digest),
        reference: image.reference.to_string(),
        digest: image.digest.to_string(),
        former: false,
        name: name.clone(),
    });
    let former = locked().flat_map(|(name, image)| {
        let retained = image.previous.iter().take(environment.puller.retain);
        retained.filter(|previous| tenant.allows(&previous.reference)).map(|previous| ImageData {
            slug: names::former_image(name, &previous.digest),
            pinned: previous.reference.pinned(&previous.digest),
            reference: previous.reference.to_string(),
            digest: previous.digest.to_string(),
            former: true,
            name: name.clone(),
        })
    });
    let mut seen = BTreeSet::new();
    current.chain(former).filter(|image| seen.insert(image.pinned.clone())).collect()
}

/// The images of each shard by its number; shards without images are left out.
pub fn sharded(images: Vec<ImageData>) -> (usize, BTreeMap<usize, Vec<ImageData>>) {
    let shards = shards::count(images.len());
    let mut parts: BTreeMap<usize, Vec<ImageData>> = BTreeMap::new();
    for image in images {
        parts.entry(shards::shard_of(image.name.as_str(), shards)).or_default().push(image);
    }
    (shards, parts)
}

/// Linux nodes only, unless the placement says itself which ones: a pod that cannot start on a Windows node would keep
/// the puller from ever being complete.
fn on_linux(placement: &Placement) -> Placement {
    let mut placement = placement.clone();
    let elsewhere = placement.affinity.as_ref().is_some_and(|affinity| affinity.to_string().contains(OS_LABEL));
    if !elsewhere {
        placement.node_selector.entry(OS_LABEL.to_owned()).or_insert_with(|| "linux".to_owned());
    }
    placement
}
