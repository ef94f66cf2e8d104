//! Records that would say less than what the nodes hold.

use std::collections::BTreeSet;

use super::prune;
use crate::model::{
    lock::Lock,
    manifest::{Inventory, Kind, Manifests, Owner},
    name::{EnvironmentId, Name},
    settings::Prune,
};

/// Leaves out the records of tenants with a puller that stays although the lock has nothing of its environment: its
/// lockfile is gone, and its images could not be locked again. What was recorded then stays as it is, until they are.
///
/// A new environment that cannot be locked yet has no puller, and keeps no records from being written.
pub fn hold_records(
    mut manifests: Manifests,
    inventory: &Inventory,
    lock: &Lock,
    held: &BTreeSet<Owner>,
    prune: &Prune,
) -> Manifests {
    let staying = prune::environments(&manifests, inventory, held, prune).staying;
    let unlocked = |id: &EnvironmentId| match lock.get(id) {
        None => true,
        Some(lockfile) => lockfile.as_ref().is_ok_and(|lockfile| lockfile.images.is_empty()),
    };
    let pullers = inventory.iter().filter(|(id, _)| id.kind == Kind::DaemonSet);
    let tenants: BTreeSet<&Name> = pullers
        .filter_map(|(_, entry)| match &entry.owner {
            Owner::Environment(id) if staying.contains(id) && unlocked(id) => Some(&id.tenant),
            _ => None,
        })
        .collect();
    for (owner, result) in &mut manifests {
        if let (Owner::Tenant(tenant), Ok(manifests)) = (owner, result)
            && tenants.contains(tenant)
        {
            manifests.retain(|manifest| manifest.id.kind != Kind::ConfigMap);
        }
    }
    manifests
}
