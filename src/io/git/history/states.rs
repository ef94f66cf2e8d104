//! The environment repository as it was lately, commit by commit.

use std::ops::ControlFlow;

use super::{
    super::{CommitId, GitError, fetch::tree_error, local, tree, tree::Absent},
    ledger::Ledger,
};
use crate::model::snapshot::Snapshot;

impl Ledger {
    /// Visits the files of the latest `limit` commits along first parents, newest first. Commits that are like the one
    /// after them are passed over.
    ///
    /// # Errors
    /// [`GitError::Corrupt`] and others.
    pub fn states(&self, limit: usize, visit: &mut dyn FnMut(Snapshot) -> ControlFlow<()>) -> Result<(), GitError> {
        let folder = self.folder();
        let (mut next, mut visited) = (Some(self.tip.0), None);
        for _ in 0..limit {
            // What is not here was not fetched.
            let Some(step) = next.map(|id| self.step(id)).transpose()?.flatten() else { return Ok(()) };
            next = step.parent;
            let found = tree::find(&self.repository, step.tree, folder);
            let found = found.map_err(|error| local::corrupt(&self.options, &error))?.map(|(_, id)| id);
            if found.is_none() || found == visited {
                continue;
            }
            visited = found;
            // What did not come with the history matters to no wish: it is larger than a file that is read.
            let snapshot = tree::snapshot(&self.repository, CommitId(step.id), folder, Absent::TooLarge)
                .map_err(|error| tree_error(&self.options, error))?;
            if visit(snapshot).is_break() {
                return Ok(());
            }
        }
        Ok(())
    }
}
