//! Packs: the form in which objects travel.

use std::{io::BufRead, path::Path, sync::atomic::AtomicBool};

use gix::odb::memory::Storage;
use gix_pack::data::output::{Count, Entry, bytes::FromEntriesIter};

use super::GitError;

/// The largest object of a pack that is taken, in bytes: what is larger would not fit into larder's memory. Files of more
/// than [`MAX_FILE`](crate::io::walk::MAX_FILE) are not fetched where the remote can leave them out.
const MAX_OBJECT: usize = 64 * 1024 * 1024;

/// The bound that an object of a pack exceeds.
pub(super) fn too_large() -> String {
    format!("{} MiB in one object", MAX_OBJECT >> 20)
}

/// Objects as a pack.
///
/// # Errors
/// [`GitError::Io`], if there is no memory left.
pub(super) fn encode(objects: &Storage) -> Result<Vec<u8>, GitError> {
    let fail = |error: gix::Error| GitError::Io { path: "a pack in memory".into(), detail: super::local::text(&error) };
    let mut entries = Vec::with_capacity(objects.len());
    for (id, (kind, data)) in objects.iter() {
        let data = gix_object::Data { kind: *kind, data, object_hash: gix_hash::Kind::Sha1 };
        let count = Count::from_data(*id, None);
        entries.push(Entry::from_data(&count, &data, gix_zlib::Compression::DEFAULT).map_err(fail)?);
    }
    let number = u32::try_from(entries.len()).unwrap_or(u32::MAX);
    let mut pack = Vec::new();
    let chunks = std::iter::once(Ok(entries));
    let version = gix_pack::data::Version::V2;
    for written in FromEntriesIter::new(chunks, &mut pack, number, version, gix_hash::Kind::Sha1) {
        written.map_err(fail)?;
    }
    Ok(pack)
}

/// Writes a pack and its index into a repository. Objects that the pack only describes by their difference to objects
/// of the repository are completed from there.
///
/// # Errors
/// Whatever the pack or the disk is not fit for.
pub(super) fn store(repository: &gix::Repository, pack: &mut dyn BufRead) -> Result<(), gix::Error> {
    let folder: &Path = &repository.objects.store_ref().path().join("pack");
    let options = gix_pack::bundle::write::Options {
        // Small packs; threads would cost more than they bring.
        thread_limit: Some(1),
        alloc_limit_bytes: Some(MAX_OBJECT),
        ..Default::default()
    };
    let outcome = gix_pack::Bundle::write_to_directory(
        pack,
        Some(folder),
        &mut gix::progress::Discard,
        &AtomicBool::new(false),
        Some(repository.objects.clone()),
        gix_hash::Kind::Sha1,
        options,
    )?;
    // Readable for all, as git leaves them; the temporary files that they were are for their owner alone.
    for file in [&outcome.data_path, &outcome.index_path].into_iter().flatten() {
        let _ = make_readable(file);
    }
    if let Some(keep) = outcome.keep_path {
        let _ = std::fs::remove_file(keep);
    }
    Ok(())
}

#[cfg(unix)]
fn make_readable(file: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o444))
}

#[cfg(not(unix))]
fn make_readable(_file: &Path) -> std::io::Result<()> {
    Ok(())
}
