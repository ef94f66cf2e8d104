//! Fetching: one commit with its tree, without its history.

use std::{
    cell::RefCell,
    io::{self, BufRead, Read},
    ops::ControlFlow,
    rc::Rc,
};

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
    session::{AGENT, Session, once_more},
    signature, tree,
    tree::{Absent, TreeError},
};

/// What is asked of a remote.
#[derive(Clone, Copy, Default)]
pub(super) struct Wish<'a> {
    /// The commit that is wanted, or single files.
    pub(super) want: &'a [ObjectId],
    /// Commits whose parents are not here.
    pub(super) shallow: &'a [ObjectId],
    /// Commits that are here, so that only what differs from them has to come.
    pub(super) have: &'a [ObjectId],
    /// How many commits of history are wanted, the commit included; none for what is not a commit.
    pub(super) depth: Option<usize>,
    /// What is left out, where the remote is able to do so. Source:
    /// <https://git-scm.com/docs/git-rev-list#Documentation/git-rev-list.txt---filterltfilter-specgt>.
    pub(super) filter: Option<&'static str>,
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
        return tree::snapshot(&repository, commit, path, Absent::Missing).map_err(|error| tree_error(options, error));
    }
    let read = |repository: &gix::Repository, absent| {
        signature::demand(options, repository, commit)?;
        tree::snapshot(repository, commit, path, absent).map_err(|error| tree_error(options, error))
    };
    with_tree(options, address, commit, read).map(|(_, snapshot)| snapshot)
}

/// The commit that an id names: itself, or what an annotated tag points to. An id that is not here stays as it is.
pub(super) fn peeled(options: &Options, address: &Address, id: CommitId) -> Result<CommitId, GitError> {
    let peel = |repository: &gix::Repository| {
        let Ok(Some(object)) = repository.try_find_object(id.0) else { return Ok(id) };
        let commit = object.peel_to_commit().map_err(|error| local::corrupt(options, &error))?;
        Ok(CommitId(commit.id))
    };
    if let Address::Local(folder) = address {
        return peel(&local::open(options, folder)?);
    }
    let cache = Cache::open(&options.cache, TREES)?;
    if !cache.holds(id) {
        // Without the list of what is here: a tag is not a commit whose parents are missing.
        let wish = Wish { want: &[id.0], depth: Some(1), filter: Some(WITHOUT_LARGE), ..Wish::default() };
        request(options, address, &cache.repository, &wish)?;
    }
    let commit = peel(&cache.repository)?;
    cache.add(commit)?;
    Ok(commit)
}

/// What is fetched of a commit's files: those that are read, of up to [`walk::MAX_FILE`](crate::io::walk::MAX_FILE) bytes. Others would cost memory,
/// disk and time for nothing. A remote that cannot leave them out sends all.
const WITHOUT_LARGE: &str = "blob:limit=1048577";

/// Does something with the cache that needs the tree of `commit`. If the cache turns out to be damaged, or an earlier
/// fetch has left something out, all is fetched again, once; what is not there then was too large.
pub(super) fn with_tree<T>(
    options: &Options,
    address: &Address,
    commit: CommitId,
    work: impl Fn(&gix::Repository, Absent) -> Result<T, GitError>,
) -> Result<(Cache, T), GitError> {
    let cache = cached(options, address, commit)?;
    match work(&cache.repository, Absent::Missing) {
        Err(GitError::Corrupt { .. }) => {
            let cache = cache.renew()?;
            receive(options, address, &cache, commit)?;
            work(&cache.repository, Absent::TooLarge).map(|done| (cache, done))
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
        // Nothing known here may help or hinder: once more from nothing.
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
    let wish = Wish { want: &[commit.0], shallow: &known, have, depth: Some(1), filter: Some(WITHOUT_LARGE) };
    request(options, address, &cache.repository, &wish)?;
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
    let ask = |wish: &Wish<'_>| once_more(options, address, || request_once(options, address, repository, wish));
    match ask(wish) {
        // It can leave something out, but not this (`uploadpackfilter.<filter>.allow`).
        Err(GitError::Remote { detail, .. }) if wish.filter.is_some() && detail.contains("filter") => {
            ask(&Wish { filter: None, ..*wish })
        }
        result => result,
    }
}

fn request_once(
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
    if arguments.can_use_shallow()
        && let Some(depth) = wish.depth
    {
        for id in wish.shallow {
            arguments.shallow(id);
        }
        arguments.deepen(depth);
    }
    if version == Protocol::V2 {
        arguments.add_feature("no-progress");
        // Of the old protocol one cannot ask for what was left out.
        if let Some(filter) = wish.filter.filter(|_| arguments.can_use_filter()) {
            arguments.filter(filter);
        }
    }
    for id in wish.want {
        arguments.want(id);
    }
    for id in wish.have {
        arguments.have(id);
    }
    match exchange(&mut session, &mut arguments, version, repository) {
        Ok(shallow) => {
            session.close();
            Ok(shallow)
        }
        Err(error) => Err(refused(options, wish, session, error)),
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
    let mut line = Line { inner: &mut reader, broken: None };
    let stored = pack::store(repository, &mut line);
    let broken = line.broken.take();
    stored.map_err(|error| {
        let words = String::from_utf8_lossy(&errors.borrow()).into_owned();
        match broken {
            _ if !words.is_empty() => Failure::Words(words),
            Some(error) => Failure::Line(error),
            None if error.classify().is_resource_exhausted() => Failure::TooLarge,
            None => Failure::Pack(local::text(&error)),
        }
    })?;
    Ok(response.shallow_updates().to_vec())
}

/// How an exchange ended.
enum Failure {
    /// In the conversation.
    Talk(gix::Error),
    /// The remote said why.
    Words(String),
    /// The pack did not come to its end.
    Line(String),
    /// In the pack that came.
    Pack(String),
    /// The pack holds an object that would not fit into memory.
    TooLarge,
}

/// What a pack comes over. A line that breaks is no fault of the pack's: what is here already is kept, and all the next
/// request has to bring is the rest.
struct Line<'a> {
    inner: &'a mut dyn BufRead,
    broken: Option<String>,
}

impl Read for Line<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer);
        self.broken = read.as_ref().err().map(ToString::to_string).or(self.broken.take());
        read
    }
}

impl BufRead for Line<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self.inner.fill_buf() {
            Ok(bytes) => Ok(bytes),
            Err(error) => {
                self.broken = Some(error.to_string());
                Err(error)
            }
        }
    }

    fn consume(&mut self, amount: usize) {
        self.inner.consume(amount);
    }
}

fn refused(options: &Options, wish: &Wish<'_>, session: Session, error: Failure) -> GitError {
    let remote = options.remote();
    let error = match error {
        Failure::TooLarge => {
            return GitError::TooLarge { remote, path: String::new(), limit: pack::too_large() };
        }
        Failure::Pack(detail) => return GitError::Corrupt { remote, detail: session.clean(&detail) },
        Failure::Line(detail) => return GitError::Network { remote, detail: session.clean(&detail) },
        Failure::Words(words) => GitError::Remote { remote, detail: session.clean(&words) },
        Failure::Talk(error) => session.fail(&error),
    };
    // What upload-pack says for an object that it does not have or does not give out.
    match (&error, wish.want) {
        (GitError::Remote { detail, .. }, [commit])
            if ["not our ref", "no such remote ref", "unadvertised object"]
                .iter()
                .any(|words| detail.contains(words)) =>
        {
            GitError::CommitGone { remote: options.remote(), commit: CommitId(*commit) }
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
