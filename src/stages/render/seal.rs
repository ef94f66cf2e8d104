//! What larder itself puts on every object, whatever the template says.

use serde_json::{Map, Value};

use crate::model::{
    digest::Digest,
    manifest::{
        INSTANCE_LABEL, Kind, MANIFEST_ANNOTATION, Manifest, OBJECT_ANNOTATION, OWNER_ANNOTATION, ObjectId, Owner,
    },
    yaml::to_canonical_json,
};

/// Adds the instance's label, the object's identity and its digest. Pods get the label and the owner as well, so that
/// they can be found.
pub fn seal(mut object: Value, id: ObjectId, owner: &Owner, instance: &str) -> Manifest {
    let owner_text = owner.to_string();
    if let Some(metadata) = child(&mut object, &["metadata"]) {
        set(metadata, "labels", INSTANCE_LABEL, instance);
        set(metadata, "annotations", OBJECT_ANNOTATION, &id.to_string());
        set(metadata, "annotations", OWNER_ANNOTATION, &owner_text);
    }
    if id.kind == Kind::DaemonSet
        && let Some(metadata) = child(&mut object, &["spec", "template", "metadata"])
    {
        set(metadata, "labels", INSTANCE_LABEL, instance);
        set(metadata, "annotations", OWNER_ANNOTATION, &owner_text);
    }
    let digest = Digest::sha256(to_canonical_json(&object).as_bytes());
    if let Some(metadata) = child(&mut object, &["metadata"]) {
        set(metadata, "annotations", MANIFEST_ANNOTATION, digest.as_str());
    }
    Manifest { id, owner: owner.clone(), object: object.into(), impersonate: None }
}

/// The object at that path, made where there is none; none where something else is in its way.
fn child<'a>(object: &'a mut Value, path: &[&str]) -> Option<&'a mut Map<String, Value>> {
    let mut at = object;
    for key in path {
        at = at.as_object_mut()?.entry(*key).or_insert_with(|| Value::Object(Map::new()));
    }
    at.as_object_mut()
}

fn set(metadata: &mut Map<String, Value>, map: &str, key: &str, value: &str) {
    let entry = metadata.entry(map).or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(entries) = entry {
        entries.insert(key.to_owned(), Value::String(value.to_owned()));
    }
}
