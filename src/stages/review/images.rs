//! Which images move, and what a node pulls for them.

use std::collections::{BTreeMap, BTreeSet};

use super::{Held, ImageChange, Pull, Side, environments::ids};
use crate::{
    model::{
        lock::{HoldChange, LockedImage, Lockfile},
        name::{EnvironmentId, Name},
    },
    stages::lockfile::diff,
};

/// An image as one side has it.
struct Shown<'a> {
    held: Held,
    /// Its entry in the lock, where that is for this very reference.
    entry: Option<&'a LockedImage>,
}

pub(super) fn changes(from: Option<&Side>, to: &Side) -> Vec<ImageChange> {
    let mut changes = Vec::new();
    for id in ids(from, to) {
        let before = from.map(|side| images(side, to.name_before(&id))).unwrap_or_default();
        let after = images(to, &id);
        let names: BTreeSet<&Name> = before.keys().chain(after.keys()).collect();
        for name in names {
            let (old, new) = (before.get(name), after.get(name));
            let held = |shown: Option<&Shown<'_>>| shown.map(|shown| shown.held.clone());
            if held(old) != held(new) {
                changes.push(ImageChange {
                    environment: id.clone(),
                    image: name.clone(),
                    old: held(old),
                    new: held(new),
                    pull: pull(old, new),
                });
            }
        }
    }
    changes
}

fn images<'a>(side: &'a Side, id: &EnvironmentId) -> BTreeMap<Name, Shown<'a>> {
    let lockfile = side.environments.lock.get(id).and_then(|lockfile| lockfile.as_ref().ok());
    let locked = |name: &Name| lockfile.and_then(|lockfile: &Lockfile| lockfile.images.get(name));
    let of_entry = |entry: &'a LockedImage| Shown {
        held: Held { reference: entry.reference.clone(), digest: Some(entry.digest.clone()) },
        entry: Some(entry),
    };
    match side.environments.environments.get(id) {
        None => BTreeMap::new(),
        // A broken file changes nothing: what is locked stays.
        Some(Err(_)) => {
            let entries = lockfile.into_iter().flat_map(|lockfile| &lockfile.images);
            entries.map(|(name, entry)| (name.clone(), of_entry(entry))).collect()
        }
        Some(Ok(environment)) => {
            let shown = |image: &crate::model::environment::Image| {
                let unlocked =
                    || Shown { held: Held { reference: image.reference.clone(), digest: None }, entry: None };
                // A held image stays, whatever its file asks for.
                let stands = |entry: &&LockedImage| entry.reference == image.reference || entry.hold.is_some();
                let entry = locked(&image.name).filter(stands);
                (image.name.clone(), entry.map_or_else(unlocked, of_entry))
            };
            environment.images.iter().map(shown).collect()
        }
    }
}

/// Holds that are set, changed or taken away.
pub(super) fn holds(from: Option<&Side>, to: &Side) -> Vec<HoldChange> {
    let lockfile = |side: &Side, id: &EnvironmentId| side.environments.lock.get(id)?.as_ref().ok().cloned();
    let changes = |id: EnvironmentId| {
        let (old, new) = (from.and_then(|from| lockfile(from, &id)), lockfile(to, &id));
        diff::holds(&id, old.as_ref(), new.as_ref())
    };
    ids(from, to).into_iter().flat_map(changes).collect()
}

/// What a node pulls that held `old`: platforms whose manifest is the same are there already.
fn pull(old: Option<&Shown<'_>>, new: Option<&Shown<'_>>) -> Vec<Pull> {
    let there: BTreeSet<_> =
        old.and_then(|old| old.entry).into_iter().flat_map(|entry| &entry.platforms).map(|one| &one.digest).collect();
    let platforms = new.and_then(|new| new.entry).into_iter().flat_map(|entry| &entry.platforms);
    platforms
        .filter(|one| !there.contains(&one.digest))
        .filter_map(|one| Some(Pull { platform: one.platform.clone(), bytes: one.size? }))
        .collect()
}
