//! What moved between two lockfiles of an environment.

use std::collections::BTreeMap;

use crate::model::{
    lock::{HoldChange, LockedImage, Lockfile, Move, Previous},
    name::{EnvironmentId, Name},
};

/// The images whose reference or digest differs, in order of their names. A lockfile that is not there has no images.
pub fn diff(environment: &EnvironmentId, old: Option<&Lockfile>, new: Option<&Lockfile>) -> Vec<Move> {
    diff_images(environment, images(old), images(new))
}

fn images(lockfile: Option<&Lockfile>) -> impl Iterator<Item = (&Name, &LockedImage)> {
    lockfile.into_iter().flat_map(|lockfile| &lockfile.images)
}

/// As [`diff`], of images however they are kept.
pub fn diff_images<'a>(
    environment: &EnvironmentId,
    old: impl IntoIterator<Item = (&'a Name, &'a LockedImage)>,
    new: impl IntoIterator<Item = (&'a Name, &'a LockedImage)>,
) -> Vec<Move> {
    type Entry<'a> = Option<&'a LockedImage>;
    let mut sides: BTreeMap<&Name, (Entry<'a>, Entry<'a>)> = BTreeMap::new();
    old.into_iter().for_each(|(name, entry)| sides.entry(name).or_default().0 = Some(entry));
    new.into_iter().for_each(|(name, entry)| sides.entry(name).or_default().1 = Some(entry));
    let said = |entry: &'a LockedImage| (&entry.reference, &entry.digest);
    sides
        .into_iter()
        .filter(|(_, (old, new))| old.map(said) != new.map(said))
        .map(|(name, (old, new))| Move {
            environment: environment.clone(),
            image: name.clone(),
            old: old.map(locked_as),
            new: new.map(locked_as),
        })
        .collect()
}

/// The images whose hold differs, in order of their names. What is gone has none.
pub fn holds(environment: &EnvironmentId, old: Option<&Lockfile>, new: Option<&Lockfile>) -> Vec<HoldChange> {
    holds_of_images(environment, images(old), images(new))
}

/// As [`holds`], of images however they are kept.
pub fn holds_of_images<'a>(
    environment: &EnvironmentId,
    old: impl IntoIterator<Item = (&'a Name, &'a LockedImage)>,
    new: impl IntoIterator<Item = (&'a Name, &'a LockedImage)>,
) -> Vec<HoldChange> {
    let before: BTreeMap<&Name, &LockedImage> = old.into_iter().collect();
    let differs = |name: &Name, entry: &LockedImage| {
        before.get(name).and_then(|before| before.hold.as_ref()) != entry.hold.as_ref()
    };
    new.into_iter()
        .filter(|(name, entry)| differs(name, entry))
        .map(|(name, entry)| HoldChange {
            environment: environment.clone(),
            image: name.clone(),
            at: locked_as(entry),
            hold: entry.hold.clone(),
        })
        .collect()
}

/// What an entry says, without its details.
pub fn locked_as(entry: &LockedImage) -> Previous {
    Previous { reference: entry.reference.clone(), digest: entry.digest.clone() }
}
