//! Files that a sparse checkout leaves out of a work tree: they are in Git, so they are not deleted.
//! <https://git-scm.com/docs/git-sparse-checkout>

use std::{collections::BTreeMap, path::Path};

use gix::{
    ObjectId, Repository,
    index::entry::{Flags, Mode},
    objs::{TreeRefIter, tree::EntryKind},
};

use super::local;
use crate::{
    io::walk::{MAX_DEPTH, MAX_FILE, ROOTS},
    model::snapshot::{Entry, is_read},
};

/// How many files and directories are read at most.
const MOST: usize = 200_000;

/// The files of the environment repository in the directory `root` that are in the index of the Git repository around it,
/// and marked as not checked out. Nothing where there is no Git repository.
///
/// # Errors
/// When the index cannot be read, in words. A file that is not there, as in a partial clone, is [`Entry::Unread`].
pub fn left_out(root: &Path) -> Result<BTreeMap<String, Entry>, String> {
    find(root).map_err(|error| local::text(&error))
}

struct Reader<'a> {
    repository: &'a Repository,
    files: BTreeMap<String, Entry>,
    /// How many more files and directories are read.
    left: usize,
}

fn find(root: &Path) -> Result<BTreeMap<String, Entry>, gix::Error> {
    let Some(work_tree) = root.ancestors().find(|directory| directory.join(".git").exists()) else {
        return Ok(BTreeMap::new());
    };
    let prefix: Vec<_> =
        root.strip_prefix(work_tree).into_iter().flatten().map(|part| part.to_string_lossy()).collect();
    let prefix: String = prefix.iter().map(|part| format!("{part}/")).collect();
    let open = gix::open::Options::isolated().strict_config(false);
    let repository: Repository = open.open(work_tree)?.into();
    let Some(index) = repository.try_index()? else { return Ok(BTreeMap::new()) };
    let mut reader = Reader { repository: &repository, files: BTreeMap::new(), left: MOST };
    for entry in index.entries().iter().filter(|entry| entry.flags.contains(Flags::SKIP_WORKTREE)) {
        let path = entry.path(&index).to_string();
        let Some(path) = path.strip_prefix(&prefix) else { continue };
        let path = path.trim_end_matches('/');
        if path.split('/').next().is_some_and(|name| ROOTS.contains(&name)) {
            let kind = match entry.mode {
                Mode::SYMLINK => EntryKind::Link,
                Mode::COMMIT => EntryKind::Commit,
                Mode::DIR => EntryKind::Tree,
                _ => EntryKind::Blob,
            };
            reader.read(path.to_owned(), kind, entry.id);
        }
    }
    Ok(reader.files)
}

impl Reader<'_> {
    /// Reads a file, or all files below a directory of which a sparse index has the tree alone.
    fn read(&mut self, path: String, kind: EntryKind, id: ObjectId) {
        let unread = |why: &str| Entry::Unread(format!("a sparse checkout leaves it out, and {why}"));
        let absent = |error: &gix::Error| unread(&format!("Git cannot read it: {}", local::text(error)));
        if self.left == 0 || path.split('/').count() > MAX_DEPTH {
            self.files.insert(path, unread("it is one of too many"));
            return;
        }
        self.left -= 1;
        let entry = match kind {
            EntryKind::Tree => match self.children(id) {
                Ok(children) => {
                    children.into_iter().for_each(|(name, kind, id)| self.read(format!("{path}/{name}"), kind, id));
                    return;
                }
                Err(error) => absent(&error),
            },
            EntryKind::Commit => Entry::Submodule,
            _ if kind != EntryKind::Link && !is_read(&path) => return,
            EntryKind::Blob | EntryKind::BlobExecutable | EntryKind::Link => {
                self.file(kind, id).unwrap_or_else(|error| absent(&error))
            }
        };
        self.files.insert(path, entry);
    }

    fn children(&self, id: ObjectId) -> Result<Vec<(String, EntryKind, ObjectId)>, gix::Error> {
        let tree = self.repository.find_tree(id)?.take_data();
        let entries = TreeRefIter::from_bytes(&tree, gix::hash::Kind::Sha1).map(|entry| {
            let entry = entry?;
            Ok((entry.filename.to_string(), entry.mode.kind(), entry.oid.to_owned()))
        });
        entries.collect()
    }

    fn file(&self, kind: EntryKind, id: ObjectId) -> Result<Entry, gix::Error> {
        let size = self.repository.find_header(id)?.size();
        if size > MAX_FILE {
            return Ok(Entry::TooLarge(size));
        }
        let bytes = self.repository.find_object(id)?.detach().data;
        Ok(match kind {
            EntryKind::Link => Entry::Link(String::from_utf8_lossy(&bytes).into_owned()),
            _ => Entry::File(bytes.into()),
        })
    }
}
