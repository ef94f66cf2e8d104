//! Fetching: one commit with its tree, without its history.

use std::{cell::RefCell, ops::ControlFlow, rc::Rc};

use gix::{
    ObjectId,
    protocol::{
        Command,
        fetch::{Arguments, Response, response::ShallowUpdate},
    },
};
use gix_transport::{Protocol, Service};

use crate::model::snapshot::Snapshot;

use super::{
    CommitId, GitError, Options,
    address::Address,
    cache::{Cache, TREES},
    local, pack,
    session::{AGENT, Session},
    signature, tree,
    tree::TreeError,
};

/// What is asked of a remote.
pub(super) struct Wish<'a> {
    /// The commit that is wanted.
    pub(super) commit: CommitId,
    /// Commits whose parents are not here.
    pub(super) shallow: &'a [ObjectId],
    /// Commits that are here, so that only what differs from them has to come.
    pub(super) have: &'a [ObjectId],
    /// How many commits of history are wanted, the commit included.
    pub(super) depth: usize,
}

/// The most bytes of a remote's error messages that are kept.
const MAX_WORDS: usize = 16 * 1024;

/// The files of `commit` below `path`.
pub(super) fn snapshot(
    options: &Options,
    address: &Address,
    path: &[String],
    commit: CommitId,
) -> Result<Snapshot, GitError> {
    if let Address::Local(folder) = address {
        let repository = local::open(options, folder)?;
        if !repository.has_object(commit.0) {
            return Err(GitError::CommitGone { remote: options.remote(), commit });
        }
        signature::demand(options, &repository, commit)?;
        return tree::snapshot(&repository, commit, path).map_err(|error| tree_error(options, error));
    }
    let read = |repository: &gix::Repository| {
        signature::demand(options, repository, commit)?;
        tree::snapshot(repository, commit, path).map_err(|error| tree_error(options, error))
    };
    with_tree(options, address, commit, read).map(|(_, snapshot)| snapshot)
}

/// Does something with the cache that needs the tree of `commit`. If the cache turns out to be damaged, or an earlier
/// fetch has left something out, all is fetched anew, once (T24a).
pub(super) fn with_tree<T>(
    options: &Options,
    address: &Address,
    commit: CommitId,
    work: impl Fn(&gix::Repository) -> Result<T, GitError>,
) -> Result<(Cache, T), GitError> {
    let cache = cached(options, address, commit)?;
    match work(&cache.repository) {
        Err(GitError::Corrupt { .. }) => {
            let cache = cache.renew()?;
            receive(options, address, &cache, commit)?;
            work(&cache.repository).map(|done| (cache, done))
        }
        result => result.map(|done| (cache, done)),
    }
}

/// The cache, with the tree of `commit` in it.
fn cached(options: &Options, address: &Address, commit: CommitId) -> Result<Cache, GitError> {
    let cache = Cache::open(&options.cache, TREES)?;
    if cache.holds(commit) {
        return Ok(cache);
    }
    match receive(options, address, &cache, commit) {
        Ok(()) => Ok(cache),
        // Nothing known here may help or hinder: once more from nothing. T24a
        Err(GitError::Corrupt { .. } | GitError::Remote { .. }) if !cache.commits().is_empty() => {
            let cache = cache.renew()?;
            receive(options, address, &cache, commit)?;
            Ok(cache)
        }
        Err(error) => Err(error),
    }
}

fn receive(options: &Options, address: &Address, cache: &Cache, commit: CommitId) -> Result<(), GitError> {
    let known = cache.commits();
    // The latest are the most like what comes; more of them would only make the question longer.
    let have = &known[known.len().saturating_sub(4)..];
    request(options, address, &cache.repository, &Wish { commit, shallow: &known, have, depth: 1 })?;
    cache.add(commit)
}

/// Fetches what is wished into `repository`, and tells which commits' parents did not come or came now.
///
/// # Errors
/// [`GitError::CommitGone`] when the remote does not have the commit, or what else [`GitError`] knows of remotes.
pub(super) fn request(
    options: &Options,
    address: &Address,
    repository: &gix::Repository,
    wish: &Wish<'_>,
) -> Result<Vec<ShallowUpdate>, GitError> {
    let mut session = Session::open(options, address, Service::UploadPack)?;
    let version = session.handshake.server_protocol_version;
    let mut features = Command::Fetch.default_features(version, &session.handshake.capabilities);
    features.retain(|(name, _)| *name != "sideband-all");
    features.push(("agent", Some(AGENT.to_owned())));
    let mut arguments = Arguments::new(version, features, false);
    if arguments.can_use_shallow() {
        for id in wish.shallow {
            arguments.shallow(id);
        }
        arguments.deepen(wish.depth);
    }
    if version == Protocol::V2 {
        arguments.add_feature("no-progress");
    }
    arguments.want(wish.commit.0);
    for id in wish.have {
        arguments.have(id);
    }
    match exchange(&mut session, &mut arguments, version, repository) {
        Ok(shallow) => {
            session.close();
            Ok(shallow)
        }
        Err(error) => Err(refused(options, wish.commit, session, error)),
    }
}

fn exchange(
    session: &mut Session,
    arguments: &mut Arguments,
    version: Protocol,
    repository: &gix::Repository,
) -> Result<Vec<ShallowUpdate>, Failure> {
    let mut reader = arguments.send(&mut session.transport, true).map_err(|error| Failure::Talk(error.into()))?;
    let response = Response::from_line_reader(version, &mut reader, true, false).map_err(Failure::Talk)?;
    if !response.has_pack() {
        return Err(Failure::Pack("the answer holds no pack".into()));
    }
    // With the old protocol an error comes in place of the pack, and without a side band.
    if let Some(Ok(Ok(line))) = reader.peek_data_line()
        && let Some(words) = line.strip_prefix(b"ERR ")
    {
        return Err(Failure::Words(String::from_utf8_lossy(words).into_owned()));
    }
    let errors = Rc::new(RefCell::new(Vec::new()));
    let said = Rc::clone(&errors);
    reader.set_progress_handler(Some(Box::new(move |is_error, text: &[u8]| {
        let mut said = said.borrow_mut();
        if is_error && said.len() < MAX_WORDS {
            said.extend_from_slice(text);
        }
        ControlFlow::Continue(())
    })));
    pack::store(repository, &mut reader).map_err(|error| {
        let words = String::from_utf8_lossy(&errors.borrow()).into_owned();
        if words.is_empty() { Failure::Pack(local::text(&error)) } else { Failure::Words(words) }
    })?;
    Ok(response.shallow_updates().to_vec())
}

/// How an exchange ended.
enum Failure {
    /// In the conversation.
    Talk(gix::Error),
    /// The remote said why.
    Words(String),
    /// In the pack that came.
    Pack(String),
}

fn refused(options: &Options, commit: CommitId, session: Session, error: Failure) -> GitError {
    let remote = options.remote();
    let error = match error {
        Failure::Pack(detail) => return GitError::Corrupt { remote, detail: session.clean(&detail) },
        Failure::Words(words) => GitError::Remote { remote, detail: session.clean(&words) },
        Failure::Talk(error) => session.fail(&error),
    };
    // What upload-pack says for an object that it does not have or does not give out.
    match &error {
        GitError::Remote { detail, .. }
            if ["not our ref", "no such remote ref", "unadvertised object"]
                .iter()
                .any(|words| detail.contains(words)) =>
        {
            GitError::CommitGone { remote: options.remote(), commit }
        }
        _ => error,
    }
}

/// A tree's error with the repository's name.
pub(super) fn tree_error(options: &Options, error: TreeError) -> GitError {
    let remote = options.remote();
    match error {
        TreeError::Object(detail) => GitError::Corrupt { remote, detail },
        TreeError::Limit(path, limit) => GitError::TooLarge { remote, path, limit },
        TreeError::Git(error) => error,
    }
}
