//! Which commit brought the present digest of each image of an environment.

use std::{collections::BTreeMap, ops::ControlFlow};

use crate::{
    model::{
        history::{Blame, BlameRow, CommitInfo, LockCommit},
        lock::Lockfile,
        name::{EnvironmentId, Name},
    },
    stages::lockfile::{Images, Lockfiles, in_commit},
};

/// Reads an environment's commits from the newest to the oldest, as far as they are needed.
///
/// A lockfile that cannot be read is passed over: what it should have brought counts for the next commit that can be
/// read, and only if it differs from the last that could be.
pub struct Blamer {
    blame: Blame,
    lockfiles: Lockfiles,
    /// Images whose commit is not found yet, and the oldest one known to hold their digest.
    open: BTreeMap<Name, Option<CommitInfo>>,
}

impl Blamer {
    /// Asks about the images of `present`, the environment's lockfile at the tip.
    pub fn new(environment: EnvironmentId, present: &Lockfile) -> Self {
        let row = |(image, entry): (&Name, &crate::model::lock::LockedImage)| BlameRow {
            image: image.clone(),
            reference: entry.reference.clone(),
            digest: entry.digest.clone(),
            since: None,
            hold: entry.hold.as_ref().map(|hold| hold.reason.clone()),
        };
        let images = present.images.iter().map(row).collect();
        let open = present.images.keys().map(|image| (image.clone(), None)).collect();
        Self { blame: Blame { environment, images, problems: Vec::new() }, lockfiles: Lockfiles::default(), open }
    }

    /// Takes up the next older commit; breaks when all is found.
    pub fn read(&mut self, commit: &LockCommit) -> ControlFlow<()> {
        let path = self.blame.environment.lock_path();
        for change in commit.files.iter().filter(|change| change.path == path) {
            let (old, new) = self.lockfiles.both(change);
            if let Err(failure) = &new {
                self.blame.problems.extend(in_commit(failure, &commit.commit));
            }
            if new.is_ok() {
                for last in self.open.values_mut() {
                    *last = Some(commit.commit.clone());
                }
            }
            if let Ok(old) = old {
                self.settle(old.as_deref());
            }
        }
        if self.open.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Closes the images whose digest an older lockfile does not have.
    fn settle(&mut self, old: Option<&Images>) {
        for row in &mut self.blame.images {
            let before = old.and_then(|old| old.get(&row.image));
            if before.is_none_or(|before| before.digest != row.digest)
                && let Some(found) = self.open.remove(&row.image)
            {
                row.since = found;
            }
        }
    }

    /// The answer. Images whose commit was not found are older than the history that was read.
    pub fn finish(self) -> Blame {
        self.blame
    }
}
