//! What a rendered object may be: exactly what is expected, with known fields only.
//!
//! Fields are listed, not forbidden one by one, so that one that Kubernetes adds tomorrow is refused until someone has
//! thought about it. A repository's templates are thereby no way to more rights than larder's own objects have.

mod at;
mod pod;
mod violation;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use self::at::At;
pub use self::violation::Violation;
use crate::model::manifest::{Kind, ObjectId, PULLER_LABEL};

/// The most that all annotations of an object may have, keys and values, in bytes.
///
/// Source: `TotalAnnotationSizeLimitB` of <https://github.com/kubernetes/apimachinery>, `pkg/api/validation`.
const MAX_ANNOTATIONS: usize = 256 << 10;

/// The most that all values of a ConfigMap may have, in bytes.
///
/// Source: <https://kubernetes.io/docs/concepts/configuration/configmap/#motivation>.
const MAX_CONFIG_MAP: usize = 1 << 20;

/// The object that must come out of a template.
pub struct Expected {
    kind: Kind,
    namespace: String,
    name: String,
    /// The value of [`PULLER_LABEL`], for a DaemonSet.
    pub selector: String,
    /// The ServiceAccount of its pods.
    pub service_account: String,
    /// What its pods must hold, pinned.
    pub images: BTreeSet<String>,
    /// What its pods may run besides.
    pub helpers: BTreeSet<String>,
}

impl Expected {
    /// An object without pods.
    pub fn new(kind: Kind, namespace: &str, name: &str) -> Self {
        Self {
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            selector: String::new(),
            service_account: String::new(),
            images: BTreeSet::new(),
            helpers: BTreeSet::new(),
        }
    }

    /// Its identity.
    pub fn id(&self) -> ObjectId {
        ObjectId { kind: self.kind, namespace: self.namespace.clone(), name: self.name.clone() }
    }
}

/// Compares a rendered object with what is expected.
pub fn check(object: &Value, expected: &Expected) -> Result<(), Violation> {
    let root = At::root(object);
    root.require("apiVersion")?.is(&json!(expected.kind.api_version()))?;
    root.require("kind")?.is(&json!(expected.kind.as_str()))?;
    let metadata = root.require("metadata")?;
    metadata.require("name")?.is(&json!(expected.name))?;
    if expected.kind == Kind::Namespace {
        metadata.only(&["name", "labels", "annotations"])?;
    } else {
        metadata.only(&["name", "namespace", "labels", "annotations"])?;
        metadata.require("namespace")?.is(&json!(expected.namespace))?;
    }
    check_texts(&metadata)?;

    let common = ["apiVersion", "kind", "metadata"];
    match expected.kind {
        Kind::Namespace => root.only(&common),
        Kind::ServiceAccount => {
            root.only(&[&common[..], &["automountServiceAccountToken", "imagePullSecrets"]].concat())?;
            root.get("automountServiceAccountToken").map_or(Ok(()), |mount| mount.is(&json!(false)))
        }
        Kind::ConfigMap => {
            root.only(&[&common[..], &["data"]].concat())?;
            check_data(&root.require("data")?)
        }
        Kind::DaemonSet => {
            root.only(&[&common[..], &["spec"]].concat())?;
            check_daemon_set(&root.require("spec")?, expected)
        }
    }
}

/// Labels and annotations are texts: `x: true` in a template is none, and Kubernetes refuses it with less of a hint.
fn check_texts(metadata: &At) -> Result<(), Violation> {
    for map in ["labels", "annotations"].into_iter().filter_map(|key| metadata.get(key)) {
        let mut bytes = 0;
        for (key, value) in map.entries()? {
            bytes += key.len() + value.text()?.len();
        }
        if bytes > MAX_ANNOTATIONS {
            return Err(Violation::TooLarge { path: map.path, bytes, max: MAX_ANNOTATIONS });
        }
    }
    Ok(())
}

fn check_data(data: &At) -> Result<(), Violation> {
    let mut bytes = 0;
    for (_, value) in data.entries()? {
        bytes += value.text()?.len();
    }
    if bytes > MAX_CONFIG_MAP {
        return Err(Violation::TooLarge { path: data.path.clone(), bytes, max: MAX_CONFIG_MAP });
    }
    Ok(())
}

fn check_daemon_set(spec: &At, expected: &Expected) -> Result<(), Violation> {
    spec.only(&["selector", "template", "updateStrategy", "minReadySeconds", "revisionHistoryLimit"])?;
    // It can never be changed again, so nothing that may change goes into it.
    spec.require("selector")?.is(&json!({"matchLabels": {PULLER_LABEL: expected.selector}}))?;
    let template = spec.require("template")?;
    template.only(&["metadata", "spec"])?;
    let metadata = template.require("metadata")?;
    metadata.only(&["labels", "annotations"])?;
    metadata.require("labels")?.require(PULLER_LABEL)?.is(&json!(expected.selector))?;
    check_texts(&metadata)?;
    pod::check(&template.require("spec")?, expected)
}
