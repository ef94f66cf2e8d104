//! Lockfiles of the past: each is parsed once, although two neighbours need it.

use std::{collections::HashMap, sync::Arc};

use super::quick;
use crate::{
    model::{
        failure::{Failure, Problem},
        history::{CommitInfo, FileChange},
        lock::Lockfile,
    },
    stages::lock::file,
};

/// A side of a change: none where the file is not there, a failure where it cannot be read.
pub type Side = Result<Option<Arc<Lockfile>>, Failure>;

/// Both sides of the last change of each path: one commit's old file is its neighbour's new one, whichever comes first.
#[derive(Default)]
pub struct Lockfiles(HashMap<String, Vec<Parsed>>);

/// The bytes of a lockfile and what they say.
type Parsed = (Arc<[u8]>, Arc<Lockfile>);

impl Lockfiles {
    /// The lockfile before and after a change.
    pub fn both(&mut self, change: &FileChange) -> (Side, Side) {
        let known = self.0.remove(&change.path).unwrap_or_default();
        let mut next = Vec::with_capacity(2);
        let mut side = |bytes: &Option<Arc<[u8]>>| -> Side {
            let Some(bytes) = bytes else { return Ok(None) };
            let same = |(known, _): &&(Arc<[u8]>, _)| Arc::ptr_eq(known, bytes) || known == bytes;
            let lockfile = match known.iter().find(same) {
                Some((_, lockfile)) => lockfile.clone(),
                None => Arc::new(parse(&change.path, bytes)?),
            };
            next.push((bytes.clone(), lockfile.clone()));
            Ok(Some(lockfile))
        };
        let sides = (side(&change.old), side(&change.new));
        self.0.insert(change.path.clone(), next);
        sides
    }
}

/// Reads a lockfile as [`file::parse`] does, faster where it is as larder writes it.
///
/// # Errors
/// Those of [`file::parse`].
pub fn parse(path: &str, bytes: &[u8]) -> Result<Lockfile, Failure> {
    quick::read(bytes).map_or_else(|| file::parse(path, bytes), Ok)
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
