//! What moved when: the lock's commits, read back.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::lockfile::{Images, Lockfiles, diff, environment_of, in_commit};
use crate::model::{
    failure::Failure,
    history::{FileChange, History, HistoryEntry, LockCommit},
    lock::{HoldChange, LockedImage, Move},
    name::{EnvironmentId, Name},
};

/// What of the moves is wanted.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only this environment's.
    pub environment: Option<EnvironmentId>,
    /// Only those of images with this name.
    pub image: Option<Name>,
}

/// What each of `commits` moved, in the order of `commits`.
pub fn history<'a>(commits: impl IntoIterator<Item = &'a LockCommit>, filter: &Filter) -> History {
    let mut reader = Reader::new(filter.clone());
    for commit in commits {
        reader.read(commit.clone());
    }
    reader.finish()
}

/// Reads commits one by one, so that not all of them must be in memory.
///
/// The files are compared, not the messages read: commits of people count as those of larder do, and nobody can claim
/// what did not happen. A lockfile that cannot be read is passed over with a problem that names its commit.
pub struct Reader {
    filter: Filter,
    lockfiles: Lockfiles,
    history: History,
}

impl Reader {
    /// Reads what passes the filter.
    pub fn new(filter: Filter) -> Self {
        Self { filter, lockfiles: Lockfiles::default(), history: History::default() }
    }

    /// Takes up what a commit moved. It is fastest when neighbours come one after the other.
    pub fn read(&mut self, commit: LockCommit) {
        let (mut moves, mut holds) = (Vec::new(), Vec::new());
        for change in &commit.files {
            let Some(id) = environment_of(&change.path) else { continue };
            if self.filter.environment.as_ref().is_some_and(|wanted| *wanted != id) {
                continue;
            }
            match self.moved(&id, change) {
                Ok((moved, held)) => {
                    moves.extend(moved);
                    holds.extend(held);
                }
                Err(failure) => self.history.problems.extend(in_commit(&failure, &commit.commit)),
            }
        }
        if let Some(image) = &self.filter.image {
            moves.retain(|moved| moved.image == *image);
            holds.retain(|held| held.image == *image);
        }
        moves.sort_by(|a, b| (&a.environment, &a.image).cmp(&(&b.environment, &b.image)));
        holds.sort_by(|a, b| (&a.environment, &a.image).cmp(&(&b.environment, &b.image)));
        if !moves.is_empty() || !holds.is_empty() {
            self.history.entries.push(HistoryEntry { commit: commit.commit, moves, holds });
        }
    }

    fn moved(&mut self, id: &EnvironmentId, change: &FileChange) -> Result<(Vec<Move>, Vec<HoldChange>), Failure> {
        let (old, new) = self.lockfiles.both(change);
        let (old, new) = (old?, new?);
        let moved = diff::diff_images(id, images(&old), images(&new));
        let held = diff::holds_of_images(id, images(&old), images(&new));
        Ok((moved, held))
    }

    /// How many commits moved, held or released something so far.
    pub fn count(&self) -> usize {
        self.history.entries.len()
    }

    /// What was read.
    pub fn finish(self) -> History {
        self.history
    }
}

fn images(side: &Option<Arc<Images>>) -> impl Iterator<Item = (&Name, &LockedImage)> {
    side.iter().flat_map(|images| images.iter())
}
