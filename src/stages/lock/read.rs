//! The lock of a snapshot.

use super::file;
use crate::model::{
    failure::{Category, Problem},
    lock::Lock,
    name::EnvironmentId,
    snapshot::{Entry, Snapshot},
};

/// Reads all lockfiles. Other files under `lock/` are nobody's lockfile and stay what they are.
pub fn read(snapshot: &Snapshot) -> Lock {
    let lockfiles = snapshot.under("lock").filter_map(|(path, entry)| Some((environment_of(path)?, path, entry)));
    lockfiles
        .map(|(id, path, entry)| {
            let lockfile = match entry {
                Entry::File(bytes) => file::parse(path, bytes),
                Entry::TooLarge(size) => Err(unreadable(path, &format!("has {size} bytes, more than are read")).into()),
                Entry::Link(_) => Err(unreadable(path, "is a symbolic link").into()),
                Entry::Submodule => Err(unreadable(path, "is a submodule").into()),
            };
            (id, lockfile)
        })
        .collect()
}

/// The environment whose lockfile has this path from the root of the environment repository.
pub fn environment_of(path: &str) -> Option<EnvironmentId> {
    let (tenant, name) = path.strip_prefix("lock/")?.strip_suffix(".yaml")?.split_once('/')?;
    Some(EnvironmentId::new(tenant.parse().ok()?, name.parse().ok()?))
}

fn unreadable(path: &str, what: &str) -> Problem {
    Problem::new(Category::Lock, format!("the lockfile {what}")).in_file(path).hint(file::WRITE_ANEW)
}
