//! What moved when: the lock's commits, read back.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, sync::Arc};

use super::lockfile::{Images, Lockfiles, diff, environment_of, in_commit};
use crate::model::{
    failure::Problem,
    history::{CommitFilter, HistoryEntry, LockCommit},
    lock::LockedImage,
    name::{EnvironmentId, Name},
};

/// What of the moves is wanted.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only this environment's.
    pub environment: Option<EnvironmentId>,
    /// Only those of images with this name.
    pub image: Option<Name>,
    /// Only those of these commits.
    pub commits: CommitFilter,
}

/// Reads commits from the newest to the oldest, one by one, so that not all of them must be in memory.
///
/// The files are compared, not the messages read: commits of people count as those of larder do, and nobody can claim
/// what did not happen. A lockfile that cannot be read is passed over with a problem that names its commit: what comes
/// after it is compared with the last version before it that can be read.
#[derive(Default)]
pub struct Reader {
    filter: Filter,
    lockfiles: Lockfiles,
    entries: Vec<HistoryEntry>,
    /// Versions whose predecessor is not known yet.
    open: BTreeMap<EnvironmentId, Open>,
    problems: Vec<Problem>,
    has_gaps: bool,
}

/// A version of a lockfile that a commit brought.
struct Open {
    /// The index of the commit's entry.
    entry: usize,
    images: Option<Arc<Images>>,
}

impl Reader {
    /// Reads what passes the filter.
    pub fn new(filter: Filter) -> Self {
        Self { filter, ..Self::default() }
    }

    /// Takes up what the next older commit moved.
    pub fn read(&mut self, LockCommit { commit, files }: LockCommit) {
        let wanted = self.filter.commits.covers(&commit);
        let index = self.entries.len();
        let mut problems = Vec::new();
        self.entries.push(HistoryEntry { commit, moves: Vec::new(), holds: Vec::new() });
        for change in &files {
            let Some(id) = environment_of(&change.path) else { continue };
            if self.filter.environment.as_ref().is_some_and(|wanted| *wanted != id) {
                continue;
            }
            let (old, new) = self.lockfiles.both(change);
            match new {
                Ok(images) if wanted => {
                    self.open.insert(id.clone(), Open { entry: index, images });
                }
                Ok(_) => {}
                Err(failure) => {
                    self.has_gaps = true;
                    if wanted || self.open.contains_key(&id) {
                        problems.extend(in_commit(&failure, &self.entries[index].commit));
                    }
                }
            }
            match old {
                Ok(old) => self.settle(&id, old.as_deref()),
                Err(_) => self.has_gaps = true,
            }
        }
        self.problems.extend(problems);
    }

    /// Compares the version that is open with the one before it.
    fn settle(&mut self, id: &EnvironmentId, old: Option<&Images>) {
        let Some(Open { entry, images: new }) = self.open.remove(id) else { return };
        let Some(entry) = self.entries.get_mut(entry) else { return };
        let is_wanted = |name: &Name| self.filter.image.as_ref().is_none_or(|image| image == name);
        let new = new.as_deref();
        entry.moves.extend(diff::diff_images(id, images(old), images(new)));
        entry.holds.extend(diff::holds_of_images(id, images(old), images(new)));
        entry.moves.retain(|moved| is_wanted(&moved.image));
        entry.holds.retain(|hold| is_wanted(&hold.image));
    }

    /// Whether a lockfile could not be read. Then commits that do not pass the filter have to be read as well.
    pub fn has_gaps(&self) -> bool {
        self.has_gaps
    }

    /// The commits so far that moved, held or released something, unless some are still open.
    pub fn take(&mut self) -> Vec<HistoryEntry> {
        if !self.open.is_empty() {
            return Vec::new();
        }
        let mut entries = std::mem::take(&mut self.entries);
        entries.retain(|entry| !entry.moves.is_empty() || !entry.holds.is_empty());
        for entry in &mut entries {
            entry.moves.sort_by(|a, b| (&a.environment, &a.image).cmp(&(&b.environment, &b.image)));
            entry.holds.sort_by(|a, b| (&a.environment, &a.image).cmp(&(&b.environment, &b.image)));
        }
        entries
    }

    /// The rest, and what is wrong with lockfiles of the past. What is still open came from before the history that is
    /// here, so it is not known what it changed.
    pub fn finish(mut self) -> (Vec<HistoryEntry>, Vec<Problem>) {
        self.open.clear();
        (self.take(), self.problems)
    }
}

fn images(side: Option<&Images>) -> impl Iterator<Item = (&Name, &LockedImage)> {
    side.into_iter().flat_map(Images::iter)
}
