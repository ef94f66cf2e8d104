//! The cache: a bare repository of larder's own that holds the trees of the commits that were fetched lately.

use std::{fs, io::Write as _, path::Path};

use gix::ObjectId;

use super::{CommitId, GitError, local};

/// How many packs are kept. Each fetch and each push adds one; past this number all are dropped and the next fetch
/// starts anew, so that the disk does not fill up.
const MAX_PACKS: usize = 32;

/// An open cache.
pub(super) struct Cache {
    /// The repository. Its commits have no parents, as far as it knows.
    pub(super) repository: gix::Repository,
}

impl Cache {
    /// Opens the cache in `folder`, which is made if it is not there, and made anew if it is damaged.
    ///
    /// # Errors
    /// [`GitError::Io`].
    pub(super) fn open(folder: &Path) -> Result<Self, GitError> {
        let options = || gix::open::Options::isolated().strict_config(false).with(gix::sec::Trust::Full);
        if folder.join("HEAD").exists()
            && let Ok(repository) = options().open(folder)
        {
            let cache = Self { repository: repository.into() };
            if cache.packs() <= MAX_PACKS {
                return Ok(cache);
            }
        }
        clear(folder)?;
        let fail = |error: gix::Error| GitError::Io { path: folder.display().to_string(), detail: local::text(&error) };
        let create = gix::create::Options::default();
        let repository =
            gix::ThreadSafeRepository::init_opts(folder, gix::create::Kind::Bare, create, options()).map_err(fail)?;
        Ok(Self { repository: repository.into() })
    }

    /// Forgets everything.
    ///
    /// # Errors
    /// [`GitError::Io`].
    pub(super) fn renew(self, folder: &Path) -> Result<Self, GitError> {
        drop(self);
        clear(folder)?;
        Self::open(folder)
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

    fn packs(&self) -> usize {
        let folder = self.repository.git_dir().join("objects/pack");
        let files = fs::read_dir(folder).into_iter().flatten().flatten();
        files.filter(|file| file.path().extension().is_some_and(|extension| extension == "pack")).count()
    }
}

/// Removes a folder of ours with all that is in it. Anything that does not look like a cache is left alone.
fn clear(folder: &Path) -> Result<(), GitError> {
    let fail = |detail: String| GitError::Io { path: folder.display().to_string(), detail };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return fs::create_dir_all(folder).map_err(|error| fail(error.to_string()));
        }
        Err(error) => return Err(fail(error.to_string())),
    };
    let entries: Vec<_> = entries.collect::<Result<_, _>>().map_err(|error| fail(error.to_string()))?;
    let ours = folder.join("objects").is_dir() || entries.is_empty();
    if !ours {
        return Err(fail("the folder holds something else than larder's cache".into()));
    }
    // What is in the folder goes, the folder itself stays: it may be a mount.
    for entry in entries {
        let path = entry.path();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let removed = if is_folder { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.map_err(|error| fail(error.to_string()))?;
    }
    Ok(())
}
