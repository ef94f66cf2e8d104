//! Histories: where the commits are, here or in a cache of what was fetched.

mod changes;
mod commit;
mod ledger;
mod lock_commits;
mod objects;
mod revision;
mod states;
mod trace;
mod walk;

use std::collections::{HashSet, VecDeque};

use gix::{
    ObjectId, Repository,
    bstr::ByteSlice as _,
    objs::{CommitRefIter, Kind, TreeRefIter, tree::EntryKind},
    protocol::fetch::response::ShallowUpdate,
};

use super::{
    CommitId, GitError, Options,
    address::Address,
    cache::{Cache, Lock},
    fetch::{Wish, request},
    local, tree,
};

use crate::{
    io::walk::{MAX_DEPTH, ROOTS},
    model::history::CommitFilter,
};

pub use ledger::Ledger;
pub use lock_commits::{LockingCommit, Until};
pub use trace::Trace;

/// The cache for a remote's history, and how many commits of it are fetched at most.
pub(super) type Reach = (&'static str, usize);

/// All of the history, for auditors.
pub(super) const HISTORY: Reach = ("history", 50_000);

/// The latest commits: where our own is searched below a new tip, and what a lockfile was lately.
pub(super) const LATEST: Reach = ("latest", 64);

/// What is not fetched with the commits of a history: files. Those of the environment repository follow, and all others
/// may be large. A remote that cannot leave them out sends all.
const WITHOUT: &str = "blob:none";

/// How many files are asked for at once.
const FILES: usize = 10_000;

/// Which commits are wanted.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Only those that change this lockfile (path from the root of the environment repository); otherwise any.
    pub path: Option<String>,
    /// Only these.
    pub commits: CommitFilter,
    /// Only files that have this text in them, before or after; those in which it may be spelled otherwise too.
    pub holding: Option<String>,
}

/// Whether `commit` is `tip` or one of the latest commits below it, as far as `reach`.
pub(super) fn contains(
    options: &Options,
    address: &Address,
    tip: CommitId,
    commit: CommitId,
    reach: Reach,
) -> Result<bool, GitError> {
    let (repository, _lock) = repository(options, address, tip, reach)?;
    let mut seen = HashSet::new();
    let mut rest = VecDeque::from([tip.0]);
    while let Some(id) = rest.pop_front() {
        if id == commit.0 {
            return Ok(true);
        }
        if seen.len() < reach.1
            && seen.insert(id)
            && let Ok(bytes) = local::read(&repository, id, Kind::Commit)
        {
            rest.extend(CommitRefIter::from_bytes(&bytes, gix::hash::Kind::Sha1).parent_ids());
        }
    }
    Ok(false)
}

/// A repository with the history of `tip`: the local one, or the cache `name` that is brought up to it.
fn repository(
    options: &Options,
    address: &Address,
    tip: CommitId,
    (name, depth): Reach,
) -> Result<(Repository, Option<Lock>), GitError> {
    if let Address::Local(folder) = address {
        let repository = local::open(options, folder)?;
        if !repository.has_object(tip.0) {
            return Err(GitError::CommitGone { remote: options.remote(), commit: tip });
        }
        return Ok((repository, None));
    }
    let mut cache = Cache::open(&options.cache, name)?;
    let (newest, reached) = newest(&cache).unzip();
    if newest == Some(tip.0) && (reached >= Some(depth) || cache.commits().is_empty()) {
        return Ok(cache.into_parts());
    }
    match bring(options, address, &cache, tip, depth, newest) {
        // What is known here may be in the way; but not when it is the line that has failed.
        Err(GitError::Corrupt { .. } | GitError::Remote { .. }) if newest.is_some() => {
            cache = cache.renew()?;
            bring(options, address, &cache, tip, depth, None)?;
        }
        result => result?,
    }
    Ok(cache.into_parts())
}

fn bring(
    options: &Options,
    address: &Address,
    cache: &Cache,
    tip: CommitId,
    depth: usize,
    have: Option<ObjectId>,
) -> Result<(), GitError> {
    let mut shallow = cache.commits();
    let want = [tip.0];
    let (have, filter) = (have.as_slice(), Some(WITHOUT));
    let wish = Wish { want: &want, shallow: &shallow, have, depth: Some(depth), filter };
    for update in request(options, address, &cache.repository, &wish)? {
        match update {
            ShallowUpdate::Shallow(id) => shallow.push(id),
            ShallowUpdate::Unshallow(id) => shallow.retain(|known| *known != id),
        }
    }
    shallow.sort_unstable();
    shallow.dedup();
    cache.write(&shallow)?;
    let folder = tree::components(options.path.as_deref().unwrap_or_default())?;
    let missing = missing(&cache.repository, tip, &folder).map_err(|error| local::corrupt(options, &error))?;
    for want in missing.chunks(FILES) {
        request(options, address, &cache.repository, &Wish { want, ..Wish::default() })?;
    }
    let file = cache.repository.git_dir().join("larder-tip");
    std::fs::write(&file, format!("{tip} {depth}\n"))
        .map_err(|error| GitError::Io { path: file.display().to_string(), detail: error.to_string() })
}

/// The files of the environment repository in `folder` that are not here, in all commits from `tip` on that are.
fn missing(repository: &Repository, tip: CommitId, folder: &[String]) -> Result<Vec<ObjectId>, gix::Error> {
    // What is not here now does not come while we look; what came a moment ago has to be known first.
    let mut repository = repository.clone();
    repository.find_header(tip.0)?;
    repository.objects.refresh_never();
    let (mut seen, mut missing) = (HashSet::new(), Vec::new());
    let mut rest = vec![tip.0];
    while let Some(id) = rest.pop() {
        if !seen.insert(id) {
            continue;
        }
        let Some(commit) = repository.try_find_object(id)? else { continue };
        let commit = CommitRefIter::from_bytes(&commit.data, gix::hash::Kind::Sha1);
        let tree = commit.clone().tree_id()?;
        rest.extend(commit.parent_ids());
        if seen.insert(tree)
            && let Some((EntryKind::Tree, folder)) = tree::find(&repository, tree, folder)?
        {
            let roots = ROOTS.map(str::as_bytes);
            files(&repository, folder, Some(&roots), 0, &mut seen, &mut missing)?;
        }
    }
    Ok(missing)
}

/// The files below a tree that are not here, those with one of the names `only` where it is given.
fn files(
    repository: &Repository,
    tree: ObjectId,
    only: Option<&[&[u8]]>,
    depth: usize,
    seen: &mut HashSet<ObjectId>,
    missing: &mut Vec<ObjectId>,
) -> Result<(), gix::Error> {
    let data = repository.find_tree(tree)?.take_data();
    for entry in TreeRefIter::from_bytes(&data, gix::hash::Kind::Sha1) {
        let entry = entry?;
        let id = entry.oid.to_owned();
        if only.is_some_and(|only| !only.contains(&entry.filename.as_bytes())) || !seen.insert(id) {
            continue;
        }
        match entry.mode.kind() {
            EntryKind::Tree if depth < MAX_DEPTH => files(repository, id, None, depth + 1, seen, missing)?,
            EntryKind::Tree | EntryKind::Commit => {}
            _ if repository.has_object(id) => {}
            _ => missing.push(id),
        }
    }
    Ok(())
}

/// The commit whose history the cache holds, and how many commits of it were asked for.
fn newest(cache: &Cache) -> Option<(ObjectId, usize)> {
    let text = std::fs::read_to_string(cache.repository.git_dir().join("larder-tip")).ok()?;
    let (id, depth) = text.trim().split_once(' ')?;
    let id = ObjectId::from_hex(id.as_bytes()).ok()?;
    cache.repository.has_object(id).then_some((id, depth.parse().ok()?))
}
