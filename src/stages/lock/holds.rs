//! Holds that people set: to keep what is locked, to go back to what was locked, to let go again.

#[cfg(test)]
mod tests;

use crate::{
    model::{
        failure::{Category, Failure, Problem},
        lock::{Lock, LockChange, LockedImage, Lockfile},
        name::{EnvironmentId, Name},
        settings::Settings,
        text::one_line,
    },
    stages::lockfile::{self, diff},
};

/// What is to become of images.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// They stay at what is locked, for this reason.
    Hold {
        /// Why.
        reason: String,
    },
    /// They may move again.
    Release,
    /// They go back to what a lockfile of the past has for them, and stay there.
    RollBack {
        /// That lockfile.
        then: Lockfile,
        /// Which commit it is of, for people.
        revision: String,
        /// Why.
        reason: String,
    },
}

/// The lock with these images of an environment (all that this can be done to, if none is named) held, released or
/// rolled back. Nothing else changes.
///
/// # Errors
/// When an image is not locked, was not locked then, or came then from where the tenant may not take any now.
pub fn act(
    lock: &Lock,
    settings: &Settings,
    id: &EnvironmentId,
    images: &[Name],
    act: &Act,
) -> Result<LockChange, Failure> {
    let old = match lock.get(id) {
        Some(Ok(lockfile)) => lockfile,
        Some(Err(failure)) => return Err(failure.clone()),
        None => return Err(not_locked(lock, id).into()),
    };
    let mut next = old.clone();
    let all: Vec<Name>;
    let images = if images.is_empty() {
        all = old.images.keys().cloned().collect();
        &all
    } else {
        images
    };
    let mut problems = Vec::new();
    for name in images {
        let result = old
            .images
            .get(name)
            .ok_or_else(|| unknown(id, name, old))
            .and_then(|entry| entry_after(entry, settings, id, name, act));
        match result {
            Ok(entry) => drop(next.images.insert(name.clone(), entry)),
            Err(problem) => problems.push(problem),
        }
    }
    if let Some(failure) = Failure::of(problems) {
        return Err(failure);
    }
    let mut change = LockChange { lock: lock.clone(), ..LockChange::default() };
    if next != *old {
        change.files.insert(id.lock_path(), Some(lockfile::write(&next)));
        change.moves = diff::diff(id, Some(old), Some(&next));
        change.holds = diff::holds(id, Some(old), Some(&next));
        change.lock.insert(id.clone(), Ok(next));
    }
    Ok(change)
}

fn entry_after(
    entry: &LockedImage,
    settings: &Settings,
    id: &EnvironmentId,
    name: &Name,
    act: &Act,
) -> Result<LockedImage, Problem> {
    match act {
        Act::Hold { reason } => Ok(LockedImage { hold: Some(reason.clone()), ..entry.clone() }),
        Act::Release => Ok(LockedImage { hold: None, ..entry.clone() }),
        Act::RollBack { then, revision, reason } => {
            let Some(former) = then.images.get(name) else {
                return Err(Problem::new(Category::Lock, format!("{id} had no image `{name}` in {revision}"))
                    .hint(format!("`larder history {id} --image {name}` shows what it had, and when")));
            };
            if let Some(tenant) = settings.tenants.get(&id.tenant)
                && !tenant.allows(&former.reference)
            {
                let message = format!(
                    "in {revision} the image `{name}` was {}, which the tenant `{}` may not use now",
                    former.reference, id.tenant
                );
                return Err(Problem::new(Category::Policy, message)
                    .hint("go back to another commit, or allow that registry in larder.yaml"));
            }
            Ok(rolled_back(entry, former, reason))
        }
    }
}

/// The entry as it was then, held. What it was until now is kept on the nodes before what it was before then.
fn rolled_back(entry: &LockedImage, former: &LockedImage, reason: &str) -> LockedImage {
    let retained = entry.previous.len().max(former.previous.len());
    let mut previous = Vec::new();
    for candidate in [diff::locked_as(entry)].into_iter().chain(entry.previous.clone()) {
        if candidate.digest != former.digest && previous.len() < retained {
            previous.push(candidate);
        }
    }
    // What is held there already keeps its own reason.
    let is_there = entry.digest == former.digest && entry.reference == former.reference;
    let hold = entry.hold.clone().filter(|_| is_there).unwrap_or_else(|| reason.to_owned());
    LockedImage { previous, hold: Some(hold), ..former.clone() }
}

/// What is to be known of held images, though nothing is wrong with them.
pub fn notes(id: &EnvironmentId, lockfile: &Lockfile) -> Vec<Problem> {
    let held = lockfile.images.iter().filter_map(|(name, entry)| Some((name, entry, entry.hold.as_ref()?)));
    held.map(|(name, entry, reason)| {
        let reason = serde_json::Value::from(one_line(reason));
        let message = format!("image `{name}` is held at {} ({}): {reason}", entry.reference, entry.digest.short());
        Problem::new(Category::Lock, message).hint(format!("`larder release {id} {name}` lets it move again"))
    })
    .collect()
}

fn not_locked(lock: &Lock, id: &EnvironmentId) -> Problem {
    let problem = Problem::new(Category::Lock, format!("{id} has no lockfile at the branch's tip"));
    match lock.keys().find(|known| known.name == id.name) {
        Some(meant) => problem.hint(format!("did you mean {meant}?")),
        None => problem.hint("an environment is named `tenant/name`; `larder at HEAD` lists what is locked"),
    }
}

fn unknown(id: &EnvironmentId, name: &Name, lockfile: &Lockfile) -> Problem {
    let known: Vec<&str> = lockfile.images.keys().map(Name::as_str).collect();
    Problem::new(Category::Lock, format!("{id} has no image `{name}` locked"))
        .hint(format!("its images are: {}", known.join(", ")))
}
