//! The commits that change lockfiles, along first parents.

use std::{ops::ControlFlow, sync::Arc};

use gix::{
    ObjectId,
    actor::SignatureRef,
    bstr::ByteSlice as _,
    objs::{CommitRefIter, tree::EntryKind},
};

use super::{
    super::{CommitId, GitError, Options, address::Address, cache::Lock, fetch::tree_error, local, signature, tree},
    Query, Reach,
    changes::Comparison,
    frontier::Frontier,
    repository,
};
use crate::model::history::{CommitInfo, CommitTime, FileChange, LockCommit, WalkEnd};

/// How much memory keeps what other objects in packs are differences of, in bytes.
const PACK_CACHE: usize = 32 * 1024 * 1024;

/// The folder of lockfiles.
pub(super) const LOCK: &str = "lock";

/// A history that is here, up to a tip. While it is open, no other process uses the cache that it may be in.
pub struct Ledger {
    pub(super) repository: gix::Repository,
    pub(super) options: Options,
    pub(super) branch: Option<String>,
    pub(super) tip: CommitId,
    /// Git's own index of commits, where there is one: it knows parents and trees without the commits being read.
    graph: Option<gix::commitgraph::Graph>,
    pub(super) shallow: bool,
    /// Where the lockfiles are, as components from the repository's root.
    pub(super) lock: Vec<String>,
    _cache: Option<Lock>,
}

/// What a walk needs of each commit.
pub(super) struct Step {
    pub(super) id: ObjectId,
    pub(super) tree: ObjectId,
    pub(super) parent: Option<ObjectId>,
    /// When it was committed, in seconds since 1970 (UTC).
    pub(super) seconds: i64,
}

impl Ledger {
    /// Opens the history of `tip`, as far back as `reach`.
    ///
    /// # Errors
    /// [`GitError`].
    pub(in super::super) fn open(
        options: &Options,
        address: &Address,
        path: &[String],
        branch: Option<&str>,
        tip: CommitId,
        reach: Reach,
    ) -> Result<Self, GitError> {
        let (mut repository, cache) = repository(options, address, tip, reach)?;
        signature::demand(options, &repository, tip)?;
        repository.objects.set_pack_cache(|| Box::new(gix_pack::cache::lru::MemoryCappedHashmap::new(PACK_CACHE)));
        let shallow = repository.is_shallow().map_err(|error| local::corrupt(options, &error))?;
        // Git does not trust the index either where parents are missing; one that is broken only costs time.
        let graph = if shallow { None } else { repository.commit_graph_if_enabled().ok().flatten() };
        let lock = path.iter().cloned().chain([LOCK.to_owned()]).collect();
        let (options, branch) = (options.clone(), branch.map(str::to_owned));
        Ok(Self { repository, options, branch, tip, graph, shallow, lock, _cache: cache })
    }

    /// Visits the commits that change lockfiles, newest first, along first parents from the tip on. `visit` gets each
    /// and may stop.
    ///
    /// # Errors
    /// [`GitError::Corrupt`] and others.
    pub fn walk(
        &self,
        query: &Query,
        visit: &mut dyn FnMut(LockCommit) -> ControlFlow<()>,
    ) -> Result<WalkEnd, GitError> {
        let only = query.path.as_deref().map(tree::components).transpose()?;
        // Below `lock/`, as the comparison goes.
        let only = only.map(|path| path.iter().skip(1).cloned().collect::<Vec<_>>());
        let author = query.author.as_deref().map(str::to_lowercase);
        let wrong = |error| tree_error(&self.options, error);
        let mut frontier = Frontier::default();

        let mut step = self.step_here(self.tip.0)?;
        let mut after = self.lock_tree(step.tree)?;
        loop {
            let parent = match step.parent {
                Some(id) => match self.step(id)? {
                    Some(parent) => Some(parent),
                    // What this commit changed is not known.
                    None if self.shallow => return Ok(WalkEnd::Cut),
                    None => return Err(self.missing(id)),
                },
                None => None,
            };
            let before = match &parent {
                Some(parent) if parent.tree == step.tree => after,
                Some(parent) => self.lock_tree(parent.tree)?,
                None => None,
            };
            if before != after && query.covers(step.seconds) {
                let mut comparison =
                    Comparison { repository: &self.repository, frontier: &mut frontier, only: only.as_deref() };
                let changed = comparison.files(before, after, LOCK).map_err(wrong)?;
                if !changed.is_empty() {
                    let commit = self.info(step.id)?;
                    if author.as_ref().is_none_or(|author| commit.author.to_lowercase().contains(author)) {
                        let files = comparison.contents(changed).map_err(wrong)?;
                        if visit(LockCommit { commit, files }).is_break() {
                            return Ok(WalkEnd::Stopped);
                        }
                    }
                }
            }
            let Some(parent) = parent else {
                return Ok(WalkEnd::Start);
            };
            (step, after) = (parent, before);
        }
    }

    /// The lockfiles that differ between two commits; without the older one, all that the newer one has.
    ///
    /// # Errors
    /// [`GitError::Corrupt`] and others.
    pub fn between(&self, old: Option<&CommitInfo>, new: &CommitInfo) -> Result<Vec<FileChange>, GitError> {
        let tree = |commit: &CommitInfo| {
            let id = ObjectId::from_hex(commit.id.as_bytes()).unwrap_or(self.tip.0);
            self.lock_tree(self.step_here(id)?.tree)
        };
        let (old, new) = (old.map(tree).transpose()?.flatten(), tree(new)?);
        if old == new {
            return Ok(Vec::new());
        }
        let mut frontier = Frontier::default();
        let mut comparison = Comparison { repository: &self.repository, frontier: &mut frontier, only: None };
        let files = comparison.files(old, new, LOCK).and_then(|files| comparison.contents(files));
        files.map_err(|error| tree_error(&self.options, error))
    }

    /// The bytes of a file of the environment repository at the tip; none where there is no such file.
    ///
    /// # Errors
    /// [`GitError::Path`], [`GitError::Corrupt`].
    pub fn file(&self, path: &str) -> Result<Option<Arc<[u8]>>, GitError> {
        self.file_of(self.tip.0, path)
    }

    /// The same in a commit of this history.
    ///
    /// # Errors
    /// As [`Self::file`].
    pub fn file_in(&self, commit: &CommitInfo, path: &str) -> Result<Option<Arc<[u8]>>, GitError> {
        self.file_of(ObjectId::from_hex(commit.id.as_bytes()).unwrap_or(self.tip.0), path)
    }

    fn file_of(&self, commit: ObjectId, path: &str) -> Result<Option<Arc<[u8]>>, GitError> {
        let folder = &self.lock[..self.lock.len() - 1];
        let path: Vec<_> = folder.iter().cloned().chain(tree::components(path)?).collect();
        let tree = self.step_here(commit)?.tree;
        let found = tree::find(&self.repository, tree, &path).map_err(|error| local::corrupt(&self.options, &error))?;
        let Some((EntryKind::Blob | EntryKind::BlobExecutable, id)) = found else {
            return Ok(None);
        };
        let bytes = Frontier::default().last(&self.repository, id, gix::objs::Kind::Blob);
        bytes.map(Some).map_err(|error| tree_error(&self.options, error))
    }

    /// A commit, as people name it.
    pub(super) fn info(&self, id: ObjectId) -> Result<CommitInfo, GitError> {
        let info = || -> Result<CommitInfo, gix::Error> {
            let commit = self.repository.find_commit(id)?;
            let (author, committer) = (commit.author()?, commit.committer()?);
            let time =
                CommitTime { seconds: committer.seconds(), offset: committer.time().map_or(0, |time| time.offset) };
            let subject = commit.message_raw()?.lines().next().map(gix::bstr::ByteSlice::to_str_lossy);
            Ok(CommitInfo {
                id: id.to_string(),
                author: person(author),
                committer: person(committer),
                time,
                subject: subject.unwrap_or_default().into_owned(),
            })
        };
        info().map_err(|error| local::corrupt(&self.options, &error))
    }

    /// What a walk needs of a commit; none when it is not here.
    pub(super) fn step(&self, id: ObjectId) -> Result<Option<Step>, GitError> {
        if let Some(commit) = self.graph.as_ref().and_then(|graph| Some((graph, graph.commit_by_id(id)?))) {
            let (graph, commit) = commit;
            let parent = commit.parent1().map_err(|error| local::corrupt(&self.options, &error))?;
            return Ok(Some(Step {
                id,
                tree: commit.root_tree_id().to_owned(),
                parent: parent.map(|position| graph.id_at(position).to_owned()),
                seconds: i64::try_from(commit.committer_timestamp()).unwrap_or(i64::MAX),
            }));
        }
        let read = || -> Result<Option<Step>, gix::Error> {
            let Some(object) = self.repository.try_find_object(id)? else {
                return Ok(None);
            };
            let commit = || CommitRefIter::from_bytes(&object.data, gix::hash::Kind::Sha1);
            Ok(Some(Step {
                id,
                tree: commit().tree_id()?,
                parent: commit().parent_ids().next(),
                seconds: commit().committer().map_or(0, |committer| committer.seconds()),
            }))
        };
        read().map_err(|error| local::corrupt(&self.options, &error))
    }

    /// As [`Self::step`], where the commit has to be here.
    pub(super) fn step_here(&self, id: ObjectId) -> Result<Step, GitError> {
        self.step(id)?.ok_or_else(|| self.missing(id))
    }

    pub(super) fn missing(&self, id: ObjectId) -> GitError {
        GitError::Corrupt { remote: self.options.remote(), detail: format!("the commit {id} is missing") }
    }

    /// The tree of lockfiles below a commit's tree.
    pub(super) fn lock_tree(&self, tree: ObjectId) -> Result<Option<ObjectId>, GitError> {
        let found = tree::find(&self.repository, tree, &self.lock);
        let found = found.map_err(|error| local::corrupt(&self.options, &error))?;
        Ok(found.filter(|(kind, _)| *kind == EntryKind::Tree).map(|(_, id)| id))
    }
}

impl Query {
    fn covers(&self, seconds: i64) -> bool {
        self.since.is_none_or(|since| seconds >= since) && self.until.is_none_or(|until| seconds <= until)
    }
}

fn person(signature: SignatureRef<'_>) -> String {
    format!("{} <{}>", signature.name, signature.email)
}
