//! Environments whose file got another name: their lockfiles go with them.
//!
//! A file was renamed when Git says so: similarity of at least 50 %, as of `git diff -M50%`.
//! <https://git-scm.com/docs/git-diff#Documentation/git-diff.txt--Mn>

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use crate::{
    model::{
        batch::{Batch, succeeded},
        environment::Environment,
        lock::{Lock, Rename},
        name::{EnvironmentId, Name},
        snapshot::{Entry, Snapshot},
    },
    stages::environment::identity,
};

/// How much of the larger file has to be in the other one, in percent.
const SIMILAR: usize = 50;

/// The longest chunk that is compared, in bytes; lines are shorter, or cut.
const CHUNK: usize = 64;

/// What is known of renames.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Renames {
    /// Those that happened.
    pub known: Vec<Rename>,
    /// Environments that may have been renamed, under both names, where the earlier files cannot be read: nothing of
    /// them is locked or removed.
    pub undecided: BTreeSet<EnvironmentId>,
}

/// A tenant in which exactly one environment with a lockfile is gone, and others without one are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The environment that is gone.
    pub gone: EnvironmentId,
    /// One of these may be it.
    pub there: BTreeSet<EnvironmentId>,
}

/// Where an environment may have been renamed.
pub fn candidates(environments: &Batch<Environment>, lock: &Lock) -> Vec<Candidate> {
    let mut gone: BTreeMap<&Name, Vec<&EnvironmentId>> = BTreeMap::new();
    for (id, _) in succeeded(lock).filter(|(id, _)| !environments.contains_key(*id)) {
        gone.entry(&id.tenant).or_default().push(id);
    }
    let candidate = |(tenant, gone): (&Name, Vec<&EnvironmentId>)| {
        let [gone] = gone.as_slice() else { return None };
        let there = environments.keys().filter(|id| id.tenant == *tenant && !lock.contains_key(*id));
        Some(Candidate { gone: (*gone).clone(), there: there.cloned().collect() })
    };
    gone.into_iter().filter_map(candidate).filter(|candidate| !candidate.there.is_empty()).collect()
}

impl Candidate {
    /// Whether that snapshot still has the file that is gone.
    pub fn is_in(&self, snapshot: &Snapshot) -> bool {
        identity::file(snapshot, &self.gone).is_some()
    }

    /// The rename, by the newest snapshot that still has the file, and the present one.
    pub fn decide(&self, before: &Snapshot, now: &Snapshot) -> Option<Rename> {
        let old = bytes(before, &self.gone)?;
        let appeared = self.there.iter().filter(|id| identity::file(before, id).is_none());
        let similar = appeared.filter_map(|id| Some((similarity(old, bytes(now, id)?), id)));
        // Of equals the first by name, as Git takes them.
        let (_, to) = similar.rev().filter(|(similar, _)| *similar >= SIMILAR).max_by_key(|(similar, _)| *similar)?;
        Some(Rename { from: self.gone.clone(), to: to.clone() })
    }
}

/// The renames between two snapshots, given what the newer one has.
pub fn between(before: &Snapshot, now: &Snapshot, environments: &Batch<Environment>, lock: &Lock) -> Vec<Rename> {
    candidates(environments, lock).iter().filter_map(|candidate| candidate.decide(before, now)).collect()
}

fn bytes<'a>(snapshot: &'a Snapshot, id: &EnvironmentId) -> Option<&'a [u8]> {
    match identity::file(snapshot, id)? {
        Entry::File(bytes) => Some(bytes.as_ref()),
        _ => None,
    }
}

/// How much of the larger text is in the other one, in percent: Git's `diffcore-delta`, which counts the bytes of equal
/// lines (of at most 64 bytes) wherever they are.
/// <https://github.com/git/git/blob/v2.47.0/diffcore-delta.c>
fn similarity(old: &[u8], new: &[u8]) -> usize {
    let larger = old.len().max(new.len());
    if larger == 0 {
        return 0;
    }
    let (old, new) = (chunks(old), chunks(new));
    let kept: usize = old.iter().map(|(chunk, bytes)| (*bytes).min(new.get(chunk).copied().unwrap_or(0))).sum();
    kept * 100 / larger
}

/// The bytes of each different chunk. A line feed counts, a carriage return before it does not.
fn chunks(text: &[u8]) -> BTreeMap<u64, usize> {
    let mut chunks = BTreeMap::new();
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        let unix = line.strip_suffix(b"\r\n").map(|start| [start, b"\n"].concat());
        for chunk in unix.as_deref().unwrap_or(line).chunks(CHUNK) {
            let mut hasher = DefaultHasher::new();
            chunk.hash(&mut hasher);
            *chunks.entry(hasher.finish()).or_default() += chunk.len();
        }
    }
    chunks
}
