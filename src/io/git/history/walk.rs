//! The commits that change lockfiles, along first parents: a stretch of commits at a time, so that what they need is read
//! together. Stretches are dealt out to several readers, and visited in order while further ones are read.

mod reader;

use std::{
    ops::ControlFlow,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
};

use gix::ObjectId;

use super::{
    super::GitError,
    Query,
    ledger::{Ledger, Parent, Step},
};
use crate::model::history::{LockCommit, WalkEnd};
use reader::{Reader, Stretch};

/// How many commits the first stretch has, and how many the longest: who wants only the latest does not wait for more.
const STRETCH: (usize, usize) = (32, 1024);

/// How many threads read.
const READERS: usize = 2;

/// How many stretches wait for each reader, and how many that it has read wait to be visited.
const AHEAD: usize = 1;

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
        let reader = Reader::new(self, query)?;
        let first = self.step_here(self.tip.0)?;
        thread::scope(|scope| {
            let (mut dealt, mut read) = (Vec::new(), Vec::new());
            for mut reader in (0..READERS).map(|_| reader.fork()) {
                let (sender, edges) = sync_channel::<Vec<Edge>>(AHEAD);
                let (result, receiver) = sync_channel::<Stretch>(AHEAD);
                scope.spawn(move || edges.into_iter().try_for_each(|edges| result.send(reader.commits(edges))));
                dealt.push(sender);
                read.push(receiver);
            }
            let visitor = scope.spawn(move || visit_all(&read, visit));
            let end = self.deal(first, &dealt);
            drop(dealt);
            match visitor.join() {
                Ok(Ok(ControlFlow::Continue(()))) => end,
                Ok(Ok(ControlFlow::Break(()))) => Ok(WalkEnd::Stopped),
                Ok(Err(error)) => Err(error),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Deals out stretch after stretch, until the history ends or nobody wants more.
    fn deal(&self, first: Step, readers: &[SyncSender<Vec<Edge>>]) -> Result<WalkEnd, GitError> {
        let (mut first, mut length) = (first, STRETCH.0);
        for reader in readers.iter().cycle() {
            let (edges, rest) = self.stretch(first, length);
            if reader.send(edges).is_err() {
                break;
            }
            first = match rest {
                Rest::More(step) => step,
                Rest::End(end) => return end,
            };
            length = (length * 2).min(STRETCH.1);
        }
        Ok(WalkEnd::Stopped)
    }

    fn stretch(&self, first: Step, length: usize) -> (Vec<Edge>, Rest) {
        let mut edges = Vec::new();
        let mut step = first;
        while edges.len() < length {
            let parent = match self.parent(&step) {
                Ok(Parent::Here(parent)) => parent,
                Ok(Parent::None) => {
                    edges.push(Edge { step, before: None });
                    return (edges, Rest::End(Ok(WalkEnd::Start)));
                }
                // What this commit changed is not known.
                Ok(Parent::Cut) => return (edges, Rest::End(Ok(WalkEnd::Cut))),
                Err(error) => return (edges, Rest::End(Err(error))),
            };
            edges.push(Edge { step, before: Some(parent.tree) });
            step = parent;
        }
        (edges, Rest::More(step))
    }
}

/// Visits what the readers have read, which take turns. One that has no more when it is its turn was the last.
fn visit_all(
    readers: &[Receiver<Stretch>],
    visit: &mut (dyn FnMut(LockCommit) -> ControlFlow<()> + Send),
) -> Result<ControlFlow<()>, GitError> {
    let stretches = readers.iter().cycle().map_while(|reader| reader.recv().ok());
    for commit in stretches.flatten() {
        if visit(commit?).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}
