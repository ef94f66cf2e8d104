//! Lockfiles of the past: each is parsed once, although two neighbours need it.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use super::quick::{self, Written};
use crate::{
    model::{
        failure::{Failure, Problem},
        history::{CommitInfo, FileChange},
        lock::{LockedImage, Lockfile},
        name::Name,
    },
    stages::lock::file,
};

/// A side of a change: none where the file is not there, a failure where it cannot be read.
pub type Side = Result<Option<Arc<Images>>, Failure>;

/// The images of a lockfile of the past, by name. Those that did not change are shared with its neighbours.
pub type Images = BTreeMap<Name, Arc<LockedImage>>;

/// Both sides of the last change of each path: one commit's old file is its neighbour's new one, whichever comes first.
#[derive(Default)]
pub struct Lockfiles(HashMap<String, Vec<Parsed>>);

/// A lockfile's bytes, what was read in them, and where.
#[derive(Clone)]
struct Parsed {
    bytes: Arc<[u8]>,
    written: Arc<Written>,
    past: Arc<Images>,
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
            let past = parsed.past.clone();
            next.push(parsed);
            Ok(Some(past))
        };
        let sides = (side(&change.old), side(&change.new));
        self.0.insert(change.path.clone(), next);
        sides
    }
}

impl Parsed {
    fn read(path: &str, bytes: &Arc<[u8]>, beside: Option<&Self>) -> Result<Self, Failure> {
        let beside = beside.map(|beside| (&*beside.bytes, &*beside.written));
        let (written, past) = match quick::read(bytes, beside) {
            Some(written) => {
                let past = written.iter().map(|(name, image, _)| (name.clone(), image.clone())).collect();
                (written, past)
            }
            None => {
                let images = file::parse(path, bytes)?.images;
                (Written::new(), images.into_iter().map(|(name, image)| (name, Arc::new(image))).collect())
            }
        };
        Ok(Self { bytes: bytes.clone(), written: Arc::new(written), past: Arc::new(past) })
    }
}

/// Reads one lockfile as [`file::parse`] does, faster where it is as larder writes it.
///
/// # Errors
/// Those of [`file::parse`].
pub fn parse(path: &str, bytes: &[u8]) -> Result<Lockfile, Failure> {
    let Some(written) = quick::read(bytes, None) else { return file::parse(path, bytes) };
    let images = written.into_iter().map(|(name, image, _)| (name, Arc::unwrap_or_clone(image)));
    Ok(Lockfile { images: images.collect() })
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
