//! Rendered objects, and what a target holds of them.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde::Serialize;
use serde_json::Value;

use super::{
    failure::Failure,
    fields::Fields,
    name::{EnvironmentId, Name},
};

/// The label on every object of ours: which larder made it.
pub const INSTANCE_LABEL: &str = "larder.dev/instance";
/// The one label of a puller's selector, which never changes.
pub const PULLER_LABEL: &str = "larder.dev/puller";
/// The annotation with the object's own [`ObjectId`]; a copy under another name is not taken for ours.
pub const OBJECT_ANNOTATION: &str = "larder.dev/object";
/// The annotation with the [`Owner`].
pub const OWNER_ANNOTATION: &str = "larder.dev/owner";
/// The annotation with the digest of the rendered manifest without this annotation.
pub const MANIFEST_ANNOTATION: &str = "larder.dev/manifest";

/// The kinds that larder makes, in the order in which they are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Kind {
    /// `v1` Namespace.
    Namespace,
    /// `v1` ServiceAccount.
    ServiceAccount,
    /// `v1` ConfigMap.
    ConfigMap,
    /// `apps/v1` DaemonSet.
    DaemonSet,
}

impl Kind {
    /// All of them, in order.
    pub const ALL: [Self; 4] = [Self::Namespace, Self::ServiceAccount, Self::ConfigMap, Self::DaemonSet];

    /// `apiVersion` as manifests write it.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::DaemonSet => "apps/v1",
            _ => "v1",
        }
    }

    /// `kind` as manifests write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Namespace => "Namespace",
            Self::ServiceAccount => "ServiceAccount",
            Self::ConfigMap => "ConfigMap",
            Self::DaemonSet => "DaemonSet",
        }
    }

    /// The kind that manifests write like this.
    pub fn of(api_version: &str, kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == kind && known.api_version() == api_version)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Which object. Ordered as objects are applied. Shown as `DaemonSet/namespace/name`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ObjectId {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace; empty for a Namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "" => write!(f, "{}/{}", self.kind, self.name),
            namespace => write!(f, "{}/{namespace}/{}", self.kind, self.name),
        }
    }
}

/// For whom an object is made. Shown as `tenant/name`, or `tenant` alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// A tenant: its namespace and its records.
    Tenant(Name),
    /// An environment: its pullers and its Secret reference.
    Environment(EnvironmentId),
}

impl Owner {
    /// The tenant, in both cases.
    pub fn tenant(&self) -> &Name {
        match self {
            Self::Tenant(tenant) => tenant,
            Self::Environment(id) => &id.tenant,
        }
    }

    /// Reads what [`OWNER_ANNOTATION`] holds.
    pub fn parse(text: &str) -> Option<Self> {
        match text.split_once('/') {
            None => text.parse().ok().map(Self::Tenant),
            Some(_) => text.parse().ok().map(Self::Environment),
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tenant(tenant) => write!(f, "{tenant}"),
            Self::Environment(id) => write!(f, "{id}"),
        }
    }
}

impl Serialize for Owner {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A rendered and checked object.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// Which object.
    pub id: ObjectId,
    /// For whom.
    pub owner: Owner,
    /// The whole object, with labels and annotations ([`INSTANCE_LABEL`], [`OBJECT_ANNOTATION`], [`OWNER_ANNOTATION`],
    /// [`MANIFEST_ANNOTATION`]).
    pub object: Arc<Value>,
    /// The user in whose name it is applied; none: larder's own.
    pub impersonate: Option<String>,
}

impl Manifest {
    /// The value of [`MANIFEST_ANNOTATION`].
    pub fn digest(&self) -> &str {
        self.object["metadata"]["annotations"][MANIFEST_ANNOTATION].as_str().unwrap_or_default()
    }
}

/// All manifests, or why an owner has none.
pub type Manifests = BTreeMap<Owner, Result<Vec<Manifest>, Failure>>;

/// An object of ours that a target holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InventoryEntry {
    /// For whom it was made.
    pub owner: Owner,
    /// The uid, for deletes with a precondition; empty in a directory.
    pub uid: String,
    /// The value of [`MANIFEST_ANNOTATION`].
    pub manifest: String,
    /// The fields that our last apply still owns; none where the target does not know.
    pub fields: Option<Fields>,
    /// Whether it is being deleted.
    pub terminating: bool,
}

impl InventoryEntry {
    /// Whether it is known, without asking the target again, that this manifest was the last that was applied and that
    /// nobody has changed or removed any field of it since.
    pub fn is_settled(&self, manifest: &Manifest) -> bool {
        !self.terminating
            && self.owner == manifest.owner
            && self.manifest == manifest.digest()
            && self.fields.as_ref().is_some_and(|fields| fields.cover(&manifest.object))
    }
}

/// The objects of ours that a target holds: those with our instance's label and their own identity as annotation.
pub type Inventory = BTreeMap<ObjectId, InventoryEntry>;

/// What the target says about one manifest.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The live object, or none.
    pub live: Option<Value>,
    /// The object as it would be after an apply: the server's dry run, or the manifest itself for a directory. Null where
    /// nothing is live: a new object is shown as it is sent.
    pub applied: Value,
}
