//! Whether and how a live object differs from what an apply would make of it.

use serde_json::{Map, Value};
use similar::TextDiff;

use crate::model::{
    manifest::{Comparison, MANIFEST_ANNOTATION, Manifest, ObjectId},
    plan::{Action, Verdict},
    yaml::to_yaml,
};

/// Annotations that others keep for themselves and that say nothing about an object.
const NOISE: [&str; 2] =
    ["deprecated.daemonset.template.generation", "kubectl.kubernetes.io/last-applied-configuration"];

/// Metadata that the server keeps.
const SERVER: [&str; 6] = ["creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"];

/// What happens to an object, and a unified diff of its YAML, without Secrets' values.
///
/// A new object is shown as it is sent, a changed one as the server would keep it, so that `1000m` and `1` are equal.
/// `revision` says what manifests were rendered from, for the header of the diff: `commit 1a2b3c4`.
pub fn judge(manifest: &Manifest, comparison: &Comparison, revision: &str) -> Verdict {
    let (action, diff) = compare(manifest, comparison, revision);
    Verdict { action, diff }
}

fn compare(manifest: &Manifest, comparison: &Comparison, revision: &str) -> (Action, String) {
    let id = &manifest.id;
    let Some(live) = &comparison.live else {
        let mut new = shown(&manifest.object);
        mask(&mut [&mut new]);
        return (Action::Create, unified("", &to_yaml(&new), "/dev/null", &format!("{revision} {id}")));
    };
    let (mut before, mut after) = (shown(live), shown(&comparison.applied));
    let (old, new) = (format!("live {id}"), format!("{revision} {id}"));
    if before != after {
        mask(&mut [&mut before, &mut after]);
        return (Action::Configure, unified(&to_yaml(&before), &to_yaml(&after), &old, &new));
    }
    if live["metadata"]["annotations"][MANIFEST_ANNOTATION]
        != comparison.applied["metadata"]["annotations"][MANIFEST_ANNOTATION]
    {
        let note = "# what is sent is written differently and means the same\n";
        return (Action::Configure, format!("--- {old}\n+++ {new}\n{note}"));
    }
    if claims(live) != claims(&comparison.applied) {
        let note = "# the values are equal; fields that other managers have taken over become larder's again\n";
        return (Action::Configure, format!("--- {old}\n+++ {new}\n{note}"));
    }
    (Action::Unchanged, String::new())
}

/// The headers of a diff that deletes all.
pub(super) fn deleted(id: &ObjectId) -> String {
    format!("--- live {id}\n+++ /dev/null\n")
}

/// An object without what only the server keeps.
fn shown(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(top) = object.as_object_mut() {
        top.remove("status");
        if let Some(metadata) = top.get_mut("metadata").and_then(Value::as_object_mut) {
            SERVER.iter().for_each(|key| drop(metadata.remove(*key)));
            if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
                NOISE.iter().chain([&MANIFEST_ANNOTATION]).for_each(|key| drop(annotations.remove(*key)));
            }
            remove_if_empty(metadata, "annotations");
        }
    }
    if let Some(metadata) = object.pointer_mut("/spec/template/metadata").and_then(Value::as_object_mut) {
        metadata.remove("creationTimestamp");
    }
    object
}

fn remove_if_empty(map: &mut Map<String, Value>, key: &str) {
    if map.get(key).and_then(Value::as_object).is_some_and(Map::is_empty) {
        map.remove(key);
    }
}

/// Who holds which fields, without times and without what is written through a subresource such as `status`.
fn claims(object: &Value) -> Vec<(&Value, &Value, &Value)> {
    let entries = object["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut claims: Vec<_> = entries
        .iter()
        .filter(|entry| entry["subresource"].as_str().unwrap_or_default().is_empty())
        .map(|entry| (&entry["manager"], &entry["operation"], &entry["fieldsV1"]))
        .collect();
    claims.sort_by_key(|(manager, operation, _)| (manager.as_str(), operation.as_str()));
    claims
}

/// Replaces the values of Secrets; those that differ between the two stay different.
fn mask(objects: &mut [&mut Value]) {
    for key in ["data", "stringData"] {
        let originals: Vec<Value> = objects.iter().map(|object| object[key].clone()).collect();
        for (index, object) in objects.iter_mut().enumerate() {
            if object["kind"] != "Secret" {
                continue;
            }
            let Some(values) = object.get_mut(key).and_then(Value::as_object_mut) else { continue };
            for (name, value) in values {
                let changed = originals.iter().any(|original| original[name.as_str()] != *value);
                let word = if changed && index > 0 { "(hidden, after)" } else { "(hidden)" };
                *value = Value::from(word);
            }
        }
    }
}

fn unified(before: &str, after: &str, old: &str, new: &str) -> String {
    TextDiff::from_lines(before, after).unified_diff().context_radius(3).header(old, new).to_string()
}
