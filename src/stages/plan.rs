//! From manifests and what the target holds to what would be done to it.

mod diff;
mod owned;
mod prune;
mod records;
#[cfg(test)]
mod tests;

pub use self::{
    diff::judge,
    owned::{Owned, owned},
    records::hold_records,
};

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{
    failure::{Category, Failure, Problem},
    manifest::{Inventory, Kind, Manifest, Manifests, ObjectId, Owner},
    plan::{Action, Change, Plan, Verdict},
    settings::Prune,
};

/// The manifests that the target must be asked about; of all others it is known that there is nothing to do.
///
/// `held` are the owners whose objects stay as they are: suspended, or without a usable file. Owners whose manifests
/// failed need not be among them.
pub fn suspects<'a>(manifests: &'a Manifests, inventory: &Inventory, held: &BTreeSet<Owner>) -> Vec<&'a Manifest> {
    let wanted = manifests.iter().filter(|(owner, _)| !held.contains(owner));
    wanted
        .filter_map(|(_, result)| result.as_ref().ok())
        .flatten()
        .filter(|manifest| {
            inventory.get(&manifest.id).is_none_or(|entry| !entry.terminating && !entry.is_settled(manifest))
        })
        .collect()
}

/// What would be done. `verdicts` holds what [`judge`] made of the target's answer about each of the [`suspects`].
///
/// Of an owner with any problem nothing is changed or deleted; all others continue. What has been deleted before and is
/// still there is a problem too, which keeps nothing else from going.
pub fn plan(
    manifests: &Manifests,
    inventory: &Inventory,
    mut verdicts: BTreeMap<ObjectId, Result<Verdict, Problem>>,
    held: &BTreeSet<Owner>,
    prune: &Prune,
) -> Plan {
    let mut plan = Plan::default();
    let mut changes = BTreeMap::new();
    for (owner, result) in manifests.iter().filter(|(owner, _)| !held.contains(owner)) {
        let planned = result.as_ref().map_err(Clone::clone).and_then(|manifests| {
            let mut problems = Vec::new();
            let mut planned = Vec::new();
            for manifest in manifests {
                match change(manifest, inventory, verdicts.remove(&manifest.id)) {
                    Ok(change) => planned.push((change.id.clone(), change)),
                    Err(problem) => problems.push(problem),
                }
            }
            Failure::of(problems).map_or(Ok(planned), Err)
        });
        match planned {
            Ok(planned) => changes.extend(planned),
            Err(failure) => {
                plan.failures.insert(owner.clone(), failure);
            }
        }
    }
    let pruned = prune::prune(manifests, inventory, &plan.failures, held, prune);
    plan.blocked = pruned.blocked;
    report_lingering(manifests, inventory, &mut plan.failures);
    plan.changes = changes.into_values().chain(pruned.deletes).collect();
    plan
}

/// One manifest's part.
fn change(
    manifest: &Manifest,
    inventory: &Inventory,
    verdict: Option<Result<Verdict, Problem>>,
) -> Result<Change, Problem> {
    let entry = inventory.get(&manifest.id);
    if entry.is_some_and(|entry| entry.terminating) {
        return Err(being_deleted(&manifest.id));
    }
    let Verdict { action, diff } = match verdict {
        // A namespace that someone else made serves as well; it is theirs, and stays as it is.
        Some(Err(problem)) if manifest.id.kind == Kind::Namespace && problem.category == Category::Conflict => {
            Verdict { action: Action::Unchanged, diff: String::new() }
        }
        Some(verdict) => verdict?,
        None if entry.is_some_and(|entry| entry.is_settled(manifest)) => {
            Verdict { action: Action::Unchanged, diff: String::new() }
        }
        None => {
            let message = format!("{} was not compared with the target", manifest.id);
            return Err(
                Problem::new(Category::Cluster, message).hint("this is a fault of larder; the next pass tries again")
            );
        }
    };
    Ok(Change {
        id: manifest.id.clone(),
        owner: manifest.owner.clone(),
        action,
        diff,
        manifest: (action != Action::Unchanged).then(|| manifest.clone()),
        uid: entry.map(|entry| entry.uid.clone()).unwrap_or_default(),
    })
}

/// Says of each surplus object that is being deleted that it is still there. A Namespace is deleted by others alone.
fn report_lingering(manifests: &Manifests, inventory: &Inventory, failures: &mut BTreeMap<Owner, Failure>) {
    let wanted: BTreeSet<&ObjectId> = manifests.values().flatten().flatten().map(|manifest| &manifest.id).collect();
    let mut lingering: BTreeMap<&Owner, Vec<Problem>> = BTreeMap::new();
    for (id, entry) in inventory.iter().filter(|(id, entry)| entry.terminating && !wanted.contains(id)) {
        if id.kind != Kind::Namespace {
            lingering.entry(&entry.owner).or_default().push(lingers(id));
        }
    }
    for (owner, problems) in lingering {
        let known = failures.remove(owner);
        let known = known.iter().flat_map(Failure::problems).cloned();
        if let Some(failure) = Failure::of(known.chain(problems).collect()) {
            failures.insert(owner.clone(), failure);
        }
    }
}

/// A deletion that someone's finalizer holds up.
fn lingers(id: &ObjectId) -> Problem {
    let place = if id.namespace.is_empty() { String::new() } else { format!(" -n {}", id.namespace) };
    let kind = id.kind.as_str().to_lowercase();
    Problem::new(Category::Cluster, format!("{id} is being deleted and waits for its finalizers"))
        .hint(format!("see who holds it: kubectl get {kind} {}{place} -o jsonpath='{{.metadata.finalizers}}'", id.name))
}

/// An object cannot be changed while it is being deleted.
fn being_deleted(id: &ObjectId) -> Problem {
    Problem::new(Category::Cluster, format!("{id} is being deleted"))
        .hint("nothing to do: it is recreated once it is gone; if it stays, see its finalizers")
}
