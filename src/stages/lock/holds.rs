//! Holds that people set: to keep what is locked, to go back to what was locked, to let go again.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use jiff::civil::Date;

use crate::{
    model::{
        batch::{Batch, succeeded},
        environment::Environment,
        failure::{Category, Failure, Problem},
        lock::{Hold, Lock, LockChange, LockedImage, Lockfile},
        name::{EnvironmentId, Name},
        settings::Settings,
        text::one_line,
    },
    stages::lockfile::{self, diff},
};

/// What is to become of images.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// They stay at what is locked.
    Hold(Hold),
    /// They may move again.
    Release,
    /// They go back to what a lockfile of the past has for them, and stay there.
    RollBack {
        /// That lockfile.
        then: Lockfile,
        /// Which commit it is of, for people.
        revision: String,
        /// What holds them there.
        hold: Hold,
    },
}

/// Which images of an environment; none named: all that are locked.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The environment.
    pub environment: &'a EnvironmentId,
    /// Its images.
    pub images: &'a [Name],
}

/// The lock with these images held, released or rolled back. Nothing else changes.
///
/// # Errors
/// When an image is not locked, was not locked then, or came then from where the tenant may not take any now.
pub fn act(lock: &Lock, settings: &Settings, target: Target<'_>, act: &Act) -> Result<LockChange, Failure> {
    let id = target.environment;
    let old = match lock.get(id) {
        Some(Ok(lockfile)) => lockfile,
        Some(Err(failure)) => return Err(failure.clone()),
        None => return Err(not_locked(lock, id).into()),
    };
    let mut next = old.clone();
    let names: Vec<&Name> =
        if target.images.is_empty() { old.images.keys().collect() } else { target.images.iter().collect() };
    let mut problems = Vec::new();
    for name in names {
        let entry = old.images.get(name).ok_or_else(|| unknown(id, name, old));
        let result = entry.and_then(|entry| match act {
            Act::Hold(hold) => Ok(LockedImage { hold: Some(hold.clone()), ..entry.clone() }),
            Act::Release => Ok(LockedImage { hold: None, ..entry.clone() }),
            Act::RollBack { then, revision, hold } => {
                let former = then.images.get(name).ok_or_else(|| not_locked_then(id, name, revision))?;
                match settings.tenants.get(&id.tenant).is_none_or(|tenant| tenant.allows(&former.reference)) {
                    true => Ok(rolled_back(entry, former, hold)),
                    false => Err(not_allowed_now(id, name, revision, former)),
                }
            }
        });
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

fn not_locked_then(id: &EnvironmentId, name: &Name, revision: &str) -> Problem {
    Problem::new(Category::Lock, format!("{id} had no image `{name}` in {revision}"))
        .hint(format!("`larder history {id} --image {name}` shows what it had, and when"))
}

fn not_allowed_now(id: &EnvironmentId, name: &Name, revision: &str, former: &LockedImage) -> Problem {
    let (reference, tenant) = (&former.reference, &id.tenant);
    let message =
        format!("in {revision} the image `{name}` was {reference}, which the tenant `{tenant}` may not use now");
    Problem::new(Category::Policy, message).hint("go back to another commit, or allow that registry in larder.yaml")
}

/// The entry as it was then, held. What it was until now is kept on the nodes before what it was before then.
fn rolled_back(entry: &LockedImage, former: &LockedImage, hold: &Hold) -> LockedImage {
    let retained = entry.previous.len().max(former.previous.len());
    let mut previous = Vec::new();
    for candidate in [diff::locked_as(entry)].into_iter().chain(entry.previous.clone()) {
        if candidate.digest != former.digest && previous.len() < retained {
            previous.push(candidate);
        }
    }
    // What is held there already keeps its own reason.
    let is_there = entry.digest == former.digest && entry.reference == former.reference;
    let hold = entry.hold.clone().filter(|_| is_there).unwrap_or_else(|| hold.clone());
    LockedImage { previous, hold: Some(hold), ..former.clone() }
}

/// The lock without the holds that have ended by `today` (UTC), or that an environment's file lifts by asking for
/// another reference.
pub fn in_force<'a>(environments: &Batch<Environment>, lock: &'a Lock, today: Date) -> Cow<'a, Lock> {
    let mut current = Cow::Borrowed(lock);
    for (id, environment) in succeeded(environments).filter(|(_, environment)| !environment.suspend) {
        let Some(Ok(lockfile)) = lock.get(id) else { continue };
        for (name, entry) in &lockfile.images {
            let Some(hold) = &entry.hold else { continue };
            let image = environment.images.iter().find(|image| image.name == *name);
            let is_lifted = image.is_some_and(|image| hold.is_lifted_by(&image.reference));
            if (is_lifted || hold.has_ended(today))
                && let Some(Ok(lockfile)) = current.to_mut().get_mut(id)
                && let Some(entry) = lockfile.images.get_mut(name)
            {
                entry.hold = None;
            }
        }
    }
    current
}

/// The first day on which a hold has ended that has not by `today`.
pub fn next_end(lock: &Lock, today: Date) -> Option<Date> {
    let holds =
        succeeded(lock).flat_map(|(_, lockfile)| lockfile.images.values()).filter_map(|entry| entry.hold.as_ref());
    holds.filter(|hold| !hold.has_ended(today)).filter_map(|hold| hold.until?.tomorrow().ok()).min()
}

/// `held until 2026-12-04: "exam"`.
pub(super) fn describe(hold: &Hold) -> String {
    let until = hold.until.map_or_else(String::new, |until| format!(" until {until}"));
    format!("held{until}: {}", serde_json::Value::from(one_line(&hold.reason)))
}

/// What is to be known of held images, though nothing is wrong with them.
pub fn notes(id: &EnvironmentId, lockfile: &Lockfile) -> Vec<Problem> {
    let held = lockfile.images.iter().filter_map(|(name, entry)| Some((name, entry, entry.hold.as_ref()?)));
    held.map(|(name, entry, hold)| {
        let until = hold.until.map_or_else(String::new, |until| format!(" until {until}"));
        let reason = serde_json::Value::from(one_line(&hold.reason));
        let at = format!("{} ({})", entry.reference, entry.digest.short());
        Problem::new(Category::Lock, format!("image `{name}` is held at {at}{until}: {reason}"))
            .hint(format!("`larder release {id} {name}` lets it move again"))
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
