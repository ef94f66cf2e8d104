//! The commits that change the lock, with what is needed to judge them.

use std::ops::ControlFlow;

use gix::{ObjectId, objs::TreeRefIter};

use super::{
    super::{CommitId, GitError, address, fetch, fetch::tree_error, local, signature, tree, tree::Absent},
    ledger::{Ledger, Parent, Step},
};
use crate::model::{
    history::{CommitInfo, WalkEnd},
    snapshot::Snapshot,
};

/// How far below a merge the commit is searched that the merged one was made on.
const FAR: usize = 10_000;

/// A commit that changes files under `lock/`.
pub struct LockingCommit {
    /// Which, whose and when.
    pub commit: CommitInfo,
    /// The bytes of the commit, as they are hashed and signed.
    pub bytes: Vec<u8>,
    /// Its message.
    pub message: String,
    /// Something that it changes beside `lock/`: a path from the repository's root.
    pub beside: Option<String>,
    /// The merge that brought it to the branch, where it was proposed on another one.
    pub merged_by: Option<CommitInfo>,
}

/// Where a walk ends that began at the newest commit.
#[derive(Clone, Debug)]
pub enum Until {
    /// At the first commit of all.
    Start,
    /// Before this one, which has to be among the first parents.
    Commit(CommitInfo),
}

impl Ledger {
    /// Visits the commits that change the lock, newest first, along first parents from `from` on. A merge that brings
    /// exactly what one commit on a branch beside changed stands for that commit.
    ///
    /// # Errors
    /// [`GitError::Revision`] when `until` is not on the way; [`GitError::Corrupt`] and others.
    pub fn lock_commits(
        &self,
        from: &CommitInfo,
        until: &Until,
        visit: &mut dyn FnMut(LockingCommit) -> Result<ControlFlow<()>, GitError>,
    ) -> Result<WalkEnd, GitError> {
        let stop = match until {
            Until::Commit(commit) => Some(self.id(commit)),
            Until::Start => None,
        };
        let mut step = self.step_here(self.id(from))?;
        let mut after = self.lock_tree(step.tree)?;
        loop {
            if stop == Some(step.id) {
                return Ok(WalkEnd::Start);
            }
            let parent = match self.parent(&step)? {
                Parent::Here(parent) => Some(parent),
                Parent::None => None,
                Parent::Cut => return Ok(WalkEnd::Cut),
            };
            let before = parent.as_ref().map(|parent| self.lock_tree(parent.tree)).transpose()?.flatten();
            if before != after {
                let found = match self.merged(&step, parent.as_ref(), (before, after))? {
                    Some(inner) => self.candidate(&inner, Some(self.info(step.id)?))?,
                    None => self.candidate(&step, None)?,
                };
                if visit(found)?.is_break() {
                    return Ok(WalkEnd::Stopped);
                }
            }
            let Some(parent) = parent else {
                if let Until::Commit(commit) = until {
                    let remote = self.options.remote();
                    let detail = format!("it is not among the first parents of {}", from.id);
                    return Err(GitError::Revision { remote, revision: commit.id.clone(), detail });
                }
                return Ok(WalkEnd::Start);
            };
            (step, after) = (parent, before);
        }
    }

    /// The files of the environment repository at a commit.
    ///
    /// # Errors
    /// [`GitError::Corrupt`] and others.
    pub fn snapshot(&self, commit: &CommitInfo) -> Result<Snapshot, GitError> {
        let folder = self.folder();
        let (commit, wrong) = (CommitId(self.id(commit)), |error| tree_error(&self.options, error));
        match tree::snapshot(&self.repository, commit, folder, Absent::Missing).map_err(wrong) {
            // A link may lead to a file beside those that came with the history.
            Err(GitError::Corrupt { .. }) if self.is_fetched() => {
                let read = |repository: &gix::Repository, absent| {
                    tree::snapshot(repository, commit, folder, absent).map_err(wrong)
                };
                fetch::with_tree(&self.options, &address::parse(&self.options.url)?, commit, read)
                    .map(|(_, files)| files)
            }
            result => result,
        }
    }

    fn candidate(&self, step: &Step, merged_by: Option<CommitInfo>) -> Result<LockingCommit, GitError> {
        let bytes = signature::object(&self.options, &self.repository, CommitId(step.id))?;
        let message = self.raw(step.id, &bytes)?.message().into_owned();
        let parent = step.parent.map(|id| self.step_here(id)).transpose()?;
        let beside = self.beside(parent.as_ref().map(|parent| parent.tree), step.tree)?;
        Ok(LockingCommit { commit: self.info(step.id)?, bytes, message, beside, merged_by })
    }

    /// Something that differs between two trees beside the directory of lockfiles.
    fn beside(&self, old: Option<ObjectId>, new: ObjectId) -> Result<Option<String>, GitError> {
        let (mut old, mut new) = (old, Some(new));
        for depth in 0..self.lock.len() {
            let (before, after) = (self.entries(old)?, self.entries(new)?);
            let name = self.lock[depth].as_bytes();
            let of = |entries: &[TreeLine]| entries.iter().find(|entry| entry.name == name).cloned();
            let rest = |entries: &[TreeLine]| -> Vec<TreeLine> {
                entries.iter().filter(|entry| entry.name != name).cloned().collect()
            };
            let (others_before, others_after) = (rest(&before), rest(&after));
            let differs = others_after.iter().find(|entry| !others_before.contains(entry));
            let gone = || others_before.iter().find(|entry| !others_after.contains(entry));
            if let Some(entry) = differs.or_else(gone) {
                let path: Vec<_> = self.lock[..depth].iter().map(String::as_str).collect();
                let name = String::from_utf8_lossy(&entry.name).into_owned();
                let path = path.into_iter().chain([name.as_str()]).collect::<Vec<_>>().join("/");
                return Ok(Some(super::super::redact::printable(&path)));
            }
            let tree = |entry: Option<TreeLine>| entry.filter(|entry| entry.is_tree).map(|entry| entry.id);
            (old, new) = (tree(of(&before)), tree(of(&after)));
        }
        Ok(None)
    }

    fn entries(&self, tree: Option<ObjectId>) -> Result<Vec<TreeLine>, GitError> {
        let Some(tree) = tree else { return Ok(Vec::new()) };
        let read = || -> Result<Vec<TreeLine>, gix::Error> {
            let tree = self.repository.find_tree(tree)?;
            TreeRefIter::from_bytes(&tree.data, gix::hash::Kind::Sha1)
                .map(|entry| {
                    let entry = entry?;
                    Ok(TreeLine {
                        name: entry.filename.to_vec(),
                        mode: entry.mode.value(),
                        is_tree: entry.mode.is_tree(),
                        id: entry.oid.to_owned(),
                    })
                })
                .collect()
        };
        read().map_err(|error| local::corrupt(&self.options, &error))
    }

    /// The commit that a merge brings, when that commit made the very change of the lock that the merge makes: from the
    /// same lock to the same lock, on a commit that is on this branch, and for the first time.
    fn merged(
        &self,
        merge: &Step,
        onto: Option<&Step>,
        (before, after): (Option<ObjectId>, Option<ObjectId>),
    ) -> Result<Option<Step>, GitError> {
        let Some(onto) = onto else { return Ok(None) };
        for other in self.parents(merge.id)?.into_iter().skip(1) {
            let Some(inner) = self.step(other)? else { continue };
            let Some(base) = inner.parent.map(|id| self.step(id)).transpose()?.flatten() else { continue };
            if self.lock_tree(inner.tree)? == after
                && self.lock_tree(base.tree)? == before
                && self.is_new(inner.id, base.id, onto.id)?
            {
                return Ok(Some(inner));
            }
        }
        Ok(None)
    }

    /// Whether the branch at `from` holds `base`, and since then has not taken `commit` yet.
    fn is_new(&self, commit: ObjectId, base: ObjectId, from: ObjectId) -> Result<bool, GitError> {
        let mut at = from;
        for _ in 0..FAR {
            if at == base {
                return Ok(true);
            }
            if at == commit {
                return Ok(false);
            }
            let parents = if self.step(at)?.is_some() { self.parents(at)? } else { Vec::new() };
            if parents.contains(&commit) {
                return Ok(false);
            }
            let Some(next) = parents.first() else { return Ok(false) };
            at = *next;
        }
        Ok(false)
    }
}

/// An entry of a tree.
#[derive(Clone, PartialEq, Eq)]
struct TreeLine {
    name: Vec<u8>,
    mode: u16,
    is_tree: bool,
    id: ObjectId,
}
