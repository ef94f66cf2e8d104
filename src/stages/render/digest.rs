//! One digest of all that a commit leads to, for the commit to record.

use crate::model::{digest::Digest, manifest::Manifests};

/// The SHA-256 of a list with a line for each manifest, `<object> <its own digest>`, sorted by bytes.
///
/// The manifests have to be rendered with the default [`Options`](super::Options), so that clusters whose larder has
/// another instance's name agree. What cannot be rendered is not in the list. docs/reference/lock-commits.md tells how to
/// compute it without larder.
pub fn digest(manifests: &Manifests) -> Digest {
    let mut lines: Vec<String> = manifests
        .values()
        .flatten()
        .flatten()
        .map(|manifest| format!("{} {}\n", manifest.id, manifest.digest()))
        .collect();
    lines.sort_unstable();
    Digest::sha256(lines.concat().as_bytes())
}
