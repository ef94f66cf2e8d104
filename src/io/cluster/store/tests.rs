//! What watches and writes make known.

use serde_json::json;

use super::*;
use crate::model::manifest::{INSTANCE_LABEL, MANIFEST_ANNOTATION, OBJECT_ANNOTATION, OWNER_ANNOTATION};

fn store() -> Store {
    let identity = Identity { instance: "default".to_owned(), manager: "larder".to_owned() };
    let store = Store::new(Arc::new(identity));
    for kind in Kind::ALL {
        store.begin(kind);
        store.complete(kind);
    }
    assert!(!store.has_drifted());
    store
}

/// `ConfigMap/n/one` at a version, with what our apply owns of it.
fn object(version: u64, manifest: &str, owned: &str) -> Value {
    json!({"metadata": {
        "name": "one", "namespace": "n", "uid": "u", "resourceVersion": version.to_string(),
        "labels": {INSTANCE_LABEL: "default"},
        "annotations": {OBJECT_ANNOTATION: "ConfigMap/n/one", OWNER_ANNOTATION: "t/e", MANIFEST_ANNOTATION: manifest},
        "managedFields": [
            {"manager": "larder", "operation": "Apply", "fieldsV1": {"f:data": {owned: {}}}},
            {"manager": "x", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {"f:n": version}}},
        ],
    }})
}

fn metadata(version: u64, manifest: &str, owned: &str) -> ObjectMeta {
    serde_json::from_value(object(version, manifest, owned)["metadata"].clone()).unwrap()
}

fn id() -> ObjectId {
    ObjectId { kind: Kind::ConfigMap, namespace: "n".to_owned(), name: "one".to_owned() }
}

#[test]
fn our_own_writes_are_no_drift_whichever_comes_first() {
    // The event before the answer.
    let store = store();
    let writing = store.writing(&id());
    store.changed(Kind::ConfigMap, &metadata(2, "d1", "f:a"));
    writing.wrote(&object(2, "d1", "f:a"));
    assert!(!store.has_drifted());
    // The answer before the event.
    store.writing(&id()).wrote(&object(3, "d2", "f:a"));
    store.changed(Kind::ConfigMap, &metadata(3, "d2", "f:a"));
    assert!(!store.has_drifted());
    assert_eq!(store.inventory().unwrap()[&id()].manifest, "d2");
    // An older event that comes late changes nothing.
    store.changed(Kind::ConfigMap, &metadata(1, "d0", "f:a"));
    assert_eq!(store.inventory().unwrap()[&id()].manifest, "d2");
    // A status that changes is nothing to look at.
    store.changed(Kind::ConfigMap, &metadata(4, "d2", "f:a"));
    assert!(!store.has_drifted());
}

#[tokio::test]
async fn what_others_do_is_drift() {
    let store = store();
    store.writing(&id()).wrote(&object(1, "d1", "f:a"));
    // A field that is no longer ours.
    store.changed(Kind::ConfigMap, &metadata(2, "d1", "f:b"));
    assert!(store.has_drifted());
    store.drifted().await;
    store.inventory().unwrap();
    assert!(!store.has_drifted(), "seen");
    // Someone writes after us, before our answer is there.
    let writing = store.writing(&id());
    store.changed(Kind::ConfigMap, &metadata(4, "d1", "f:b"));
    assert!(!store.has_drifted());
    writing.wrote(&object(3, "d1", "f:a"));
    assert!(store.has_drifted());
    assert!(format!("{:?}", store.inventory().unwrap()[&id()].fields).contains("Fields"));
    // The identity is taken away, or all of it.
    let mut copy = metadata(5, "d1", "f:a");
    copy.annotations = None;
    store.changed(Kind::ConfigMap, &copy);
    assert!(store.has_drifted() && store.inventory().unwrap().is_empty());
    store.changed(Kind::ConfigMap, &metadata(6, "d1", "f:a"));
    store.inventory().unwrap();
    store.gone(Kind::ConfigMap, &metadata(7, "d1", "f:a"));
    assert!(store.has_drifted() && store.inventory().unwrap().is_empty());
}

#[test]
fn our_own_deletes_are_no_drift() {
    let store = store();
    store.writing(&id()).wrote(&object(1, "d1", "f:a"));
    store.deleting(&id(), "u").done();
    assert!(store.inventory().unwrap()[&id()].terminating, "until it is gone");
    let mut terminating = metadata(2, "d1", "f:a");
    terminating.deletion_timestamp = Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    store.changed(Kind::ConfigMap, &terminating);
    store.gone(Kind::ConfigMap, &metadata(3, "d1", "f:a"));
    assert!(!store.has_drifted() && store.inventory().unwrap().is_empty());
    // A refused delete leaves it as it was; a later delete by others is drift.
    store.writing(&id()).wrote(&object(4, "d1", "f:a"));
    drop(store.deleting(&id(), "u"));
    assert!(!store.inventory().unwrap()[&id()].terminating);
    store.gone(Kind::ConfigMap, &metadata(5, "d1", "f:a"));
    assert!(store.has_drifted());
}

#[test]
fn a_new_list_replaces_what_was_known() {
    // After 410 the watch begins with a list.
    let store = store();
    store.writing(&id()).wrote(&object(1, "d1", "f:a"));
    store.begin(Kind::ConfigMap);
    store.listed(Kind::ConfigMap, &metadata(1, "d1", "f:a"));
    store.complete(Kind::ConfigMap);
    assert!(!store.has_drifted(), "the same as before");
    store.begin(Kind::ConfigMap);
    assert_eq!(store.inventory().unwrap().len(), 1, "the old one serves until the new one is complete");
    store.complete(Kind::ConfigMap);
    assert!(store.has_drifted() && store.inventory().unwrap().is_empty());
}

#[test]
fn a_failed_watch_is_not_trusted() {
    let store = store();
    store.doubt(Kind::DaemonSet);
    assert_eq!(store.inventory(), None);
    store.begin(Kind::DaemonSet);
    store.complete(Kind::DaemonSet);
    assert_eq!(store.inventory(), Some(Inventory::new()));
}
