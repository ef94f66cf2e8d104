//! Which objects change, with a unified diff of each.

use std::{cmp::Reverse, collections::BTreeMap};

use serde_json::Value;
use similar::TextDiff;

use super::{ObjectChange, Side};
use crate::model::{
    manifest::{Kind, MANIFEST_ANNOTATION, Manifest, Manifests, ObjectId, Owner},
    plan::{Action, Blocked},
    yaml::to_yaml,
};

pub(super) fn changes(from: Option<&Side>, to: &Side, blocked: Option<&Blocked>) -> Vec<ObjectChange> {
    let none = Manifests::new();
    let before = objects(from.map_or(&none, |side| &side.manifests));
    let after = objects(&to.manifests);
    let mut changes = Vec::new();
    for (id, new) in &after {
        let (action, old) = match before.get(id) {
            Some(old) if old.object == new.object => continue,
            Some(old) => (Action::Configure, Some(*old)),
            None => (Action::Create, None),
        };
        let diff = diff(id, old, Some(new));
        changes.push(ObjectChange { id: (*id).clone(), owner: new.owner.clone(), action, diff });
    }
    for (id, old) in before.iter().rev() {
        let goes = !after.contains_key(id) && id.kind != Kind::Namespace && !stays(&old.owner, to, blocked);
        if goes {
            let diff = diff(id, Some(old), None);
            changes.push(ObjectChange { id: (*id).clone(), owner: old.owner.clone(), action: Action::Delete, diff });
        }
    }
    // What people look for comes first: pullers, then what only lists them.
    changes.sort_by_key(|change| Reverse(change.id.kind));
    changes
}

fn objects(manifests: &Manifests) -> BTreeMap<&ObjectId, &Manifest> {
    manifests.values().flatten().flatten().map(|manifest| (&manifest.id, manifest)).collect()
}

/// Whether what an owner has stays as it is: its file is broken or suspended, it does not render, or the budget does not
/// let it go.
fn stays(owner: &Owner, to: &Side, blocked: Option<&Blocked>) -> bool {
    let rendered = to.manifests.get(owner);
    match owner {
        _ if rendered.is_some_and(Result::is_err) => true,
        Owner::Environment(id) => {
            let held = rendered.is_none() && to.environments.environments.contains_key(id);
            held || blocked.is_some_and(|blocked| blocked.environments.contains(id))
        }
        Owner::Tenant(tenant) => {
            let kept = |id: &&crate::model::name::EnvironmentId| id.tenant == *tenant;
            to.environments.environments.keys().find(kept).is_some()
                || blocked.is_some_and(|blocked| blocked.environments.iter().any(|id| id.tenant == *tenant))
        }
    }
}

fn diff(id: &ObjectId, old: Option<&Manifest>, new: Option<&Manifest>) -> String {
    let text =
        |manifest: Option<&Manifest>| manifest.map(|manifest| to_yaml(&shown(&manifest.object))).unwrap_or_default();
    let name = |side: &str, there: bool| if there { format!("{side}/{id}") } else { "/dev/null".to_owned() };
    let (before, after) = (text(old), text(new));
    TextDiff::from_lines(&before, &after)
        .unified_diff()
        .context_radius(3)
        .header(&name("a", old.is_some()), &name("b", new.is_some()))
        .to_string()
}

/// An object without the digest of itself, which changes with everything.
fn shown(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(MANIFEST_ANNOTATION);
    }
    object
}
