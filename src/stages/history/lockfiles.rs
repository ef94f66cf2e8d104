//! Lockfiles of the past: each is parsed once, although two neighbours need it.

use std::{collections::HashMap, ops::Range, sync::Arc};

use super::quick;
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

/// The images of a lockfile of the past, in order of their names. Those that did not change are shared with its
/// neighbours.
pub struct Images(pub(super) Vec<Image>);

/// One of them.
pub(super) struct Image {
    pub(super) name: Name,
    pub(super) entry: Arc<LockedImage>,
    /// Where it stands in the file's bytes; empty where that is not known.
    pub(super) place: Range<usize>,
}

impl Images {
    /// The image of that name.
    pub fn get(&self, name: &Name) -> Option<&Arc<LockedImage>> {
        self.0.iter().find(|image| image.name == *name).map(|image| &image.entry)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, &LockedImage)> {
        self.0.iter().map(|image| (&image.name, &*image.entry))
    }
}

impl From<Lockfile> for Images {
    fn from(lockfile: Lockfile) -> Self {
        let image = |(name, entry)| Image { name, entry: Arc::new(entry), place: 0..0 };
        Self(lockfile.images.into_iter().map(image).collect())
    }
}

/// Both sides of the last change of each path: one commit's old file is its neighbour's new one, whichever comes first.
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
        let images = match quick::read(bytes, beside) {
            Some(images) => images,
            None => file::parse(path, bytes)?.into(),
        };
        Ok(Self { bytes: bytes.clone(), images: Arc::new(images) })
    }
}

/// Reads one lockfile as [`file::parse`] does, faster where it is as larder writes it.
///
/// # Errors
/// Those of [`file::parse`].
pub fn parse(path: &str, bytes: &[u8]) -> Result<Lockfile, Failure> {
    let Some(images) = quick::read(bytes, None) else { return file::parse(path, bytes) };
    let images = images.0.into_iter().map(|image| (image.name, Arc::unwrap_or_clone(image.entry)));
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
