//! An environment repository as a folder on disk, uncommitted files included.
//!
//! It gives the same [`Snapshot`] as a commit would: the same files, the same budgets, and symbolic links followed
//! inside the folder only. Nothing outside the folder is ever read, whatever a link says.

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    io::{
        git::{MAX_BYTES, MAX_DEPTH, MAX_FILE, MAX_FILES, ROOTS},
        links::{Node, is_followed, resolve},
    },
    model::{
        failure::{Category, Problem},
        snapshot::{Entry, Snapshot},
    },
};

/// Why a folder could not be read as an environment repository.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// There is no `larder.yaml` here or above.
    #[error("neither {0} nor a folder above it holds a larder.yaml")]
    NoRoot(PathBuf),
    /// A file or folder that cannot be read.
    #[error("{path} cannot be read")]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// More files or bytes than a snapshot may hold.
    #[error("{path} holds more than {limit}")]
    TooLarge {
        /// Where.
        path: PathBuf,
        /// The budget that was passed.
        limit: String,
    },
}

impl FolderError {
    /// What its reader can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoRoot(_) => {
                "go to an environment repository, give one with `--repo`, or make one with `larder init`"
            }
            Self::Read { .. } => "check that larder may read it",
            Self::TooLarge { .. } => "keep large files out of the environment repository",
        }
    }
}

impl From<FolderError> for Problem {
    fn from(error: FolderError) -> Self {
        let message = match &error {
            FolderError::Read { source, .. } => format!("{error}: {source}"),
            _ => error.to_string(),
        };
        Self::new(Category::Io, message).hint(error.hint())
    }
}

/// The nearest folder from `start` upwards that holds a `larder.yaml`.
///
/// # Errors
/// [`FolderError::NoRoot`], and [`FolderError::Read`] when `start` is not there.
pub fn find_root(start: &Path) -> Result<PathBuf, FolderError> {
    let absolute = start.canonicalize().map_err(|source| FolderError::Read { path: start.to_owned(), source })?;
    let root = absolute.ancestors().find(|folder| folder.join("larder.yaml").is_file());
    root.map(Path::to_owned).ok_or(FolderError::NoRoot(absolute))
}

/// Reads the files of the environment repository at `root`.
///
/// # Errors
/// [`FolderError::Read`], [`FolderError::TooLarge`].
pub fn snapshot(root: &Path) -> Result<Snapshot, FolderError> {
    fs::read_dir(root).map_err(|source| FolderError::Read { path: root.to_owned(), source })?;
    let mut reader = Reader { root, snapshot: Snapshot::default(), links: Vec::new(), bytes: 0 };
    for name in ROOTS {
        let path = root.join(name);
        // Names are compared as Git has them, also on disks that do not tell upper from lower case.
        if path.symlink_metadata().is_ok() {
            reader.entry(name.to_owned(), &path, 0)?;
        }
    }
    reader.follow_links()?;
    Ok(reader.snapshot)
}

struct Reader<'a> {
    root: &'a Path,
    snapshot: Snapshot,
    links: Vec<(String, String)>,
    bytes: u64,
}

impl Reader<'_> {
    fn entry(&mut self, name: String, path: &Path, depth: usize) -> Result<(), FolderError> {
        let fail = |source| FolderError::Read { path: path.to_owned(), source };
        let too_large = |limit: String| FolderError::TooLarge { path: path.to_owned(), limit };
        if self.snapshot.files.len() >= MAX_FILES {
            return Err(too_large(format!("{MAX_FILES} files")));
        }
        let metadata = match path.symlink_metadata() {
            Ok(metadata) => metadata,
            // Removed since its folder was listed.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(fail(error)),
        };
        if metadata.is_symlink() {
            let target = fs::read_link(path).map_err(fail)?.to_string_lossy().into_owned();
            if is_followed(&name) {
                self.links.push((name.clone(), target.clone()));
            }
            self.snapshot.files.insert(name, Entry::Link(target));
        } else if metadata.is_dir() && depth > 0 && path.join(".git").symlink_metadata().is_ok() {
            self.snapshot.files.insert(name, Entry::Submodule);
        } else if metadata.is_dir() {
            if depth >= MAX_DEPTH {
                return Err(too_large(format!("{MAX_DEPTH} levels of folders")));
            }
            for child in fs::read_dir(path).map_err(fail)? {
                let child = child.map_err(fail)?;
                let below = format!("{name}/{}", child.file_name().to_string_lossy());
                self.entry(below, &child.path(), depth + 1)?;
            }
        } else if metadata.is_file() {
            let entry = self.read(path)?;
            self.snapshot.files.insert(name, entry);
        }
        if self.bytes > MAX_BYTES {
            return Err(too_large(format!("{} MiB", MAX_BYTES >> 20)));
        }
        Ok(())
    }

    /// A file's bytes, at most one more than the budget, however fast it grows.
    fn read(&mut self, path: &Path) -> Result<Entry, FolderError> {
        let fail = |source| FolderError::Read { path: path.to_owned(), source };
        let file = fs::File::open(path).map_err(fail)?;
        let size = file.metadata().map_err(fail)?.len();
        if size > MAX_FILE {
            return Ok(Entry::TooLarge(size));
        }
        let mut bytes = Vec::new();
        file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(fail)?;
        let size = bytes.len() as u64;
        if size > MAX_FILE {
            return Ok(Entry::TooLarge(size));
        }
        self.bytes += size;
        Ok(Entry::File(Arc::from(bytes)))
    }

    /// Puts the files that links lead to in the links' places. Each component is looked at by itself, so that the
    /// system never follows a link for us.
    fn follow_links(&mut self) -> Result<(), FolderError> {
        for (name, target) in std::mem::take(&mut self.links) {
            let root = self.root;
            if let Some(file) = resolve(&name, &target, |path| look(&root.join(path))) {
                let entry = self.read(&root.join(file))?;
                self.snapshot.files.insert(name, entry);
            }
        }
        Ok(())
    }
}

fn look(path: &Path) -> Option<Node> {
    let metadata = path.symlink_metadata().ok()?;
    if metadata.is_symlink() {
        return Some(Node::Link(fs::read_link(path).ok()?.to_string_lossy().into_owned()));
    }
    if metadata.is_dir() {
        return Some(Node::Folder);
    }
    metadata.is_file().then_some(Node::File)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink, path::Path};

    use super::{FolderError, find_root, snapshot};
    use crate::{io::git::MAX_FILE, model::snapshot::Entry};

    fn write(root: &Path, path: &str, text: &str) {
        let file = root.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    #[test]
    fn the_same_files_as_a_commit_would_have() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("repo");
        for path in ["larder.yaml", "environments/a/x.yaml", "templates/p.yaml.j2", "lock/a/x.yaml", "other/y.yaml"] {
            write(&root, path, path);
        }
        write(&root, "environments/sub/.git", "gitdir: ../..");
        write(&root, "environments/sub/z.yaml", "z");
        write(folder.path(), "secret", "outside");
        fs::write(root.join("environments/large.yaml"), vec![b'x'; MAX_FILE as usize + 1]).unwrap();
        for (link, target) in [
            ("in", "../other/y.yaml"),
            ("out", "../../secret"),
            ("absolute", "/etc/hostname"),
            ("loop", "loop"),
            ("dangling", "nothing"),
            ("folder", "a"),
            ("hop", "in"),
        ] {
            symlink(target, root.join("environments").join(link)).unwrap();
        }
        symlink("../../other/y.yaml", root.join("lock/a/link.yaml")).unwrap();
        let snapshot = snapshot(&root).unwrap();
        let link = |target: &str| Some(Entry::Link(target.into()));
        let file = |text: &str| Some(Entry::File(text.as_bytes().into()));
        for (path, expected) in [
            ("larder.yaml", file("larder.yaml")),
            ("environments/a/x.yaml", file("environments/a/x.yaml")),
            ("templates/p.yaml.j2", file("templates/p.yaml.j2")),
            ("lock/a/x.yaml", file("lock/a/x.yaml")),
            ("lock/a/link.yaml", link("../../other/y.yaml")),
            ("other/y.yaml", None),
            ("environments/sub", Some(Entry::Submodule)),
            ("environments/sub/z.yaml", None),
            ("environments/large.yaml", Some(Entry::TooLarge(MAX_FILE + 1))),
            ("environments/in", file("other/y.yaml")),
            ("environments/hop", file("other/y.yaml")),
            ("environments/out", link("../../secret")),
            ("environments/absolute", link("/etc/hostname")),
            ("environments/loop", link("loop")),
            ("environments/dangling", link("nothing")),
            ("environments/folder", link("a")),
        ] {
            assert_eq!(snapshot.files.get(path).cloned(), expected, "{path}");
        }
    }

    #[test]
    fn the_root_is_found_from_below() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "larder.yaml", "");
        write(folder.path(), "environments/a/x.yaml", "");
        let root = folder.path().canonicalize().unwrap();
        assert_eq!(find_root(&folder.path().join("environments/a")).unwrap(), root);
        assert_eq!(find_root(folder.path()).unwrap(), root);
        let other = tempfile::tempdir().unwrap();
        assert!(matches!(find_root(other.path()), Err(FolderError::NoRoot(_))));
        assert!(matches!(find_root(&other.path().join("x")), Err(FolderError::Read { .. })));
        assert!(matches!(snapshot(&other.path().join("x")), Err(FolderError::Read { .. })));
    }
}
