//! The files of an environment repository at one commit, immutable.

use std::{collections::BTreeMap, sync::Arc};

/// Where the settings are.
pub const SETTINGS: &str = "larder.yaml";

/// What a path of the environment repository holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A regular file's bytes (executable or not).
    File(Arc<[u8]>),
    /// A regular file larger than the budget; it was not read. Its size in bytes.
    TooLarge(u64),
    /// A symbolic link that was not followed, with its target: it leaves the tree, loops, dangles or names a directory.
    /// Links to a file inside the tree are followed and appear as [`Entry::File`].
    Link(String),
    /// A submodule; never followed.
    Submodule,
    /// A directory that was not read, and why: it exceeds a bound. What it holds is unknown, not absent.
    Unread(String),
}

/// Whether a regular file at this path is one that larder reads; others are not kept.
pub fn is_read(path: &str) -> bool {
    let has = |extension: &str| path.rsplit_once('.').is_some_and(|(_, found)| found.eq_ignore_ascii_case(extension));
    match path.split_once('/') {
        None => path == SETTINGS,
        Some(("templates", _)) => path.ends_with(".j2"),
        Some(("lock", _)) => path.ends_with(".yaml"),
        Some(_) => ["yaml", "yml", "json"].into_iter().any(has),
    }
}

/// The files under `larder.yaml`, `environments/`, `templates/` and `lock/`, at one commit or in one directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Where they come from.
    pub origin: Origin,
    /// Path from the root of the environment repository, with `/` → what it holds. Paths that are no UTF-8 are shown
    /// with replacement characters.
    pub files: BTreeMap<String, Entry>,
}

/// Where a snapshot comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// Files on disk, perhaps not committed yet.
    #[default]
    Folder,
    /// A commit, as 40 hexadecimal digits.
    Commit(String),
}

impl Snapshot {
    /// The commit, as 40 hexadecimal digits; none for files on disk.
    pub fn commit(&self) -> Option<&str> {
        match &self.origin {
            Origin::Commit(commit) => Some(commit),
            Origin::Folder => None,
        }
    }

    /// The bytes of a regular file.
    pub fn file(&self, path: &str) -> Option<&Arc<[u8]>> {
        match self.files.get(path) {
            Some(Entry::File(bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// The entries below a directory, `folder` being given without a final slash.
    pub fn under<'a>(&'a self, folder: &str) -> impl Iterator<Item = (&'a str, &'a Entry)> + use<'a> {
        let prefix = format!("{folder}/");
        let start = prefix.clone();
        self.files
            .range(start..)
            .take_while(move |(path, _)| path.starts_with(&prefix))
            .map(|(path, entry)| (path.as_str(), entry))
    }
}
