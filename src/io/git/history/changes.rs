//! Which files differ between two trees, for many pairs of trees at once: level by level, so that each level's trees are
//! read together.

use std::cmp::Ordering;

use gix::{
    ObjectId,
    objs::{Kind, TreeRefIter, tree::EntryRef},
};

use super::{
    super::tree::TreeError,
    objects::{Found, Objects, get},
};
use crate::model::history::FileChange;

/// Lockfiles are in `lock/<tenant>/`. What is deeper is not one, and there may be any amount of it.
const LEVELS: usize = 2;

/// Two trees in the same place; none where there is no directory.
pub(super) type Pair = (Option<ObjectId>, Option<ObjectId>);

/// A file that differs, by the identities of its contents.
pub(super) struct Changed {
    /// Path from the root of the environment repository.
    pub(super) path: String,
    /// Before and after; none when it is not there.
    sides: Pair,
}

/// Two directories that differ.
struct Folders<'p> {
    /// The number of the pair that they belong to.
    number: usize,
    sides: Pair,
    path: String,
    /// Only this file in them, as components; otherwise all.
    only: Option<&'p [String]>,
}

/// The files that differ between the trees of each pair, whose place is `root`. Equal directories are not looked into.
///
/// A pair fails with [`TreeError::Object`] when an object is missing or broken.
pub(super) fn files(
    objects: &mut Objects,
    pairs: Vec<Result<Pair, TreeError>>,
    root: &str,
    only: Option<&[String]>,
) -> Vec<Result<Vec<Changed>, TreeError>> {
    let mut level = Vec::new();
    let mut results: Vec<Result<Vec<Changed>, TreeError>> = Vec::with_capacity(pairs.len());
    for (number, pair) in pairs.into_iter().enumerate() {
        if let Ok(sides) = pair
            && sides.0 != sides.1
        {
            level.push(Folders { number, sides, path: root.to_owned(), only });
        }
        results.push(pair.map(|_| Vec::new()));
    }
    for _ in 0..LEVELS {
        let trees = objects.read(level.iter().flat_map(|folders| ids(folders.sides)), Kind::Tree);
        let mut next = Vec::new();
        for folders in level {
            let Some(Ok(changed)) = results.get_mut(folders.number) else { continue };
            if let Err(error) = folders.compare(&trees, changed, &mut next) {
                results[folders.number] = Err(error);
            }
        }
        level = next;
    }
    results
}

/// The bytes of files that differ, for each of several comparisons.
pub(super) fn contents(
    objects: &mut Objects,
    changed: Vec<Result<Vec<Changed>, TreeError>>,
) -> Vec<Result<Vec<FileChange>, TreeError>> {
    let all = changed.iter().flatten().flatten();
    let blobs = objects.read(all.flat_map(|changed| ids(changed.sides)), Kind::Blob);
    let side = |id: Option<ObjectId>| id.map(|id| get(&blobs, id)).transpose();
    let read = |Changed { path, sides: (old, new) }| Ok(FileChange { path, old: side(old)?, new: side(new)? });
    changed.into_iter().map(|changed| changed?.into_iter().map(read).collect()).collect()
}

fn ids((old, new): Pair) -> impl Iterator<Item = ObjectId> {
    old.into_iter().chain(new)
}

impl<'p> Folders<'p> {
    /// Both are in Git's order of names, so one walk over both finds what differs.
    fn compare(&self, trees: &Found, changed: &mut Vec<Changed>, next: &mut Vec<Self>) -> Result<(), TreeError> {
        let data = |id: Option<ObjectId>| id.map(|id| get(trees, id)).transpose();
        let (old, new) = (data(self.sides.0)?, data(self.sides.1)?);
        let mut old = entries(old.as_deref().unwrap_or_default()).peekable();
        let mut new = entries(new.as_deref().unwrap_or_default()).peekable();
        loop {
            let order = match (old.peek(), new.peek()) {
                (None, None) => return Ok(()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(Ok(old)), Some(Ok(new))) => old.cmp(new),
                (Some(Err(_)), _) => Ordering::Less,
                (_, Some(Err(_))) => Ordering::Greater,
            };
            let old = if order.is_le() { old.next().transpose()? } else { None };
            let new = if order.is_ge() { new.next().transpose()? } else { None };
            self.entry(old, new, changed, next);
        }
    }

    fn entry(
        &self,
        old: Option<EntryRef<'_>>,
        new: Option<EntryRef<'_>>,
        changed: &mut Vec<Changed>,
        next: &mut Vec<Self>,
    ) {
        let Some(either) = old.or(new) else { return };
        if old.map(|old| old.oid) == new.map(|new| new.oid) {
            return;
        }
        let only = match self.only {
            Some([first, rest @ ..]) if either.filename == first.as_str() => Some(rest),
            Some(_) => return,
            None => None,
        };
        let sides = (old.map(|old| old.oid.to_owned()), new.map(|new| new.oid.to_owned()));
        let path = format!("{}/{}", self.path, either.filename);
        if either.mode.is_tree() {
            next.push(Self { number: self.number, sides, path, only });
        } else if only.is_none_or(<[String]>::is_empty) && either.mode.is_blob() {
            changed.push(Changed { path, sides });
        }
    }
}

fn entries(data: &[u8]) -> impl Iterator<Item = Result<EntryRef<'_>, gix::Error>> {
    TreeRefIter::from_bytes(data, gix::hash::Kind::Sha1)
}
