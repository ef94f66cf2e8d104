//! The files of an environment repository in a commit's tree.

use std::{collections::BTreeMap, sync::Arc};

use gix::{
    ObjectId, Repository,
    bstr::ByteSlice as _,
    objs::{TreeRefIter, tree::EntryKind},
};

use crate::{
    io::links::{Node, is_followed, resolve},
    model::{
        snapshot::{Entry, Origin, Snapshot},
        text::is_unseen,
    },
};

use super::{CommitId, GitError};

/// What of an environment repository is read.
pub(crate) const ROOTS: [&str; 4] = ["larder.yaml", "environments", "templates", "lock"];

/// The largest file that is read, in bytes. A larger one is [`Entry::TooLarge`].
pub(crate) const MAX_FILE: u64 = 1024 * 1024;

/// The most files of a snapshot.
pub(crate) const MAX_FILES: usize = 200_000;

/// The most bytes of a snapshot's files.
pub(crate) const MAX_BYTES: u64 = 512 * 1024 * 1024;

/// The deepest folder that is read.
pub(crate) const MAX_DEPTH: usize = 32;

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
        Self::Object(super::local::text(&error))
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
    /// The file was left out when the repository was fetched, as it is larger than [`MAX_FILE`].
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
    let mut reader = Reader { repository, absent, files: BTreeMap::new(), links: Vec::new(), root: None, bytes: 0 };
    let root = repository.find_commit(commit.0)?.tree_id()?.detach();
    reader.root = reader.folder(root, path)?;
    if let Some(root) = reader.root {
        for entry in reader.entries(root, "")? {
            if ROOTS.contains(&entry.name.as_str()) {
                reader.entry(entry.name.clone(), &entry, 0)?;
            }
        }
    }
    reader.follow_links()?;
    Ok(Snapshot { origin: Origin::Commit(commit.to_string()), files: reader.files })
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
        let tree = repository.find_tree(found.1)?;
        let entry = tree.iter().filter_map(Result::ok).find(|entry| entry.filename() == component.as_str());
        let Some(entry) = entry else {
            return Ok(None);
        };
        found = (entry.mode().kind(), entry.object_id());
    }
    Ok(Some(found))
}

/// One entry of a tree.
struct TreeEntry {
    name: String,
    kind: EntryKind,
    id: ObjectId,
}

struct Reader<'a> {
    repository: &'a Repository,
    absent: Absent,
    files: BTreeMap<String, Entry>,
    links: Vec<(String, String)>,
    root: Option<ObjectId>,
    bytes: u64,
}

impl Reader<'_> {
    fn folder(&self, root: ObjectId, path: &[String]) -> Result<Option<ObjectId>, TreeError> {
        match find(self.repository, root, path)? {
            Some((EntryKind::Tree, id)) => Ok(Some(id)),
            None => Ok(None),
            Some((EntryKind::Commit, _)) => Err(TreeError::Git(GitError::Path {
                path: path.join("/"),
                problem: "is in a submodule, which larder does not follow",
            })),
            Some(_) => Err(TreeError::Git(GitError::Path { path: path.join("/"), problem: "is no folder" })),
        }
    }

    fn entries(&self, tree: ObjectId, path: &str) -> Result<Vec<TreeEntry>, TreeError> {
        let tree = self.repository.find_tree(tree)?;
        let mut entries = Vec::new();
        for entry in TreeRefIter::from_bytes(&tree.data, gix::hash::Kind::Sha1) {
            let entry = entry?;
            let name = entry.filename.to_str_lossy().into_owned();
            // No honest program writes such names; git refuses them too. E21
            if matches!(name.as_str(), "" | "." | "..") || name.contains(['/', '\0']) {
                return Err(TreeError::Object(format!("the folder `{path}` holds an entry with the name {name:?}")));
            }
            entries.push(TreeEntry { name, kind: entry.mode.kind(), id: entry.oid.to_owned() });
        }
        Ok(entries)
    }

    fn entry(&mut self, path: String, entry: &TreeEntry, depth: usize) -> Result<(), TreeError> {
        if self.files.len() >= MAX_FILES {
            return Err(TreeError::Limit(path, format!("{MAX_FILES} files")));
        }
        match entry.kind {
            EntryKind::Tree if depth >= MAX_DEPTH => {
                return Err(TreeError::Limit(path, format!("{MAX_DEPTH} levels of folders")));
            }
            EntryKind::Tree => {
                for child in self.entries(entry.id, &path)? {
                    self.entry(format!("{path}/{}", child.name), &child, depth + 1)?;
                }
            }
            EntryKind::Commit => {
                self.files.insert(path, Entry::Submodule);
            }
            EntryKind::Link => {
                let target = match self.read(entry.id)? {
                    Entry::File(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                    _ => String::new(),
                };
                if is_followed(&path) {
                    self.links.push((path.clone(), target.clone()));
                }
                self.files.insert(path, Entry::Link(target));
            }
            EntryKind::Blob | EntryKind::BlobExecutable => {
                let file = self.read(entry.id)?;
                self.files.insert(path, file);
            }
        }
        if self.bytes > MAX_BYTES {
            return Err(TreeError::Limit(String::new(), format!("{} MiB", MAX_BYTES >> 20)));
        }
        Ok(())
    }

    /// A blob's bytes; its size is looked at first.
    fn read(&mut self, id: ObjectId) -> Result<Entry, TreeError> {
        let size = match self.repository.try_find_header(id)? {
            Some(header) => header.size(),
            None if self.absent == Absent::TooLarge => MAX_FILE + 1,
            None => return Err(TreeError::Object(format!("the file {id} is missing"))),
        };
        if size > MAX_FILE {
            return Ok(Entry::TooLarge(size));
        }
        self.bytes += size;
        let mut blob = self.repository.find_blob(id)?;
        Ok(Entry::File(Arc::from(blob.take_data())))
    }

    /// Puts the files that links lead to in the links' places.
    fn follow_links(&mut self) -> Result<(), TreeError> {
        for (path, target) in std::mem::take(&mut self.links) {
            let Some(root) = self.root else { continue };
            let repository = self.repository;
            let mut failure = None;
            let look = |path: &str| {
                look(repository, root, path).unwrap_or_else(|error| {
                    failure = Some(error);
                    None
                })
            };
            let file = resolve(&path, &target, look);
            if let Some(error) = failure {
                return Err(error);
            }
            if let Some(file) = file
                && let Some((_, id)) = find(repository, root, &components(&file).map_err(TreeError::Git)?)?
            {
                let entry = self.read(id)?;
                self.files.insert(path, entry);
            }
            if self.bytes > MAX_BYTES {
                return Err(TreeError::Limit(String::new(), format!("{} MiB", MAX_BYTES >> 20)));
            }
        }
        Ok(())
    }
}

fn look(repository: &Repository, root: ObjectId, path: &str) -> Result<Option<Node>, TreeError> {
    let Ok(path) = components(path) else {
        return Ok(None);
    };
    Ok(match find(repository, root, &path)? {
        Some((EntryKind::Tree, _)) => Some(Node::Folder),
        Some((EntryKind::Blob | EntryKind::BlobExecutable, _)) => Some(Node::File),
        Some((EntryKind::Link, id)) => {
            let mut blob = repository.find_blob(id)?;
            Some(Node::Link(String::from_utf8_lossy(&blob.take_data()).into_owned()))
        }
        Some((EntryKind::Commit, _)) | None => None,
    })
}
