//! The new lockfiles: a pure function of environments, old lockfiles and the registries' answers.

pub mod demand;
pub mod entry;
pub mod holds;
mod message;
pub mod past;
pub mod rename;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
pub mod verdict;

pub use message::{describe, describe_hold, describe_rename, hold_value, images, message, with_manifests};

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;

use self::{
    rename::Renames,
    verdict::{Case, Guards, Verdict},
};
use super::{
    budget,
    lockfile::{self, diff},
    resolve,
};
use crate::model::{
    batch::{Batch, succeeded},
    environment::{Environment, Image},
    failure::Problem,
    lock::{Lock, LockChange, LockedImage, Lockfile},
    name::{EnvironmentId, Name},
    resolution::{Resolution, Warnings},
    settings::Settings,
};

/// What a lock is computed from.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// The environments' files.
    pub environments: &'a Batch<Environment>,
    /// `larder.yaml`.
    pub settings: &'a Settings,
    /// The lock at the branch's tip.
    pub lock: &'a Lock,
    /// The lock that the questions were asked of. Where an entry of `lock` has moved since, it is adopted, whatever was
    /// answered here: what is in Git is newer than the question. So controllers that share a repository, and see a
    /// registry at different times, do not undo each other.
    pub asked: &'a Lock,
    /// The registries' answers.
    pub resolution: &'a Resolution,
    /// What speaks against moving an image: a person reverted it, or its registry goes back.
    pub guards: Guards<'a>,
    /// Environments whose files got other names.
    pub renames: &'a Renames,
    /// The day (UTC), by which holds may have ended.
    pub today: Date,
}

/// Computes the new lock.
///
/// Whatever keeps an environment from being locked keeps its lockfile as it is: the environment is broken or suspended,
/// its lockfile cannot be read, a registry did not answer. Only what is gone from Git loses its lockfile, within the
/// budget. An image that its file no longer names keeps its entry until all that the file does name are locked. A
/// lockfile whose meaning does not change is not written, whatever it looks like, so that two formatters never fight
/// over it.
pub fn lock(inputs: &Inputs<'_>) -> LockChange {
    let &Inputs { environments, settings, lock: old, renames, today, .. } = inputs;
    let in_force = holds::in_force(environments, old, today);
    let mut change = LockChange::default();
    let renamed: BTreeMap<_, _> = renames.known.iter().map(|rename| (&rename.to, &rename.from)).collect();
    for (id, environment) in environments {
        let name = renamed.get(id).copied().unwrap_or(id);
        let is_renamed = name != id;
        match (environment, old.get(name)) {
            (_, former) if renames.undecided.contains(id) => {
                change.lock.extend(former.map(|former| (id.clone(), former.clone())));
            }
            (Ok(environment), None) if !environment.suspend => {
                let asked = inputs.asked.get(id).and_then(|asked| asked.as_ref().ok());
                lock_one(inputs, environment, Stored { asked, ..Stored::default() }, &mut change);
            }
            (Ok(environment), Some(Ok(lockfile))) if !environment.suspend => {
                let in_force = in_force.get(name).and_then(|current| current.as_ref().ok());
                let asked = inputs.asked.get(name).and_then(|asked| asked.as_ref().ok());
                let stored = Stored { lockfile: Some(lockfile), in_force, asked, is_renamed };
                lock_one(inputs, environment, stored, &mut change);
            }
            (_, Some(former)) => {
                if let (true, Ok(lockfile)) = (is_renamed, former) {
                    change.files.insert(id.lock_path(), Some(lockfile::write(lockfile)));
                }
                change.lock.insert(id.clone(), former.clone());
            }
            (_, None) => {}
        }
    }
    for rename in &renames.known {
        change.files.insert(rename.from.lock_path(), None);
        change.renames.push(rename.clone());
    }
    change.renames.sort_by(|a, b| a.to.cmp(&b.to));
    let moved: BTreeSet<&EnvironmentId> = renamed.into_values().collect();
    for id in renames.undecided.iter().filter(|id| !environments.contains_key(*id)) {
        change.lock.extend(old.get(id).map(|former| (id.clone(), former.clone())));
    }
    remove(environments, settings, old, &moved, &mut change);
    change.moves.sort_by(|a, b| (&a.environment, &a.image).cmp(&(&b.environment, &b.image)));
    change
}

/// An environment's lockfile.
#[derive(Clone, Copy, Default)]
struct Stored<'a> {
    /// As it is in Git.
    lockfile: Option<&'a Lockfile>,
    /// The same without the holds that have ended or are lifted.
    in_force: Option<&'a Lockfile>,
    /// What it was when the questions were asked.
    asked: Option<&'a Lockfile>,
    /// Whether it is that of another name. Then it moves as it is: what a tag names now is another commit's matter.
    is_renamed: bool,
}

/// Adds what is wrong with images whose questions have an answer. They are locked all the same.
pub fn warn(environments: &Batch<Environment>, settings: &Settings, warnings: &Warnings, change: &mut LockChange) {
    if warnings.is_empty() {
        return;
    }
    for (id, environment) in succeeded(environments).filter(|(_, environment)| !environment.suspend) {
        for image in &environment.images {
            let Some(found) = resolve::key(environment, image, settings).and_then(|key| warnings.get(&key)) else {
                continue;
            };
            let located = found.iter().map(|problem| entry::located(environment, image, ": ", problem.clone()));
            change.problems.entry(id.clone()).or_default().extend(located);
        }
    }
}

fn lock_one(inputs: &Inputs<'_>, environment: &Environment, stored: Stored<'_>, change: &mut LockChange) {
    let &Inputs { settings, resolution, guards, .. } = inputs;
    let old = stored.in_force;
    let mut next = Lockfile::default();
    let mut problems: Vec<Problem> = Vec::new();
    let mut renamed: BTreeSet<&Name> = BTreeSet::new();
    for image in &environment.images {
        let key = resolve::key(environment, image, settings);
        let answer = key.as_ref().and_then(|key| resolution.get(key));
        let (name, former) = old.and_then(|old| former(old, environment, image)).unzip();
        renamed.extend(name);
        let is_same = former.is_some_and(|former| former.reference == image.reference);
        let answer = answer.filter(|_| !(is_overtaken(image, former, stored.asked) || is_same && stored.is_renamed));
        let is_let_go = former.is_some_and(|former| former.hold.is_none())
            && name.and_then(|name| stored.lockfile?.images.get(name)).is_some_and(|entry| entry.hold.is_some());
        // That a hold has ended is a person's decision, and newer than all that the history tells.
        let guards = if is_let_go { Guards::default() } else { guards };
        let case = Case { environment, image, former, key: key.as_ref(), answer };
        let (entry, found) = match verdict::judge(&case, &guards) {
            Verdict::Free => entry::lock(environment, image, former, answer),
            Verdict::Hold(held) => entry::lock(environment, image, Some(&held), answer),
            Verdict::Wait(waiting) => {
                change.waiting.push(*waiting);
                entry::lock(environment, image, former, None)
            }
        };
        problems.extend(found);
        if let Some(entry) = entry {
            next.images.insert(image.name.clone(), entry);
        }
    }
    // What is new may be what takes the place of what is gone: the old goes once all of the new is there.
    if !environment.images.iter().all(|image| is_locked(image, next.images.get(&image.name))) {
        let rest = old.into_iter().flat_map(|old| &old.images).filter(|(name, _)| !renamed.contains(name));
        for (name, entry) in rest {
            next.images.entry(name.clone()).or_insert_with(|| entry.clone());
        }
    }
    let old = stored.lockfile;
    let unchanged = old.map_or(next.images.is_empty(), |old| *old == next);
    if !unchanged || stored.is_renamed {
        change.files.insert(environment.id.lock_path(), Some(lockfile::write(&next)));
        change.moves.extend(diff::diff(&environment.id, old, Some(&next)));
        change.holds.extend(diff::holds(&environment.id, old, Some(&next)));
    }
    if !problems.is_empty() {
        change.problems.insert(environment.id.clone(), problems);
    }
    change.lock.insert(environment.id.clone(), Ok(next));
}

/// The entry that an image had, and its name then; for one that got another name in the file, the entry of its
/// reference under the name that is gone.
fn former<'a>(old: &'a Lockfile, environment: &Environment, image: &Image) -> Option<(&'a Name, &'a LockedImage)> {
    let renamed = || {
        let is_gone = |name: &Name| environment.images.iter().all(|image| image.name != *name);
        old.images.iter().find(|(name, entry)| entry.reference == image.reference && is_gone(name))
    };
    old.images.get_key_value(&image.name).or_else(renamed)
}

/// Whether the entry is what the file asks for, or held by a person.
fn is_locked(image: &Image, entry: Option<&LockedImage>) -> bool {
    entry.is_some_and(|entry| entry.reference == image.reference || entry.hold.is_some())
}

/// Whether the image's entry has moved to the reference of its file since the questions were asked.
fn is_overtaken(image: &Image, former: Option<&LockedImage>, asked: Option<&Lockfile>) -> bool {
    let Some(former) = former.filter(|former| former.reference == image.reference) else { return false };
    let before =
        asked.and_then(|asked| asked.images.values().find(|entry| diff::locked_as(entry) == diff::locked_as(former)));
    before.is_none()
}

/// Deletes the lockfiles of environments that are gone from Git, as far as the budget allows.
fn remove(
    environments: &Batch<Environment>,
    settings: &Settings,
    old: &Lock,
    moved: &BTreeSet<&EnvironmentId>,
    change: &mut LockChange,
) {
    let existing: BTreeSet<EnvironmentId> = old.keys().filter(|id| !moved.contains(id)).cloned().collect();
    let present: BTreeSet<EnvironmentId> = environments.keys().cloned().collect();
    let mut removed: BTreeSet<EnvironmentId> = existing.difference(&present).cloned().collect();
    // What is in the new lock already is kept, although its file is gone.
    removed.retain(|id| !change.lock.contains_key(id));
    if let Err(blocked) = budget::decide_beside(&existing, &removed, &present, &settings.prune) {
        for id in &blocked.environments {
            removed.remove(id);
            if let Some(former) = old.get(id) {
                change.lock.insert(id.clone(), former.clone());
            }
        }
        change.blocked = Some(*blocked);
    }
    for id in &removed {
        let former = old.get(id).and_then(|lockfile| lockfile.as_ref().ok());
        change.files.insert(id.lock_path(), None);
        change.moves.extend(diff::diff(id, former, None));
    }
}
