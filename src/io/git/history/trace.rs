//! The latest commits that changed some lockfiles, each followed to where its change was made.

use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use gix::ObjectId;

use super::{
    super::GitError,
    changes::Changed,
    ledger::{Ledger, Step},
};
use crate::model::history::{LockStep, WalkEnd};

/// What a trace found.
#[derive(Debug)]
pub struct Trace {
    /// The changes, newest first for each lockfile.
    pub steps: Vec<LockStep>,
    /// Whether there is more that was not looked at.
    pub end: WalkEnd,
}

/// Commits that are still to be looked at, the youngest first, each with the lockfiles that are followed there.
#[derive(Default)]
struct Rest {
    order: BinaryHeap<(i64, ObjectId)>,
    paths: BTreeMap<ObjectId, BTreeSet<String>>,
}

impl Rest {
    fn add(&mut self, step: &Step, paths: BTreeSet<String>) {
        if paths.is_empty() {
            return;
        }
        self.order.push((step.seconds, step.id));
        self.paths.entry(step.id).or_default().extend(paths);
    }

    fn next(&mut self) -> Option<(ObjectId, BTreeSet<String>)> {
        loop {
            let (_, id) = self.order.pop()?;
            if let Some(paths) = self.paths.remove(&id) {
                return Some((id, paths));
            }
        }
    }
}

impl Ledger {
    /// The changes of these lockfiles (paths from the root of the environment repository) in the latest `limit` commits.
    ///
    /// At a merge each file is followed to the parent that has it alike, as Git's own history of a path does, so that
    /// neither merging a pull request nor pulling before a push looks like a change of anyone who merged.
    /// <https://git-scm.com/docs/git-log#_history_simplification>
    ///
    /// # Errors
    /// [`GitError::Corrupt`] and others.
    pub fn trace(&self, paths: BTreeSet<String>, limit: usize) -> Result<Trace, GitError> {
        let mut rest = Rest::default();
        let (mut steps, mut cut) = (Vec::new(), false);
        rest.add(&self.step_here(self.tip.0)?, paths);
        for _ in 0..limit {
            let Some((id, paths)) = rest.next() else { break };
            cut |= self.look(id, paths, &mut rest, &mut steps)?;
        }
        let end = if cut || !rest.paths.is_empty() { WalkEnd::Cut } else { WalkEnd::Start };
        Ok(Trace { steps, end })
    }

    /// Looks at one commit; whether some parent is not here.
    fn look(
        &self,
        id: ObjectId,
        mut paths: BTreeSet<String>,
        rest: &mut Rest,
        steps: &mut Vec<LockStep>,
    ) -> Result<bool, GitError> {
        let after = self.lock_tree(self.step_here(id)?.tree)?;
        let parents = self.parents(id)?;
        let mut cut = false;
        // What the commit changed, compared with its first parent.
        let mut first: Option<(Option<Step>, Vec<Changed>)> = None;
        if parents.is_empty() {
            first = Some((None, self.changed((None, after))?));
        }
        for (number, parent) in parents.into_iter().enumerate() {
            let Some(parent) = self.step(parent)? else {
                cut = true;
                continue;
            };
            let before = self.lock_tree(parent.tree)?;
            let changed = if before == after { Vec::new() } else { self.changed((before, after))? };
            let differs: BTreeSet<&str> = changed.iter().map(|changed| changed.path.as_str()).collect();
            let (other, same) = paths.into_iter().partition(|path| differs.contains(path.as_str()));
            paths = other;
            rest.add(&parent, same);
            if number == 0 {
                first = Some((Some(parent), changed));
            }
        }
        let Some((parent, mut changed)) = first else { return Ok(true) };
        changed.retain(|changed| paths.contains(&changed.path));
        if changed.is_empty() {
            return Ok(cut);
        }
        let (commit, message) = (self.info(id)?, self.message(id)?);
        let files = self.files(changed)?;
        let older = files.iter().filter(|file| file.old.is_some()).map(|file| file.path.clone()).collect();
        steps.extend(files.into_iter().map(|file| LockStep { commit: commit.clone(), message: message.clone(), file }));
        if let Some(parent) = parent {
            rest.add(&parent, older);
        }
        Ok(cut)
    }
}
