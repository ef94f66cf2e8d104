//! Reads a stretch of commits: which of them change lockfiles, how, and who made them.

use gix::{
    ObjectId,
    bstr::{ByteSlice as _, Finder},
    hashtable::HashMap,
    objs::{Kind, TreeRefIter},
};

use super::{
    super::{
        super::{
            GitError, Options,
            fetch::tree_error,
            tree::{self, TreeError},
        },
        Query, changes,
        ledger::{LOCK, Ledger, infos},
        objects::Objects,
    },
    Edge,
};
use crate::model::history::{CommitInfo, FileChange, LockCommit};

/// The commits of a stretch that change lockfiles.
pub(super) type Stretch = Vec<Result<LockCommit, GitError>>;

/// What one thread reads with.
pub(super) struct Reader<'a> {
    options: &'a Options,
    /// Where the lockfiles are, as components from the repository's root.
    lock: &'a [String],
    query: &'a Query,
    /// Only this file, as components below `lock/`; otherwise all.
    only: Option<Vec<String>>,
    holding: Option<Finder<'a>>,
    objects: Objects,
}

impl<'a> Reader<'a> {
    pub(super) fn new(ledger: &'a Ledger, query: &'a Query) -> Result<Self, GitError> {
        let only = query.path.as_deref().map(tree::components).transpose()?;
        Ok(Self {
            options: &ledger.options,
            lock: &ledger.lock,
            query,
            only: only.map(|path| path.into_iter().skip(1).collect()),
            holding: query.holding.as_deref().map(Finder::new),
            objects: ledger.objects().fork(),
        })
    }

    /// One that reads the same for another thread.
    pub(super) fn fork(&self) -> Self {
        let (only, holding) = (self.only.clone(), self.holding.clone());
        Self { only, holding, objects: self.objects.fork(), ..*self }
    }

    /// Those that change lockfiles, in the way that the query asks for.
    pub(super) fn commits(&mut self, mut edges: Vec<Edge>) -> Stretch {
        edges.retain(|edge| edge.before != Some(edge.step.tree) && self.query.commits.covers_time(edge.step.seconds));
        let commits = &self.query.commits;
        if commits.author.is_some() {
            let infos = infos(&mut self.objects, self.options, edges.iter().map(|edge| edge.step.id));
            // What cannot be read is told below.
            let by =
                |info: &Result<CommitInfo, _>| info.as_ref().map_or(true, |info| commits.covers_author(&info.author));
            edges = edges.into_iter().zip(infos).filter(|(_, info)| by(info)).map(|(edge, _)| edge).collect();
        }
        let lock = self.lock_trees(&edges);
        let mut changed = changes::files(&mut self.objects, lock, LOCK, self.only.as_deref());
        (edges, changed) = edges.into_iter().zip(changed).filter(|(_, changed)| !is_nothing(changed)).unzip();
        let mut files = changes::contents(&mut self.objects, changed);
        if self.holding.is_some() {
            files.iter_mut().flatten().for_each(|files| files.retain(|file| self.may_hold(file)));
            (edges, files) = edges.into_iter().zip(files).filter(|(_, files)| !is_nothing(files)).unzip();
        }
        let infos = infos(&mut self.objects, self.options, edges.iter().map(|edge| edge.step.id));
        let wrong = |error| tree_error(self.options, error);
        let commit = |(commit, files): (_, Result<Vec<FileChange>, TreeError>)| {
            Ok(LockCommit { commit: commit?, files: files.map_err(wrong)? })
        };
        infos.into_iter().zip(files).map(commit).collect()
    }

    /// The trees of lockfiles before and after each commit.
    fn lock_trees(&mut self, edges: &[Edge]) -> Vec<Result<changes::Pair, TreeError>> {
        let roots = edges.iter().flat_map(|edge| edge.before.into_iter().chain([edge.step.tree]));
        let mut places: HashMap<ObjectId, Result<Option<ObjectId>, String>> =
            roots.map(|root| (root, Ok(Some(root)))).collect();
        for name in self.lock {
            let trees = self.objects.read(places.values().flatten().flatten().copied(), Kind::Tree);
            for place in places.values_mut() {
                let Ok(Some(id)) = place else { continue };
                *place = match trees.get(id) {
                    Some(Ok(tree)) => Ok(folder(tree, name)),
                    Some(Err(detail)) => Err(detail.clone()),
                    None => Ok(None),
                };
            }
        }
        let find = |root: ObjectId| places.get(&root).cloned().unwrap_or(Ok(None)).map_err(TreeError::Object);
        edges.iter().map(|edge| Ok((edge.before.map_or(Ok(None), find)?, find(edge.step.tree)?))).collect()
    }

    /// Whether the text is in the file on either side, or may be there in another spelling.
    fn may_hold(&self, file: &FileChange) -> bool {
        let Some(text) = &self.holding else { return true };
        let sides = file.old.iter().chain(&file.new);
        sides.into_iter().any(|bytes| text.find(bytes).is_some() || bytes.contains(&b'\\'))
    }
}

fn is_nothing<T, E>(result: &Result<Vec<T>, E>) -> bool {
    result.as_ref().is_ok_and(Vec::is_empty)
}

/// The directory of that name in a tree.
fn folder(tree: &[u8], name: &str) -> Option<ObjectId> {
    let mut entries = TreeRefIter::from_bytes(tree, gix::hash::Kind::Sha1).filter_map(Result::ok);
    let found = entries.find(|entry| entry.filename == name.as_bytes().as_bstr() && entry.mode.is_tree());
    found.map(|entry| entry.oid.to_owned())
}
