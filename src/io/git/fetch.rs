//! Fetching: one commit with its tree, without its history.

use std::{cell::RefCell, ops::ControlFlow, rc::Rc};

use gix::protocol::{Command, fetch::Arguments, fetch::Response};
use gix_transport::{Protocol, Service};

use crate::model::snapshot::Snapshot;

use super::{
    CommitId, GitError, Options,
    address::Address,
    cache::Cache,
    local, pack,
    session::{AGENT, Session},
    tree,
    tree::TreeError,
};

/// How much of the history before a commit is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// Nothing.
    Commit,
    /// So many commits in all.
    Commits(usize),
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
        return tree::snapshot(&repository, commit, path).map_err(|error| tree_error(options, error));
    }
    let cache = cached(options, address, commit)?;
    match tree::snapshot(&cache.repository, commit, path) {
        Err(TreeError::Object(_)) => {
            // The cache is damaged, or an earlier fetch left something out: once more from nothing. T24a
            let cache = cache.renew(&options.cache)?;
            receive(options, address, &cache, commit)?;
            tree::snapshot(&cache.repository, commit, path).map_err(|error| tree_error(options, error))
        }
        result => result.map_err(|error| tree_error(options, error)),
    }
}

/// The cache, with the tree of `commit` in it.
pub(super) fn cached(options: &Options, address: &Address, commit: CommitId) -> Result<Cache, GitError> {
    let cache = Cache::open(&options.cache)?;
    if cache.holds(commit) {
        return Ok(cache);
    }
    match receive(options, address, &cache, commit) {
        Ok(()) => Ok(cache),
        // Nothing known here may help or hinder: once more from nothing. T24a
        Err(GitError::Corrupt { .. } | GitError::Remote { .. }) if !cache.commits().is_empty() => {
            let cache = cache.renew(&options.cache)?;
            receive(options, address, &cache, commit)?;
            Ok(cache)
        }
        Err(error) => Err(error),
    }
}

fn receive(options: &Options, address: &Address, cache: &Cache, commit: CommitId) -> Result<(), GitError> {
    let known = cache.commits();
    request(options, address, &cache.repository, commit, &known, Depth::Commit)?;
    cache.add(commit)
}

/// Fetches `commit` into `repository`; `known` are commits without parents whose trees are there already.
pub(super) fn request(
    options: &Options,
    address: &Address,
    repository: &gix::Repository,
    commit: CommitId,
    known: &[gix::ObjectId],
    depth: Depth,
) -> Result<(), GitError> {
    let mut session = Session::open(options, address, Service::UploadPack)?;
    let version = session.handshake.server_protocol_version;
    let mut features = Command::Fetch.default_features(version, &session.handshake.capabilities);
    features.retain(|(name, _)| *name != "sideband-all");
    features.push(("agent", Some(AGENT.to_owned())));
    let mut arguments = Arguments::new(version, features, false);
    if arguments.can_use_shallow() {
        for id in known {
            arguments.shallow(id);
        }
        match depth {
            Depth::Commit => arguments.deepen(1),
            Depth::Commits(number) => arguments.deepen(number),
        }
    }
    if version == Protocol::V2 {
        arguments.add_feature("no-progress");
    }
    arguments.want(commit.0);
    for id in known.iter().rev().take(4) {
        arguments.have(id);
    }
    match exchange(&mut session, &mut arguments, version, repository) {
        Ok(()) => {
            session.close();
            Ok(())
        }
        Err(error) => Err(refused(options, commit, session, error)),
    }
}

fn exchange(
    session: &mut Session,
    arguments: &mut Arguments,
    version: Protocol,
    repository: &gix::Repository,
) -> Result<(), Failure> {
    let mut reader = arguments.send(&mut session.transport, true).map_err(|error| Failure::Talk(error.into()))?;
    let response = Response::from_line_reader(version, &mut reader, true, false).map_err(Failure::Talk)?;
    if !response.has_pack() {
        return Err(Failure::Pack("the answer holds no pack".into()));
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
    })
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
