//! What a lock commit records of the manifests that it leads to.

use crate::{
    model::{
        digest::Digest,
        lock::LockChange,
        snapshot::{Entry, Snapshot},
    },
    stages::{
        load::Environments,
        render::{self, Renderer},
    },
};

/// The digest of all manifests that a commit's files lead to, rendered with the default options. `renderer` only knows
/// some of them already.
pub fn digest(environments: &Environments, renderer: &mut Renderer) -> Digest {
    let Environments { environments, settings, templates, lock, .. } = environments;
    render::digest(&renderer.render(environments, settings, templates, lock, &render::Options::default()))
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
