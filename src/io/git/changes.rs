//! Which files differ between two trees, with their bytes.

use std::cmp::Ordering;

use gix::{
    ObjectId, Repository,
    objs::{TreeRefIter, tree::EntryRef},
};

use super::tree::{MAX_DEPTH, MAX_FILE, TreeError};

/// One file's bytes before and after a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Path from the root of the environment repository.
    pub path: String,
    /// Before; `None` when the commit adds it.
    pub old: Option<Vec<u8>>,
    /// After; `None` when the commit removes it.
    pub new: Option<Vec<u8>>,
}

/// The files below `prefix` that differ between two trees; with `only` (components below `prefix`) just that one.
///
/// # Errors
/// [`TreeError::Object`] for an object that is missing or broken.
pub(super) fn between(
    repository: &Repository,
    old: Option<ObjectId>,
    new: Option<ObjectId>,
    prefix: &str,
    only: Option<&[String]>,
) -> Result<Vec<FileChange>, TreeError> {
    let mut changes = Changes { repository, found: Vec::new() };
    changes.trees(old, new, prefix, only, 0)?;
    Ok(changes.found)
}

struct Changes<'a> {
    repository: &'a Repository,
    found: Vec<FileChange>,
}

impl Changes<'_> {
    fn trees(
        &mut self,
        old: Option<ObjectId>,
        new: Option<ObjectId>,
        prefix: &str,
        only: Option<&[String]>,
        depth: usize,
    ) -> Result<(), TreeError> {
        if depth > MAX_DEPTH {
            return Err(TreeError::Limit(prefix.to_owned(), format!("{MAX_DEPTH} levels of folders")));
        }
        let (old, new) = (self.data(old)?, self.data(new)?);
        // Both are in Git's order of names, so one walk over both finds what differs.
        let (mut old, mut new) = (entries(&old).peekable(), entries(&new).peekable());
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
            self.entry(old, new, prefix, only, depth)?;
        }
    }

    fn entry(
        &mut self,
        old: Option<EntryRef<'_>>,
        new: Option<EntryRef<'_>>,
        prefix: &str,
        only: Option<&[String]>,
        depth: usize,
    ) -> Result<(), TreeError> {
        let (Some(either), old_id, new_id) = (old.or(new), old.map(|old| old.oid), new.map(|new| new.oid)) else {
            return Ok(());
        };
        if old_id == new_id {
            return Ok(());
        }
        let rest = match only {
            Some([first, rest @ ..]) if either.filename == first.as_str() => Some(rest),
            Some(_) => return Ok(()),
            None => None,
        };
        let path = format!("{prefix}/{}", either.filename);
        let (old_id, new_id) = (old_id.map(ToOwned::to_owned), new_id.map(ToOwned::to_owned));
        if either.mode.is_tree() {
            return self.trees(old_id, new_id, &path, rest, depth + 1);
        }
        if rest.is_some_and(|rest| !rest.is_empty()) || !either.mode.is_blob() {
            return Ok(());
        }
        let (old, new) = (self.blob(old_id)?, self.blob(new_id)?);
        self.found.push(FileChange { path, old, new });
        Ok(())
    }

    fn data(&self, tree: Option<ObjectId>) -> Result<Vec<u8>, TreeError> {
        match tree {
            Some(id) => Ok(std::mem::take(&mut self.repository.find_tree(id)?.data)),
            None => Ok(Vec::new()),
        }
    }

    /// A file's bytes; of one that is larger than the budget none.
    fn blob(&self, id: Option<ObjectId>) -> Result<Option<Vec<u8>>, TreeError> {
        let Some(id) = id else {
            return Ok(None);
        };
        if self.repository.find_header(id)?.size() > MAX_FILE {
            return Ok(Some(Vec::new()));
        }
        Ok(Some(self.repository.find_blob(id)?.take_data()))
    }
}

fn entries(data: &[u8]) -> impl Iterator<Item = Result<EntryRef<'_>, gix::Error>> {
    TreeRefIter::from_bytes(data, gix::hash::Kind::Sha1)
}
