//! An environment repository as a directory on disk, uncommitted files included.
//!
//! It gives the same [`Snapshot`] as a commit would: the same files, the same budgets, and symbolic links followed
//! inside the directory only. Nothing outside the directory is ever read, whatever a link says.

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    io::{
        git,
        walk::{self, Child, ChildKind, MAX_FILE, WalkError},
    },
    model::{
        failure::{Category, Problem},
        snapshot::{Entry, Snapshot},
    },
};

/// Why a directory could not be read as an environment repository.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// There is no `larder.yaml` here or above.
    #[error("neither {0} nor a directory above it holds a larder.yaml")]
    NoRoot(PathBuf),
    /// A file or directory that cannot be read.
    #[error("{path} cannot be read")]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The index, which says whether a sparse checkout leaves files out, cannot be read.
    #[error("{path} may be a sparse checkout, and Git's index cannot be read: {detail}")]
    LeftOut {
        /// Where.
        path: PathBuf,
        /// Why.
        detail: String,
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
            Self::LeftOut { .. } => "see what `git status` says",
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

/// The nearest directory from `start` upwards that holds a `larder.yaml`.
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
    let mut files = walk::files(&Disk { root }, &root.to_owned()).map_err(|error| match error {
        WalkError::Source(error) => error,
        WalkError::Limit(path, limit) => FolderError::TooLarge { path: root.join(path), limit },
        WalkError::Name(path, name) => FolderError::TooLarge { path: root.join(path), limit: format!("{name:?}") },
    })?;
    // What is not on disk only because the checkout is sparse.
    let left_out = git::left_out(root).map_err(|detail| FolderError::LeftOut { path: root.to_owned(), detail })?;
    for (name, entry) in left_out {
        files.entry(name).or_insert(entry);
    }
    Ok(Snapshot { files, ..Snapshot::default() })
}

/// Directories and files on disk. No link is ever followed by the system.
struct Disk<'a> {
    root: &'a Path,
}

impl walk::Source for Disk<'_> {
    type Id = PathBuf;
    type Error = FolderError;

    fn children(&self, directory: &PathBuf) -> Result<Vec<Child<PathBuf>>, FolderError> {
        let fail = |source| FolderError::Read { path: directory.clone(), source };
        let mut children = Vec::new();
        for entry in fs::read_dir(directory).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let (id, found) = (entry.path(), entry.file_type().map_err(fail)?);
            let kind = match found {
                found if found.is_symlink() => ChildKind::Link,
                found if found.is_file() => ChildKind::File,
                found if !found.is_dir() => continue,
                _ if directory != self.root && id.join(".git").symlink_metadata().is_ok() => ChildKind::Submodule,
                _ => ChildKind::Directory,
            };
            children.push(Child { name: entry.file_name().to_string_lossy().into_owned(), kind, id });
        }
        Ok(children)
    }

    fn size(&self, file: &PathBuf) -> Result<u64, FolderError> {
        let fail = |source| FolderError::Read { path: file.clone(), source };
        file.symlink_metadata().map(|metadata| metadata.len()).map_err(fail)
    }

    /// At most one byte more than the bound, however fast the file grows.
    fn read(&self, file: &PathBuf) -> Result<Entry, FolderError> {
        let fail = |source| FolderError::Read { path: file.clone(), source };
        let mut bytes = Vec::new();
        fs::File::open(file).map_err(fail)?.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(fail)?;
        let size = bytes.len() as u64;
        Ok(if size > MAX_FILE { Entry::TooLarge(size) } else { Entry::File(Arc::from(bytes)) })
    }

    fn target(&self, link: &PathBuf) -> Result<String, FolderError> {
        let fail = |source| FolderError::Read { path: link.clone(), source };
        Ok(fs::read_link(link).map_err(fail)?.to_string_lossy().into_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink, path::Path};

    use super::{FolderError, find_root, snapshot};
    use crate::{io::walk::MAX_FILE, model::snapshot::Entry};

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
            ("in.yaml", "../other/y.yaml"),
            ("out.yaml", "../../secret"),
            ("absolute.yaml", "/etc/hostname"),
            ("loop.yaml", "loop.yaml"),
            ("dangling.yaml", "nothing"),
            ("folder", "a"),
            ("hop.yaml", "in.yaml"),
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
            ("environments/in.yaml", file("other/y.yaml")),
            ("environments/hop.yaml", file("other/y.yaml")),
            ("environments/out.yaml", link("../../secret")),
            ("environments/absolute.yaml", link("/etc/hostname")),
            ("environments/loop.yaml", link("loop.yaml")),
            ("environments/dangling.yaml", link("nothing")),
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
