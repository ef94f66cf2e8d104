//! What moved between two lockfiles of an environment.

use std::collections::BTreeSet;

use crate::model::{
    lock::{HoldChange, LockedImage, Lockfile, Move, Previous},
    name::{EnvironmentId, Name},
};

/// The images whose reference or digest differs, in order of their names. A lockfile that is not there has no images.
pub fn diff(environment: &EnvironmentId, old: Option<&Lockfile>, new: Option<&Lockfile>) -> Vec<Move> {
    let names: BTreeSet<&Name> = old.into_iter().chain(new).flat_map(|lockfile| lockfile.images.keys()).collect();
    let locked = |lockfile: Option<&Lockfile>, name: &Name| lockfile?.images.get(name).map(locked_as);
    names
        .into_iter()
        .map(|name| Move {
            environment: environment.clone(),
            image: name.clone(),
            old: locked(old, name),
            new: locked(new, name),
        })
        .filter(|moved| moved.old != moved.new)
        .collect()
}

/// The images whose hold differs, in order of their names. What is new or gone has none.
pub fn holds(environment: &EnvironmentId, old: Option<&Lockfile>, new: Option<&Lockfile>) -> Vec<HoldChange> {
    let entries = new.into_iter().flat_map(|new| &new.images);
    let before = |name: &Name| old?.images.get(name);
    entries
        .filter(|(name, entry)| before(name).is_some_and(|before| before.hold != entry.hold))
        .map(|(name, entry)| HoldChange {
            environment: environment.clone(),
            image: name.clone(),
            at: locked_as(entry),
            reason: entry.hold.clone(),
        })
        .collect()
}

/// What an entry says, without its details.
pub fn locked_as(entry: &LockedImage) -> Previous {
    Previous { reference: entry.reference.clone(), digest: entry.digest.clone() }
}
