//! What a lock commit records of the manifests that it leads to.

use super::render_locked;
use crate::{
    model::{
        digest::Digest,
        failure::Failure,
        lock::LockChange,
        manifest::Manifests,
        snapshot::{Entry, Snapshot},
    },
    stages::{
        load::{self, Environments},
        render,
    },
};

/// A commit, rendered.
pub struct Record {
    /// The environments as the commit has them.
    pub environments: Environments,
    /// The digest of all manifests, rendered with the default options.
    pub digest: Digest,
    /// The manifests themselves, with those options.
    pub manifests: Manifests,
}

/// Renders the files of a commit, and nothing else.
///
/// # Errors
/// When they are no environment repository.
pub fn record(snapshot: &Snapshot) -> Result<Record, Failure> {
    let environments = load::load(snapshot)?;
    let locked = LockChange { lock: environments.lock.clone(), ..LockChange::default() };
    let manifests = render_locked(&environments, &locked, &render::Options::default());
    Ok(Record { environments, digest: render::digest(&manifests), manifests })
}

/// The files of a commit that is made on `parent`, known without fetching them.
pub(super) fn with_files(parent: &Snapshot, change: &LockChange) -> Snapshot {
    let mut files = parent.files.clone();
    for (path, bytes) in &change.files {
        match bytes {
            Some(bytes) => files.insert(path.clone(), Entry::File(bytes.as_slice().into())),
            None => files.remove(path),
        };
    }
    Snapshot { origin: parent.origin.clone(), files }
}
