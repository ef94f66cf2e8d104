//! The cache: bare repositories of larder's own for what was fetched lately.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use gix::ObjectId;

use super::{CommitId, GitError, local};

/// The cache that holds single commits with their trees.
pub(super) const TREES: &str = "trees";

/// How many packs are kept, and how many bytes beside the largest of them. Each fetch and each push adds a pack; past
/// either number all are dropped and the next fetch starts again, so that the disk does not fill up.
const MAX_PACKS: usize = 32;
const MAX_BYTES: u64 = 128 * 1024 * 1024;

/// Keeps other processes away from a cache until it is dropped.
pub(super) struct Lock(#[expect(dead_code, reason = "closing the file is what releases the lock")] fs::File);

/// An open cache. While it is, no other process uses it.
pub(super) struct Cache {
    /// The repository.
    pub(super) repository: gix::Repository,
    folder: PathBuf,
    lock: Lock,
}

impl Cache {
    /// Opens the cache `name` in `folder`, which is made if it is not there, and recreated if it is damaged or full.
    /// Waits for another process that uses it.
    ///
    /// # Errors
    /// [`GitError::Io`].
    pub(super) fn open(folder: &Path, name: &str) -> Result<Self, GitError> {
        let fail =
            |error: std::io::Error| GitError::Io { path: folder.display().to_string(), detail: error.to_string() };
        fs::create_dir_all(folder).map_err(fail)?;
        let lock = fs::File::create(folder.join(format!("{name}.lock"))).map_err(fail)?;
        lock.lock().map_err(fail)?;
        let folder = folder.join(name);
        sweep(&folder);
        let kept = if folder.join("HEAD").exists() && !is_full(&folder) {
            options().open(&folder).ok().map(Into::into)
        } else {
            None
        };
        let repository = kept.map_or_else(|| create(&folder), Ok)?;
        Ok(Self { repository, folder, lock: Lock(lock) })
    }

    /// Forgets everything.
    ///
    /// # Errors
    /// [`GitError::Io`].
    pub(super) fn renew(self) -> Result<Self, GitError> {
        let repository = create(&self.folder)?;
        Ok(Self { repository, ..self })
    }

    /// The repository, and what keeps others away from it.
    pub(super) fn into_parts(self) -> (gix::Repository, Option<Lock>) {
        (self.repository, Some(self.lock))
    }

    /// Whether the whole tree of a commit is here.
    pub(super) fn holds(&self, commit: CommitId) -> bool {
        self.commits().contains(&commit.0) && self.repository.has_object(commit.0)
    }

    /// The commits whose trees are here, the newest last.
    pub(super) fn commits(&self) -> Vec<ObjectId> {
        let text = fs::read_to_string(self.shallow_file()).unwrap_or_default();
        text.lines().filter_map(|line| ObjectId::from_hex(line.as_bytes()).ok()).collect()
    }

    /// Notes that the whole tree of a commit is here now. Git's own file for this is used, which says too that the
    /// commit's parents are not here.
    ///
    /// # Errors
    /// [`GitError::Io`].
    pub(super) fn add(&self, commit: CommitId) -> Result<(), GitError> {
        let mut commits = self.commits();
        commits.retain(|known| *known != commit.0);
        commits.push(commit.0);
        self.write(&commits)
    }

    /// Writes the list of the commits whose parents are not here.
    ///
    /// # Errors
    /// [`GitError::Io`].
    pub(super) fn write(&self, commits: &[ObjectId]) -> Result<(), GitError> {
        let text: String = commits.iter().map(|id| format!("{id}\n")).collect();
        let file = self.shallow_file();
        let written = tempfile::NamedTempFile::new_in(self.repository.git_dir()).and_then(|mut new| {
            new.write_all(text.as_bytes())?;
            new.persist(&file).map(drop).map_err(|error| error.error)
        });
        written.map_err(|error| GitError::Io { path: file.display().to_string(), detail: error.to_string() })
    }

    fn shallow_file(&self) -> std::path::PathBuf {
        self.repository.git_dir().join("shallow")
    }
}

/// No configuration but the cache's own.
fn options() -> gix::open::Options {
    local::as_it_is().with(gix::sec::Trust::Full)
}

/// Removes what a fetch that was killed has left half done, so that a program that is killed again and again does not
/// fill the disk.
fn sweep(folder: &Path) {
    let folder = folder.join("objects/pack");
    for file in fs::read_dir(&folder).into_iter().flatten().flatten().map(|file| file.path()) {
        let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let is_whole = match extension {
            "pack" => file.with_extension("idx").exists(),
            "idx" => file.with_extension("pack").exists(),
            _ => false,
        };
        if !is_whole {
            let _ = fs::remove_file(file);
        }
    }
}

fn is_full(folder: &Path) -> bool {
    let files = fs::read_dir(folder.join("objects/pack")).into_iter().flatten().flatten();
    let packs = files.filter(|file| file.path().extension().is_some_and(|extension| extension == "pack"));
    let sizes: Vec<u64> = packs.map(|file| file.metadata().map_or(0, |metadata| metadata.len())).collect();
    let beside = sizes.iter().sum::<u64>() - sizes.iter().max().copied().unwrap_or_default();
    sizes.len() > MAX_PACKS || beside > MAX_BYTES
}

/// Makes an empty cache in place of whatever is in `folder`.
fn create(folder: &Path) -> Result<gix::Repository, GitError> {
    let fail = |detail: String| GitError::Io { path: folder.display().to_string(), detail };
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(fail(error.to_string())),
        _ => {}
    }
    let create = gix::create::Options::default();
    gix::ThreadSafeRepository::init_opts(folder, gix::create::Kind::Bare, create, options())
        .map(Into::into)
        .map_err(|error| fail(local::text(&error)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{MAX_BYTES, MAX_PACKS, is_full};

    #[test]
    fn a_cache_is_full_of_many_packs_or_of_many_bytes_beside_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let packs = folder.path().join("objects/pack");
        fs::create_dir_all(&packs).unwrap();
        // Files with holes: they take no room.
        let pack = |name: &str, size: u64| {
            fs::File::create(packs.join(format!("pack-{name}.pack"))).unwrap().set_len(size).unwrap();
            is_full(folder.path())
        };
        assert!(!is_full(&folder.path().join("missing")));
        assert!(!pack("first", 4 * MAX_BYTES));
        assert!(!pack("second", MAX_BYTES));
        assert!(pack("third", 1));
        fs::remove_file(packs.join("pack-second.pack")).unwrap();
        for number in 3..=MAX_PACKS {
            assert!(!pack(&number.to_string(), 1), "{number}");
        }
        assert!(pack("last", 1));
    }
}
