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
    let Environments { staying, blocked } = environments(manifests, inventory, held, budget);

    // A tenant's records list what its environments hold, so they stay as long as one of these does.
    let tenants: BTreeSet<_> = declared(manifests, held).chain(&staying).map(|id| &id.tenant).collect();

    let goes = |id: &ObjectId, owner: &Owner| match (fate(owner, manifests, failures, held), owner) {
        (Fate::Shrunk, Owner::Environment(_)) => true,
        // Nothing that can be said of a tenant is no reason to delete what was said: another one must take its place.
        (Fate::Shrunk, Owner::Tenant(_)) => has_kind(manifests, owner, id.kind),
        (Fate::Stays, _) => false,
        (Fate::Gone, Owner::Environment(id)) => !staying.contains(id),
        (Fate::Gone, Owner::Tenant(tenant)) => !tenants.contains(tenant),
    };
    let deletes = inventory.iter().rev().filter(|(id, entry)| {
        // What is already being deleted needs no second request.
        id.kind != Kind::Namespace && !entry.terminating && !wanted.contains(id) && goes(id, &entry.owner)
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

/// What becomes of the environments that the target holds something of.
pub(super) struct Environments {
    /// Those that stay: in Git, whatever its state, or gone from it and blocked.
    pub(super) staying: BTreeSet<EnvironmentId>,
    blocked: Option<Blocked>,
}

pub(super) fn environments(
    manifests: &Manifests,
    inventory: &Inventory,
    held: &BTreeSet<Owner>,
    budget: &Prune,
) -> Environments {
    let present: BTreeSet<EnvironmentId> = declared(manifests, held).cloned().collect();
    // What hangs on a finalizer has been removed before, within the budget of then.
    let owners = inventory.values().filter_map(|entry| Some((environment(&entry.owner)?, entry.terminating)));
    let existing: BTreeSet<EnvironmentId> =
        owners.filter(|(id, terminating)| !terminating || present.contains(id)).map(|(id, _)| id.clone()).collect();
    let removed: BTreeSet<EnvironmentId> = existing.difference(&present).cloned().collect();
    let blocked = budget::decide_beside(&existing, &removed, &present, budget).err().map(|blocked| *blocked);
    let stays = |id: &EnvironmentId| blocked.as_ref().is_some_and(|blocked| blocked.environments.contains(id));
    let staying = existing.into_iter().filter(|id| !removed.contains(id) || stays(id)).collect();
    Environments { staying, blocked }
}

/// The environments that are in Git, whatever their state.
fn declared<'a>(manifests: &'a Manifests, held: &'a BTreeSet<Owner>) -> impl Iterator<Item = &'a EnvironmentId> {
    manifests.keys().chain(held).filter_map(environment)
}

fn has_kind(manifests: &Manifests, owner: &Owner, kind: Kind) -> bool {
    manifests.get(owner).into_iter().flatten().flatten().any(|manifest| manifest.id.kind == kind)
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
