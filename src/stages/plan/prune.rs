//! What is deleted: objects of ours that no manifest wants, within the budget.

use std::collections::{BTreeMap, BTreeSet};

use super::diff;
use crate::{
    model::{
        failure::Failure,
        manifest::{Inventory, Kind, Manifests, ObjectId, Owner},
        name::EnvironmentId,
        plan::{Action, Blocked, Change},
        settings::Prune,
    },
    stages::budget,
};

/// Deletes, in the reverse order of objects, and what the budget stopped.
pub(super) struct Pruned {
    pub(super) deletes: Vec<Change>,
    pub(super) blocked: Option<Blocked>,
}

pub(super) fn prune(
    manifests: &Manifests,
    inventory: &Inventory,
    failures: &BTreeMap<Owner, Failure>,
    held: &BTreeSet<Owner>,
    budget: &Prune,
) -> Pruned {
    let wanted: BTreeSet<&ObjectId> = manifests.values().flatten().flatten().map(|manifest| &manifest.id).collect();
    let existing: BTreeSet<EnvironmentId> =
        inventory.values().filter_map(|entry| environment(&entry.owner)).cloned().collect();
    let gone = |id: &EnvironmentId| fate(&Owner::Environment(id.clone()), manifests, failures, held) == Fate::Gone;
    let removed: BTreeSet<EnvironmentId> = existing.iter().filter(|id| gone(id)).cloned().collect();
    let declared = || manifests.keys().chain(held).filter_map(environment);
    let present = declared().cloned().collect();
    let blocked = budget::decide_beside(&existing, &removed, &present, budget).err().map(|blocked| *blocked);
    let stays = |id: &EnvironmentId| blocked.as_ref().is_some_and(|blocked| blocked.environments.contains(id));

    // A tenant's records list what its environments hold, so they stay as long as one of these does.
    let remaining = existing.iter().filter(|id| !removed.contains(id) || stays(id));
    let tenants: BTreeSet<_> = declared().chain(remaining).map(|id| &id.tenant).collect();

    let goes = |owner: &Owner| match (fate(owner, manifests, failures, held), owner) {
        (Fate::Shrunk, _) => true,
        (Fate::Stays, _) => false,
        (Fate::Gone, Owner::Environment(id)) => !stays(id),
        (Fate::Gone, Owner::Tenant(tenant)) => !tenants.contains(tenant),
    };
    let deletes = inventory.iter().rev().filter(|(id, entry)| {
        // What is already being deleted needs no second request.
        id.kind != Kind::Namespace && !entry.terminating && !wanted.contains(id) && goes(&entry.owner)
    });
    let deletes = deletes
        .map(|(id, entry)| Change {
            id: id.clone(),
            owner: entry.owner.clone(),
            action: Action::Delete,
            diff: diff::deleted(id),
            manifest: None,
            uid: entry.uid.clone(),
        })
        .collect();
    Pruned { deletes, blocked }
}

/// Whether and why an owner's surplus objects go.
#[derive(PartialEq)]
enum Fate {
    /// It has manifests, fewer than before.
    Shrunk,
    /// It is gone from Git: the budget decides about an environment, a tenant goes with its last one.
    Gone,
    /// It is held, or something is wrong with it.
    Stays,
}

fn fate(owner: &Owner, manifests: &Manifests, failures: &BTreeMap<Owner, Failure>, held: &BTreeSet<Owner>) -> Fate {
    if held.contains(owner) || failures.contains_key(owner) {
        Fate::Stays
    } else if manifests.contains_key(owner) {
        Fate::Shrunk
    } else {
        Fate::Gone
    }
}

fn environment(owner: &Owner) -> Option<&EnvironmentId> {
    match owner {
        Owner::Environment(id) => Some(id),
        Owner::Tenant(_) => None,
    }
}
