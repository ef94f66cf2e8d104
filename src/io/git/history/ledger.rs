//! A history that is here, and what its commits hold.

use std::{
    cell::{RefCell, RefMut},
    sync::Arc,
};

use gix::{
    ObjectId,
    objs::{Kind, tree::EntryKind},
};

use super::{
    super::{CommitId, GitError, Options, address::Address, cache::Lock, fetch::tree_error, local, signature, tree},
    Reach, changes,
    commit::RawCommit,
    objects::{self, Objects},
    repository,
};
use crate::model::history::{CommitInfo, FileChange};

/// How much memory keeps what other objects in packs are differences of, in bytes.
const PACK_CACHE: usize = 32 * 1024 * 1024;

/// The directory of lockfiles.
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
    objects: RefCell<Objects>,
    /// Where the lockfiles are, as components from the repository's root.
    pub(super) lock: Vec<String>,
    cache: Option<Lock>,
}

/// What a walk needs of each commit.
pub(super) struct Step {
    pub(super) id: ObjectId,
    pub(super) tree: ObjectId,
    pub(super) parent: Option<ObjectId>,
    /// When it was committed, in seconds since 1970 (UTC).
    pub(super) seconds: i64,
}

/// Where a commit's first parent is.
pub(super) enum Parent {
    Here(Step),
    /// There is none: it is the first commit of all.
    None,
    /// Not in the part of the history that is here.
    Cut,
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
        let objects = RefCell::new(Objects::new(repository.clone()));
        Ok(Self { repository, objects, options, branch, tip, graph, shallow, lock, cache })
    }

    /// Where the environment repository is, as components from the repository's root.
    pub(super) fn folder(&self) -> &[String] {
        &self.lock[..self.lock.len() - 1]
    }

    /// The identity of a commit of this history.
    pub(super) fn id(&self, commit: &CommitInfo) -> ObjectId {
        ObjectId::from_hex(commit.id.as_bytes()).unwrap_or(self.tip.0)
    }

    /// Whether this is the history of a remote, of which not all files are here.
    pub(super) fn is_fetched(&self) -> bool {
        self.cache.is_some()
    }

    /// The lockfiles that differ between two commits; without the older one, all that the newer one has.
    ///
    /// # Errors
    /// [`GitError::Corrupt`] and others.
    pub fn between(&self, old: Option<&CommitInfo>, new: &CommitInfo) -> Result<Vec<FileChange>, GitError> {
        let tree = |commit: &CommitInfo| self.lock_tree(self.step_here(self.id(commit))?.tree);
        let pair = (old.map(tree).transpose()?.flatten(), tree(new)?);
        self.files(self.changed(pair)?)
    }

    /// The paths of all lockfiles at the tip.
    ///
    /// # Errors
    /// [`GitError::Corrupt`] and others.
    pub fn lockfiles(&self) -> Result<Vec<String>, GitError> {
        let tree = self.lock_tree(self.step_here(self.tip.0)?.tree)?;
        Ok(self.changed((None, tree))?.into_iter().map(|changed| changed.path).collect())
    }

    /// The lockfiles that differ between two trees of lockfiles.
    pub(super) fn changed(&self, pair: changes::Pair) -> Result<Vec<changes::Changed>, GitError> {
        let changed: Result<Vec<_>, _> =
            changes::files(&mut self.objects(), vec![Ok(pair)], LOCK, None).into_iter().collect();
        Ok(changed.map_err(|error| tree_error(&self.options, error))?.into_iter().flatten().collect())
    }

    /// The bytes of lockfiles that differ.
    pub(super) fn files(&self, changed: Vec<changes::Changed>) -> Result<Vec<FileChange>, GitError> {
        let files: Result<Vec<_>, _> = changes::contents(&mut self.objects(), vec![Ok(changed)]).into_iter().collect();
        Ok(files.map_err(|error| tree_error(&self.options, error))?.into_iter().flatten().collect())
    }

    pub(super) fn objects(&self) -> RefMut<'_, Objects> {
        self.objects.borrow_mut()
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
        self.file_of(self.id(commit), path)
    }

    fn file_of(&self, commit: ObjectId, path: &str) -> Result<Option<Arc<[u8]>>, GitError> {
        let path: Vec<_> = self.folder().iter().cloned().chain(tree::components(path)?).collect();
        let tree = self.step_here(commit)?.tree;
        let found = tree::find(&self.repository, tree, &path).map_err(|error| local::corrupt(&self.options, &error))?;
        let Some((EntryKind::Blob | EntryKind::BlobExecutable, id)) = found else {
            return Ok(None);
        };
        let bytes = objects::get(&self.objects().read([id], Kind::Blob), id);
        bytes.map(Some).map_err(|error| tree_error(&self.options, error))
    }

    /// A commit, as people name it.
    pub(super) fn info(&self, id: ObjectId) -> Result<CommitInfo, GitError> {
        let mut infos = infos(&mut self.objects(), &self.options, [id]);
        infos.pop().unwrap_or_else(|| Err(self.missing(id)))
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
        let Some(data) = self.commit_data(id)? else { return Ok(None) };
        let RawCommit { tree, parents, seconds, .. } = self.raw(id, &data)?;
        Ok(Some(Step { id, tree, parent: parents.first().copied(), seconds }))
    }

    /// The parents of a commit that is here.
    pub(super) fn parents(&self, id: ObjectId) -> Result<Vec<ObjectId>, GitError> {
        let data = self.commit_data(id)?.ok_or_else(|| self.missing(id))?;
        Ok(self.raw(id, &data)?.parents)
    }

    /// The whole message of a commit that is here.
    pub(super) fn message(&self, id: ObjectId) -> Result<Arc<str>, GitError> {
        let data = self.commit_data(id)?.ok_or_else(|| self.missing(id))?;
        Ok(self.raw(id, &data)?.message().into())
    }

    fn commit_data(&self, id: ObjectId) -> Result<Option<Arc<[u8]>>, GitError> {
        self.objects().read_one(id, Kind::Commit).map_err(|detail| self.corrupt(detail))
    }

    /// A commit's bytes, read.
    pub(super) fn raw<'d>(&self, id: ObjectId, data: &'d [u8]) -> Result<RawCommit<'d>, GitError> {
        RawCommit::read(data).ok_or_else(|| self.corrupt(no_tree(id)))
    }

    /// The first parent of a commit.
    pub(super) fn parent(&self, step: &Step) -> Result<Parent, GitError> {
        let Some(id) = step.parent else { return Ok(Parent::None) };
        match self.step(id)? {
            Some(parent) => Ok(Parent::Here(parent)),
            None if self.shallow => Ok(Parent::Cut),
            None => Err(self.missing(id)),
        }
    }

    /// As [`Self::step`], where the commit has to be here.
    pub(super) fn step_here(&self, id: ObjectId) -> Result<Step, GitError> {
        self.step(id)?.ok_or_else(|| self.missing(id))
    }

    pub(super) fn missing(&self, id: ObjectId) -> GitError {
        self.corrupt(format!("the commit {id} is missing"))
    }

    fn corrupt(&self, detail: String) -> GitError {
        GitError::Corrupt { remote: self.options.remote(), detail }
    }

    /// The tree of lockfiles below a commit's tree.
    pub(super) fn lock_tree(&self, tree: ObjectId) -> Result<Option<ObjectId>, GitError> {
        let found = tree::find(&self.repository, tree, &self.lock);
        let found = found.map_err(|error| local::corrupt(&self.options, &error))?;
        Ok(found.filter(|(kind, _)| *kind == EntryKind::Tree).map(|(_, id)| id))
    }
}

/// Commits, as people name them, in the order in which they are asked for.
pub(super) fn infos(
    objects: &mut Objects,
    options: &Options,
    ids: impl IntoIterator<Item = ObjectId>,
) -> Vec<Result<CommitInfo, GitError>> {
    let ids: Vec<ObjectId> = ids.into_iter().collect();
    let commits = objects.read(ids.iter().copied(), Kind::Commit);
    let info = |id| {
        let data = objects::get(&commits, id).map_err(|error| tree_error(options, error))?;
        let corrupt = || GitError::Corrupt { remote: options.remote(), detail: no_tree(id) };
        RawCommit::read(&data).map(|commit| commit.info(id)).ok_or_else(corrupt)
    };
    ids.into_iter().map(info).collect()
}

fn no_tree(id: ObjectId) -> String {
    format!("the commit {id} does not begin with its tree")
}
