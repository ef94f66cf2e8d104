//! The files of an environment repository in a commit's tree.

use std::{collections::BTreeMap, sync::Arc};

use gix::{
    ObjectId, Repository,
    bstr::ByteSlice as _,
    objs::{
        CommitRefIter, Kind, TreeRefIter,
        tree::{EntryKind, EntryRef},
    },
};

use crate::{
    io::walk::{self, Child, ChildKind, WalkError},
    model::{
        snapshot::{Entry, Origin, Snapshot},
        text::is_unseen,
    },
};

use super::{CommitId, GitError, local};

/// The longest target of a symbolic link that is followed, in bytes; as Linux has it.
const MAX_TARGET: u64 = 4096;

/// Why a tree could not be read: an object is not there or broken, or a budget is passed.
pub(super) enum TreeError {
    /// An object that is missing or broken.
    Object(String),
    /// A budget: where, and which.
    Limit(String, String),
    /// Something that [`GitError`] has a word for.
    Git(GitError),
}

impl From<gix::Error> for TreeError {
    fn from(error: gix::Error) -> Self {
        if error.classify().is_resource_exhausted() {
            return Self::Limit(String::new(), local::too_large());
        }
        Self::Object(local::text(&error))
    }
}

/// The components of a path from a repository's root.
///
/// # Errors
/// [`GitError::Path`] for an absolute path, `..`, `.git` and control characters.
pub(super) fn components(path: &str) -> Result<Vec<String>, GitError> {
    let refuse = |problem| GitError::Path { path: super::redact::printable(path), problem };
    if path.starts_with('/') {
        return Err(refuse("has to start at the repository's root, without a slash"));
    }
    let components = path.split('/').filter(|component| !matches!(*component, "" | "."));
    components
        .map(|component| match component {
            ".." => Err(refuse("leaves the repository")),
            _ if component.contains(|c| is_unseen(c) || c == '\\') => Err(refuse("holds a forbidden character")),
            _ if component.eq_ignore_ascii_case(".git") => Err(refuse("is Git's own")),
            _ => Ok(component.to_owned()),
        })
        .collect()
}

/// What a file means that is not in the repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absent {
    /// The repository is damaged, or was not fetched with this file.
    Missing,
    /// The file was left out when the repository was fetched, as it is larger than [`walk::MAX_FILE`].
    TooLarge,
}

/// Reads the files of `commit` below `path`.
///
/// # Errors
/// [`TreeError`].
pub(super) fn snapshot(
    repository: &Repository,
    commit: CommitId,
    path: &[String],
    absent: Absent,
) -> Result<Snapshot, TreeError> {
    let bytes = local::read(repository, commit.0, Kind::Commit)?;
    let root = CommitRefIter::from_bytes(&bytes, gix::hash::Kind::Sha1).tree_id()?;
    let files = match directory(repository, root, path)? {
        Some(root) => walk::files(&Objects { repository, absent }, &root).map_err(|error| match error {
            WalkError::Source(error) => error,
            WalkError::Limit(path, limit) => TreeError::Limit(path, limit),
            WalkError::Name(path, name) => {
                TreeError::Object(format!("the directory `{path}` holds an entry with the name {name:?}"))
            }
        })?,
        None => BTreeMap::new(),
    };
    Ok(Snapshot { origin: Origin::Commit(commit.to_string()), files })
}

/// The tree of the environment repository.
fn directory(repository: &Repository, root: ObjectId, path: &[String]) -> Result<Option<ObjectId>, TreeError> {
    let problem = match find(repository, root, path)? {
        Some((EntryKind::Tree, id)) => return Ok(Some(id)),
        None => return Ok(None),
        Some((EntryKind::Commit, _)) => "is in a submodule, which larder does not follow",
        Some(_) => "is not a directory",
    };
    Err(TreeError::Git(GitError::Path { path: path.join("/"), problem }))
}

/// The object of a path below the tree `root`, with its kind.
pub(super) fn find(
    repository: &Repository,
    root: ObjectId,
    path: &[String],
) -> Result<Option<(EntryKind, ObjectId)>, gix::Error> {
    let mut found = (EntryKind::Tree, root);
    for component in path {
        if found.0 != EntryKind::Tree {
            return Ok(None);
        }
        let tree = local::read(repository, found.1, Kind::Tree)?;
        let mut entries = TreeRefIter::from_bytes(&tree, gix::hash::Kind::Sha1).filter_map(Result::ok);
        let Some(entry) = entries.find(|entry| entry.filename == component.as_str()) else {
            return Ok(None);
        };
        found = (entry.mode.kind(), entry.oid.to_owned());
    }
    Ok(Some(found))
}

/// Trees and blobs as directories and files.
struct Objects<'a> {
    repository: &'a Repository,
    absent: Absent,
}

impl walk::Source for Objects<'_> {
    type Id = ObjectId;
    type Error = TreeError;

    fn children(&self, directory: &ObjectId) -> Result<Vec<Child<ObjectId>>, TreeError> {
        let tree = local::read(self.repository, *directory, Kind::Tree)?;
        let child = |entry: Result<EntryRef<'_>, gix::Error>| {
            let entry = entry?;
            let kind = match entry.mode.kind() {
                EntryKind::Tree => ChildKind::Directory,
                EntryKind::Commit => ChildKind::Submodule,
                EntryKind::Link => ChildKind::Link,
                EntryKind::Blob | EntryKind::BlobExecutable => ChildKind::File,
            };
            Ok(Child { name: entry.filename.to_str_lossy().into_owned(), kind, id: entry.oid.to_owned() })
        };
        TreeRefIter::from_bytes(&tree, gix::hash::Kind::Sha1).map(child).collect()
    }

    fn size(&self, file: &ObjectId) -> Result<u64, TreeError> {
        match self.repository.try_find_header(*file)? {
            Some(header) => Ok(header.size()),
            None if self.absent == Absent::TooLarge => Ok(walk::MAX_FILE + 1),
            None => Err(TreeError::Object(format!("the file {file} is missing"))),
        }
    }

    fn read(&self, file: &ObjectId) -> Result<Entry, TreeError> {
        Ok(Entry::File(Arc::from(local::read(self.repository, *file, Kind::Blob)?)))
    }

    fn target(&self, link: &ObjectId) -> Result<String, TreeError> {
        if self.size(link)? > MAX_TARGET {
            return Ok(String::new());
        }
        Ok(String::from_utf8_lossy(&local::read(self.repository, *link, Kind::Blob)?).into_owned())
    }
}
