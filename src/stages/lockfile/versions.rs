//! The versions of lockfiles in a history: each is parsed once, although two neighbors need it.

use std::{collections::HashMap, sync::Arc};

use super::{Images, fast, read};
use crate::model::{
    failure::{Failure, Problem},
    history::{CommitInfo, FileChange},
};

/// A side of a change: none where the file is not there, a failure where it cannot be read.
pub type Side = Result<Option<Arc<Images>>, Failure>;

/// Both sides of the last change of each path: one commit's old file is its neighbor's new one, whichever comes first.
#[derive(Default)]
pub struct Lockfiles(HashMap<String, Vec<Parsed>>);

/// A lockfile's bytes, and what was read in them.
#[derive(Clone)]
struct Parsed {
    bytes: Arc<[u8]>,
    images: Arc<Images>,
}

impl Lockfiles {
    /// The lockfile before and after a change.
    pub fn both(&mut self, change: &FileChange) -> (Side, Side) {
        let known = self.0.remove(&change.path).unwrap_or_default();
        let mut next = Vec::with_capacity(2);
        let mut side = |bytes: &Option<Arc<[u8]>>| -> Side {
            let Some(bytes) = bytes else { return Ok(None) };
            let same = |known: &&Parsed| Arc::ptr_eq(&known.bytes, bytes) || known.bytes == *bytes;
            let parsed = match known.iter().find(same) {
                Some(parsed) => parsed.clone(),
                None => Parsed::read(&change.path, bytes, next.last().or(known.first()))?,
            };
            let images = parsed.images.clone();
            next.push(parsed);
            Ok(Some(images))
        };
        let sides = (side(&change.old), side(&change.new));
        self.0.insert(change.path.clone(), next);
        sides
    }
}

impl Parsed {
    fn read(path: &str, bytes: &Arc<[u8]>, beside: Option<&Self>) -> Result<Self, Failure> {
        let beside = beside.map(|beside| (&*beside.bytes, &*beside.images));
        let images = match fast::read(bytes, beside) {
            Some(images) => images,
            None => read::parse(path, bytes)?.into(),
        };
        Ok(Self { bytes: bytes.clone(), images: Arc::new(images) })
    }
}

/// The problems of a lockfile of the past: it is passed over, so there is nothing to be done about them.
pub fn in_commit(failure: &Failure, commit: &CommitInfo) -> Vec<Problem> {
    let short = commit.id.get(..12).unwrap_or(&commit.id);
    let problem = |problem: &Problem| Problem {
        message: format!("passed over in commit {short}: {}", problem.message),
        hint: None,
        ..problem.clone()
    };
    failure.problems().iter().map(problem).collect()
}
