//! The fields that an apply owns, as Kubernetes records them in `managedFields`.

use std::{fmt, sync::Arc};

use serde_json::{Map, Value};

/// The `fieldsV1` of one manager's applies, as JSON text. Texts that are equal are shared by anyone who makes them.
///
/// An update by another manager takes the fields that it changes or removes out of this set, and an apply puts all of
/// its fields back in. So a set that covers a manifest proves that nobody has touched any field of it since, without a
/// look at values or clocks. Source:
/// <https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management>.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Fields(Arc<str>);

impl Fields {
    /// The fields of this JSON text.
    pub fn new(json: Arc<str>) -> Self {
        Self(json)
    }

    /// Whether every field of this object is among them.
    pub fn cover(&self, object: &Value) -> bool {
        let Ok(Value::Object(fields)) = serde_json::from_str(&self.0) else { return false };
        let Value::Object(object) = object else { return false };
        object.iter().all(|(key, value)| match (key.as_str(), value) {
            ("apiVersion" | "kind" | "status", _) => true,
            ("metadata", Value::Object(metadata)) => {
                // Only these two are recorded of what larder writes there; the rest is the object's identity.
                let recorded = ["labels", "annotations"].into_iter().filter_map(|key| metadata.get_key_value(key));
                recorded.into_iter().all(|(key, value)| {
                    let metadata = fields.get("f:metadata").and_then(Value::as_object);
                    metadata.is_some_and(|metadata| has_field(metadata, key, value))
                })
            }
            (key, value) => has_field(&fields, key, value),
        })
    }
}

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fields({} bytes)", self.0.len())
    }
}

/// Whether the set `fields` of a map holds `key` and all of `value` below it.
fn has_field(fields: &Map<String, Value>, key: &str, value: &Value) -> bool {
    // The server drops nulls and empty lists before it records who set them.
    if value.is_null() || value.as_array().is_some_and(Vec::is_empty) {
        return true;
    }
    fields.get(&format!("f:{key}")).is_some_and(|below| has_all(below, value))
}

/// Whether the set below a field holds all of its value.
fn has_all(below: &Value, value: &Value) -> bool {
    // Nothing below: a scalar, or a map or list that has one owner as a whole.
    let Some(below) = below.as_object().filter(|below| !below.is_empty()) else { return true };
    match value {
        Value::Object(map) => map.iter().all(|(key, value)| has_field(below, key, value)),
        Value::Array(items) => items.iter().all(|item| has_item(below, item)),
        _ => true,
    }
}

/// Whether the set `items` of a list holds this item: `k:{"name":"a"}` by its keys, `v:"a"` by its value.
fn has_item(items: &Map<String, Value>, item: &Value) -> bool {
    items.iter().any(|(selector, below)| match selector.split_once(':') {
        Some(("k", keys)) => serde_json::from_str::<Map<String, Value>>(keys).is_ok_and(|keys| {
            // A key that the item leaves out has its default, such as `protocol: TCP`.
            keys.iter().all(|(key, value)| item.get(key).is_none_or(|own| own == value)) && has_all(below, item)
        }),
        Some(("v", value)) => serde_json::from_str::<Value>(value).is_ok_and(|value| value == *item),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What a real API server (1.34) recorded for [`object`].
    fn recorded() -> Value {
        json!({
            "f:metadata": {"f:annotations": {"f:larder.dev/object": {}}, "f:labels": {"f:larder.dev/instance": {}}},
            "f:spec": {
                "f:selector": {},
                "f:template": {"f:spec": {
                    "f:affinity": {"f:nodeAffinity": {"f:requiredDuringSchedulingIgnoredDuringExecution": {}}},
                    "f:containers": {"k:{\"name\":\"c\"}": {
                        ".": {}, "f:image": {}, "f:name": {},
                        "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}},
                        "f:resources": {"f:limits": {"f:cpu": {}, "f:memory": {}}},
                    }},
                    "f:imagePullSecrets": {"k:{\"name\":\"s\"}": {}},
                    "f:tolerations": {},
                    "f:volumes": {"k:{\"name\":\"v\"}": {".": {}, "f:emptyDir": {}, "f:name": {}}},
                }},
            },
        })
    }

    fn object() -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": {
                "name": "a", "namespace": "n",
                "labels": {"larder.dev/instance": "x"}, "annotations": {"larder.dev/object": "y"},
            },
            "spec": {
                "selector": {"matchLabels": {"larder.dev/puller": "a"}},
                "template": {"spec": {
                    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"a": [1]}}},
                    "containers": [{
                        "name": "c", "image": "i", "env": [], "ports": [{"containerPort": 80}],
                        "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}},
                    }],
                    "imagePullSecrets": [{"name": "s"}],
                    "tolerations": null,
                    "volumes": [{"name": "v", "emptyDir": {}}],
                }},
            },
        })
    }

    #[test]
    fn an_apply_covers_its_manifest() {
        assert!(Fields::new(recorded().to_string().into()).cover(&object()));
    }

    #[test]
    fn what_another_manager_took_is_missed() {
        let containers = "/f:spec/f:template/f:spec/f:containers/k:{\"name\":\"c\"}";
        let cases = [
            ("/f:metadata/f:labels", "f:larder.dev/instance"),
            ("/f:metadata", "f:annotations"),
            ("", "f:metadata"),
            ("/f:spec", "f:selector"),
            (containers, "f:image"),
            (&format!("{containers}/f:resources/f:limits"), "f:cpu"),
            (&format!("{containers}/f:ports/k:{{\"containerPort\":80,\"protocol\":\"TCP\"}}"), "f:containerPort"),
            ("/f:spec/f:template/f:spec/f:imagePullSecrets", "k:{\"name\":\"s\"}"),
            ("/f:spec/f:template/f:spec/f:volumes/k:{\"name\":\"v\"}", "f:emptyDir"),
        ];
        for (pointer, key) in cases {
            let mut fields = recorded();
            let removed = fields.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(key);
            assert!(removed.is_some(), "{pointer} {key}");
            // A map without a member is not recorded at all; the parent goes with its last member.
            let mut pointer = pointer;
            while fields.pointer(pointer).is_some_and(|left| left == &json!({})) && !pointer.is_empty() {
                let (parent, last) = pointer.rsplit_once('/').unwrap();
                fields.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(last);
                pointer = parent;
            }
            assert!(!Fields::new(fields.to_string().into()).cover(&object()), "{pointer} {key}");
        }
    }

    #[test]
    fn a_manifest_that_grew_is_not_covered() {
        let mut object = object();
        object["spec"]["updateStrategy"] = json!({"type": "RollingUpdate"});
        assert!(!Fields::new(recorded().to_string().into()).cover(&object));
        assert!(!Fields::new("".into()).cover(&object));
    }
}
