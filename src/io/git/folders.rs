//! Where a repository on this machine keeps what moves.

use std::path::PathBuf;

use super::{GitError, Options, address::Address, local};

/// The directories of a repository on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folders {
    /// `HEAD` is here; a linked work tree has one of its own.
    pub git: PathBuf,
    /// Branches are here.
    pub common: PathBuf,
    /// The checked-out files, unless it is bare.
    pub work_tree: Option<PathBuf>,
}

/// The directories; none for a repository elsewhere.
///
/// # Errors
/// [`GitError`], when there is no repository now.
pub(super) fn find(options: &Options, address: &Address) -> Result<Option<Folders>, GitError> {
    let Address::Local(folder) = address else { return Ok(None) };
    let repository = local::open(options, folder)?;
    Ok(Some(Folders {
        git: repository.git_dir().to_owned(),
        common: repository.common_dir().to_owned(),
        work_tree: repository.workdir().map(|folder| match &options.path {
            Some(path) => folder.join(path),
            None => folder.to_owned(),
        }),
    }))
}
