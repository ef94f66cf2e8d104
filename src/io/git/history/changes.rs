//! Which files differ between two trees.

use std::cmp::Ordering;

use gix::{
    ObjectId,
    objs::{Kind, TreeRefIter, tree::EntryRef},
};

use super::{
    super::tree::{MAX_DEPTH, TreeError},
    frontier::Frontier,
};
use crate::model::history::FileChange;

/// A file that differs, by the identities of its contents.
pub(super) struct Changed {
    /// Path from the root of the environment repository.
    pub(super) path: String,
    /// Before; none when it was not there.
    old: Option<ObjectId>,
    /// After; none when it is not there.
    new: Option<ObjectId>,
}

/// Compares trees of one repository.
pub(super) struct Comparison<'a> {
    pub(super) repository: &'a gix::Repository,
    pub(super) frontier: &'a mut Frontier,
    /// Only this file, as components below the trees that are compared; otherwise all.
    pub(super) only: Option<&'a [String]>,
}

impl Comparison<'_> {
    /// The files that differ between two trees, whose place is `prefix`. Equal folders are not looked into.
    ///
    /// # Errors
    /// [`TreeError::Object`] for an object that is missing or broken.
    pub(super) fn files(
        &mut self,
        old: Option<ObjectId>,
        new: Option<ObjectId>,
        prefix: &str,
    ) -> Result<Vec<Changed>, TreeError> {
        let mut found = Vec::new();
        let only = self.only;
        self.trees((old, new), prefix, only, 0, &mut found)?;
        Ok(found)
    }

    /// The bytes of files that differ.
    ///
    /// # Errors
    /// [`TreeError::Object`] for an object that is missing or broken.
    pub(super) fn contents(&mut self, files: Vec<Changed>) -> Result<Vec<FileChange>, TreeError> {
        let mut contents = Vec::with_capacity(files.len());
        for Changed { path, old, new } in files {
            let new = new.map(|id| self.frontier.last(self.repository, id, Kind::Blob)).transpose()?;
            let old = old.map(|id| self.frontier.first(self.repository, id, Kind::Blob)).transpose()?;
            contents.push(FileChange { path, old, new });
        }
        Ok(contents)
    }

    fn trees(
        &mut self,
        (old, new): (Option<ObjectId>, Option<ObjectId>),
        prefix: &str,
        only: Option<&[String]>,
        depth: usize,
        found: &mut Vec<Changed>,
    ) -> Result<(), TreeError> {
        if depth > MAX_DEPTH {
            return Err(TreeError::Limit(prefix.to_owned(), format!("{MAX_DEPTH} levels of folders")));
        }
        let new = new.map(|id| self.frontier.last(self.repository, id, Kind::Tree)).transpose()?;
        let old = old.map(|id| self.frontier.first(self.repository, id, Kind::Tree)).transpose()?;
        // Both are in Git's order of names, so one walk over both finds what differs.
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
            self.entry((old, new), prefix, only, depth, found)?;
        }
    }

    fn entry(
        &mut self,
        (old, new): (Option<EntryRef<'_>>, Option<EntryRef<'_>>),
        prefix: &str,
        only: Option<&[String]>,
        depth: usize,
        found: &mut Vec<Changed>,
    ) -> Result<(), TreeError> {
        let (Some(either), old, new) = (old.or(new), old.map(|old| old.oid), new.map(|new| new.oid)) else {
            return Ok(());
        };
        if old == new {
            return Ok(());
        }
        let rest = match only {
            Some([first, rest @ ..]) if either.filename == first.as_str() => Some(rest),
            Some(_) => return Ok(()),
            None => None,
        };
        let path = format!("{prefix}/{}", either.filename);
        let (old, new) = (old.map(ToOwned::to_owned), new.map(ToOwned::to_owned));
        if either.mode.is_tree() {
            return self.trees((old, new), &path, rest, depth + 1, found);
        }
        if rest.is_none_or(<[String]>::is_empty) && either.mode.is_blob() {
            found.push(Changed { path, old, new });
        }
        Ok(())
    }
}

fn entries(data: &[u8]) -> impl Iterator<Item = Result<EntryRef<'_>, gix::Error>> {
    TreeRefIter::from_bytes(data, gix::hash::Kind::Sha1)
}
