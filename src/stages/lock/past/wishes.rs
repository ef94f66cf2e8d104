//! Whether an image's file was changed after a person took the lock back: then the file is the newer wish.

use std::collections::BTreeMap;

use super::{Past, Questions};
use crate::{
    model::{
        batch::Batch,
        environment::Environment,
        lock::{Lock, LockedImage},
        name::{EnvironmentId, Name},
    },
    stages::lockfile::diff::locked_as,
};

/// Images that a person took back and whose files ask for another reference than what is locked, looked at in ever
/// older states of the repository.
#[derive(Debug)]
pub struct Wishes(BTreeMap<(EnvironmentId, Name), (LockedImage, Found)>);

/// What is known of one image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// Nothing yet.
    Open,
    /// All states since the reversal ask for the same as now: it is the lock that a person changed last.
    Reversal,
    /// The file asked for what is locked in between.
    LaterWish,
}

impl Wishes {
    /// Those of these images that are to be looked at.
    pub fn new(questions: &Questions, old: &Lock, past: &Past) -> Self {
        let taken_back = past.iter().flat_map(|(id, images)| images.iter().map(move |(name, past)| (id, name, past)));
        let open = taken_back.filter_map(|(id, name, past)| {
            let present = old.get(id)?.as_ref().ok()?.images.get(name)?;
            let is_meant = past.reverted.is_some() && questions.get(id)?.get(name)?.reference != present.reference;
            is_meant.then(|| ((id.clone(), name.clone()), (present.clone(), Found::Open)))
        });
        Self(open.collect())
    }

    /// Whether older states tell nothing more.
    pub fn is_settled(&self) -> bool {
        self.0.values().all(|(_, found)| *found != Found::Open)
    }

    /// Looks at the next older state.
    pub fn see(&mut self, environments: &Batch<Environment>, lock: &Lock) {
        for ((id, name), (present, found)) in &mut self.0 {
            let entry = match lock.get(id) {
                // What cannot be read tells nothing.
                Some(Err(_)) => continue,
                Some(Ok(lockfile)) => lockfile.images.get(name),
                None => None,
            };
            if *found != Found::Open {
                continue;
            }
            if entry.is_none_or(|entry| locked_as(entry) != locked_as(present)) {
                *found = Found::Reversal;
            } else if let Some(Ok(environment)) = environments.get(id)
                && environment.images.iter().any(|image| image.name == *name && image.reference == present.reference)
            {
                *found = Found::LaterWish;
            }
        }
    }

    /// Takes away the reversals that are not the newest wish.
    pub fn take_away(&self, past: &mut Past) {
        for ((id, name), _) in self.0.iter().filter(|(_, (_, found))| *found == Found::LaterWish) {
            if let Some(past) = past.get_mut(id).and_then(|images| images.get_mut(name)) {
                past.reverted = None;
            }
        }
    }
}
