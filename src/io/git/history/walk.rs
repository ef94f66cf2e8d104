//! The commits that change lockfiles, along first parents: a stretch of commits at a time, so that what they need is read
//! together.

use std::{ops::ControlFlow, sync::mpsc, thread};

use gix::{
    ObjectId,
    bstr::{ByteSlice as _, Finder},
    hashtable::HashMap,
    objs::{Kind, TreeRefIter},
};

use super::{
    super::{
        GitError,
        fetch::tree_error,
        tree::{self, TreeError},
    },
    Query, changes,
    ledger::{LOCK, Ledger, Step},
};
use crate::model::history::{CommitInfo, FileChange, LockCommit, WalkEnd};

/// How many commits the first stretch has, and how many the longest: who wants only the latest does not wait for more.
const STRETCH: (usize, usize) = (32, 2048);

/// How many stretches may be read before they are wanted.
const AHEAD: usize = 1;

/// The commits of a stretch that change lockfiles.
type Stretch = Vec<Result<LockCommit, GitError>>;

/// A commit and the tree of its first parent; none for the first commit of all.
struct Edge {
    step: Step,
    before: Option<ObjectId>,
}

/// What comes after a stretch.
enum Rest {
    More(Step),
    End(Result<WalkEnd, GitError>),
}

struct Walk<'a> {
    ledger: &'a Ledger,
    query: &'a Query,
    /// Only this file, as components below `lock/`; otherwise all.
    only: Option<Vec<String>>,
    author: Option<String>,
    holding: Option<Finder<'a>>,
}

impl Ledger {
    /// Visits the commits that change lockfiles, newest first, along first parents from the tip on. `visit` gets each
    /// and may stop.
    ///
    /// # Errors
    /// [`GitError::Corrupt`] and others.
    pub fn walk(
        &self,
        query: &Query,
        visit: &mut (dyn FnMut(LockCommit) -> ControlFlow<()> + Send),
    ) -> Result<WalkEnd, GitError> {
        let only = query.path.as_deref().map(tree::components).transpose()?;
        let walk = Walk {
            ledger: self,
            query,
            only: only.map(|path| path.into_iter().skip(1).collect()),
            author: query.author.as_deref().map(str::to_lowercase),
            holding: query.holding.as_deref().map(Finder::new),
        };
        let first = self.step_here(self.tip.0)?;
        // One thread reads ahead while the other one understands.
        thread::scope(|scope| {
            let (sender, receiver) = mpsc::sync_channel::<Stretch>(AHEAD);
            let visitor = scope.spawn(move || {
                for commit in receiver.into_iter().flatten() {
                    if visit(commit?).is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Ok(ControlFlow::Continue(()))
            });
            let end = walk.send(first, &sender);
            drop(sender);
            match visitor.join() {
                Ok(Ok(ControlFlow::Continue(()))) => end,
                Ok(Ok(ControlFlow::Break(()))) => Ok(WalkEnd::Stopped),
                Ok(Err(error)) => Err(error),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}

impl Walk<'_> {
    /// Sends stretch after stretch, until the history ends or nobody wants more.
    fn send(&self, first: Step, sender: &mpsc::SyncSender<Stretch>) -> Result<WalkEnd, GitError> {
        let (mut first, mut length) = (first, STRETCH.0);
        loop {
            let (edges, rest) = self.stretch(first, length);
            if sender.send(self.commits(edges)).is_err() {
                return Ok(WalkEnd::Stopped);
            }
            first = match rest {
                Rest::More(step) => step,
                Rest::End(end) => return end,
            };
            length = (length * 2).min(STRETCH.1);
        }
    }

    fn stretch(&self, first: Step, length: usize) -> (Vec<Edge>, Rest) {
        let mut edges = Vec::new();
        let mut step = first;
        while edges.len() < length {
            let Some(id) = step.parent else {
                edges.push(Edge { step, before: None });
                return (edges, Rest::End(Ok(WalkEnd::Start)));
            };
            let parent = match self.ledger.step(id) {
                Ok(Some(parent)) => parent,
                // What this commit changed is not known.
                Ok(None) if self.ledger.shallow => return (edges, Rest::End(Ok(WalkEnd::Cut))),
                Ok(None) => return (edges, Rest::End(Err(self.ledger.missing(id)))),
                Err(error) => return (edges, Rest::End(Err(error))),
            };
            edges.push(Edge { step, before: Some(parent.tree) });
            step = parent;
        }
        (edges, Rest::More(step))
    }

    /// Those that change lockfiles, in the way that the query asks for.
    fn commits(&self, mut edges: Vec<Edge>) -> Stretch {
        edges.retain(|edge| edge.before != Some(edge.step.tree) && self.query.covers(edge.step.seconds));
        if let Some(author) = &self.author {
            let infos = self.ledger.infos(edges.iter().map(|edge| edge.step.id));
            // What cannot be read is told below.
            let by = |info: &Result<CommitInfo, _>| {
                info.as_ref().map_or(true, |info| info.author.to_lowercase().contains(author))
            };
            edges = edges.into_iter().zip(infos).filter(|(_, info)| by(info)).map(|(edge, _)| edge).collect();
        }
        let lock = self.lock_trees(&edges);
        let mut changed = changes::files(&mut self.ledger.objects(), lock, LOCK, self.only.as_deref());
        (edges, changed) = edges.into_iter().zip(changed).filter(|(_, changed)| !is_nothing(changed)).unzip();
        let mut files = changes::contents(&mut self.ledger.objects(), changed);
        if self.holding.is_some() {
            files.iter_mut().flatten().for_each(|files| files.retain(|file| self.may_hold(file)));
            (edges, files) = edges.into_iter().zip(files).filter(|(_, files)| !is_nothing(files)).unzip();
        }
        let infos = self.ledger.infos(edges.iter().map(|edge| edge.step.id));
        let wrong = |error| tree_error(&self.ledger.options, error);
        let commit = |(commit, files): (_, Result<Vec<FileChange>, TreeError>)| {
            Ok(LockCommit { commit: commit?, files: files.map_err(wrong)? })
        };
        infos.into_iter().zip(files).map(commit).collect()
    }

    /// The trees of lockfiles before and after each commit.
    fn lock_trees(&self, edges: &[Edge]) -> Vec<Result<changes::Pair, TreeError>> {
        let roots = edges.iter().flat_map(|edge| edge.before.into_iter().chain([edge.step.tree]));
        let mut places: HashMap<ObjectId, Result<Option<ObjectId>, String>> =
            roots.map(|root| (root, Ok(Some(root)))).collect();
        for name in &self.ledger.lock {
            let trees = self.ledger.objects().read(places.values().flatten().flatten().copied(), Kind::Tree);
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

/// The folder of that name in a tree.
fn folder(tree: &[u8], name: &str) -> Option<ObjectId> {
    let mut entries = TreeRefIter::from_bytes(tree, gix::hash::Kind::Sha1).filter_map(Result::ok);
    let found = entries.find(|entry| entry.filename == name.as_bytes().as_bstr() && entry.mode.is_tree());
    found.map(|entry| entry.oid.to_owned())
}
