//! History: the commits that change lockfiles, along first parents.

use std::{collections::HashSet, ops::ControlFlow};

use gix::{ObjectId, Repository, actor::SignatureRef, objs::tree::EntryKind, protocol::fetch::response::ShallowUpdate};

use super::{
    CommitId, GitError, Identity, Options,
    address::Address,
    cache::{Cache, Lock},
    changes::{self, FileChange},
    fetch::{Wish, request, tree_error},
    local, tree,
};

/// The cache of a remote's history, and how many commits of it are fetched at most.
const HISTORY: (&str, usize) = ("history", 50_000);

/// The cache of what came right after a push, and how many commits below a new tip are searched for our own.
const NEWER: (&str, usize) = ("newer", 64);

/// How much memory remembers trees that come again and again, in bytes.
const OBJECT_CACHE: usize = 4 * 1024 * 1024;

/// The folder of lockfiles.
const LOCK: &str = "lock";

/// Which commits are wanted.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Only those that change this lockfile (path from the root of the environment repository); otherwise any.
    pub path: Option<String>,
}

/// A commit that changes lockfiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockCommit {
    /// Its identity.
    pub id: CommitId,
    /// Who wrote it.
    pub author: Identity,
    /// Who committed it.
    pub committer: Identity,
    /// When it was committed, in seconds since 1970 (UTC).
    pub seconds: i64,
    /// Its message.
    pub message: String,
    /// The lockfiles that it changes against its first parent, by path.
    pub files: Vec<FileChange>,
}

/// Visits the commits that change lockfiles.
pub(super) fn walk(
    options: &Options,
    address: &Address,
    path: &[String],
    from: CommitId,
    query: &Query,
    visit: &mut dyn FnMut(LockCommit) -> ControlFlow<()>,
) -> Result<(), GitError> {
    let (mut repository, _lock) = repository(options, address, from, HISTORY)?;
    repository.object_cache_size_if_unset(OBJECT_CACHE);
    let corrupt = |error: gix::Error| local::corrupt(options, &error);
    let mut lock = path.to_vec();
    lock.push(LOCK.to_owned());
    let only = query.path.as_deref().map(tree::components).transpose()?;
    // Below `lock/`, as the comparison goes.
    let only = only.map(|path| path.iter().skip(1).cloned().collect::<Vec<_>>());

    let mut commit = repository.find_commit(from.0).map_err(corrupt)?;
    let mut after = lock_tree(&commit, &lock).map_err(corrupt)?;
    loop {
        let parent = match commit.parent_ids().next() {
            // The history that is here ends: what this commit changed is not known.
            Some(id) if !repository.has_object(id) => return Ok(()),
            Some(id) => Some(repository.find_commit(id).map_err(corrupt)?),
            None => None,
        };
        let before = parent.as_ref().map(|parent| lock_tree(parent, &lock)).transpose().map_err(corrupt)?.flatten();
        if before != after {
            let files = changes::between(&repository, before, after, LOCK, only.as_deref());
            let files = files.map_err(|error| tree_error(options, error))?;
            if !files.is_empty() && visit(describe(&commit, files).map_err(corrupt)?).is_break() {
                return Ok(());
            }
        }
        let Some(parent) = parent else {
            return Ok(());
        };
        (commit, after) = (parent, before);
    }
}

/// Whether `commit` is `tip` or one of the latest commits below it.
pub(super) fn contains(
    options: &Options,
    address: &Address,
    tip: CommitId,
    commit: CommitId,
) -> Result<bool, GitError> {
    let (repository, _lock) = repository(options, address, tip, NEWER)?;
    let mut seen = HashSet::new();
    let mut rest = vec![tip.0];
    while let Some(id) = rest.pop() {
        if id == commit.0 {
            return Ok(true);
        }
        if seen.len() < NEWER.1
            && seen.insert(id)
            && let Ok(found) = repository.find_commit(id)
        {
            rest.extend(found.parent_ids().map(gix::Id::detach));
        }
    }
    Ok(false)
}

/// A repository with the history of `tip`: the local one, or the cache `name` that is brought up to it.
fn repository(
    options: &Options,
    address: &Address,
    tip: CommitId,
    (name, depth): (&str, usize),
) -> Result<(Repository, Option<Lock>), GitError> {
    if let Address::Local(folder) = address {
        let repository = local::open(options, folder)?;
        if !repository.has_object(tip.0) {
            return Err(GitError::CommitGone { remote: options.remote(), commit: tip });
        }
        return Ok((repository, None));
    }
    let mut cache = Cache::open(&options.cache, name)?;
    let newest = newest(&cache);
    if newest == Some(tip.0) {
        return Ok(cache.into_parts());
    }
    match bring(options, address, &cache, tip, depth, newest) {
        Err(_) if newest.is_some() => {
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
    let wish = Wish { commit: tip, shallow: &shallow, have: have.as_slice(), depth };
    for update in request(options, address, &cache.repository, &wish)? {
        match update {
            ShallowUpdate::Shallow(id) => shallow.push(id),
            ShallowUpdate::Unshallow(id) => shallow.retain(|known| *known != id),
        }
    }
    shallow.sort_unstable();
    shallow.dedup();
    cache.write(&shallow)?;
    let file = cache.repository.git_dir().join("larder-tip");
    std::fs::write(&file, format!("{tip}\n"))
        .map_err(|error| GitError::Io { path: file.display().to_string(), detail: error.to_string() })
}

/// The commit whose history the cache holds.
fn newest(cache: &Cache) -> Option<ObjectId> {
    let text = std::fs::read_to_string(cache.repository.git_dir().join("larder-tip")).ok()?;
    let id = ObjectId::from_hex(text.trim().as_bytes()).ok()?;
    cache.repository.has_object(id).then_some(id)
}

/// The tree of lockfiles of a commit.
fn lock_tree(commit: &gix::Commit<'_>, lock: &[String]) -> Result<Option<ObjectId>, gix::Error> {
    let found = tree::find(commit.repo, commit.tree_id()?.detach(), lock)?;
    Ok(found.filter(|(kind, _)| *kind == EntryKind::Tree).map(|(_, id)| id))
}

fn describe(commit: &gix::Commit<'_>, files: Vec<FileChange>) -> Result<LockCommit, gix::Error> {
    let decoded = commit.decode()?;
    let committer = commit.committer()?;
    Ok(LockCommit {
        id: CommitId(commit.id),
        author: identity(commit.author()?),
        committer: identity(committer),
        seconds: committer.seconds(),
        message: decoded.message.to_string(),
        files,
    })
}

fn identity(signature: SignatureRef<'_>) -> Identity {
    Identity { name: signature.name.to_string(), email: signature.email.to_string() }
}
