//! The environment repository in Git: its tip, its files at one commit, lock commits, history. Blocking code.
//!
//! A repository on this machine is read and written in place, without a git program; only where git itself has to act
//! (hooks, a checked-out work tree) its own receiver is started. Every other repository is fetched, one commit deep,
//! into a small cache; what is pushed is built from that cache and sent as one compare-and-swap of the branch.
//! Nothing is read from the user's own Git configuration but the name of a person who asks for a commit, and nothing ever
//! asks at a terminal.

mod address;
mod cache;
mod commit;
mod credentials;
mod error;
mod fetch;
mod folders;
mod history;
mod http;
mod local;
mod pack;
mod person;
mod process;
mod push;
mod redact;
mod refs;
mod remote_error;
mod report;
mod session;
mod shown;
mod side;
mod signature;
mod sparse;
mod tree;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::PathBuf,
    str::FromStr,
};

pub use credentials::Credentials;
pub use error::{GitError, PushError};
pub use folders::Folders;
pub use history::{Ledger, LockingCommit, Query, Trace, Until};
pub use http::Network;
pub use person::{Signing, person, signing};
pub(crate) use redact::Redactor;
pub use side::Rebuilt;
pub use signature::{Signer, Trust, Trusted, Untrusted};
pub use sparse::left_out;

use crate::model::snapshot::Snapshot;
use address::Address;

/// The identity of a commit: 40 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId(pub(crate) gix::ObjectId);

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A text is not a commit's identity: 40 hexadecimal digits are expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a commit: 40 hexadecimal digits are expected")]
pub struct CommitIdError(String);

impl FromStr for CommitId {
    type Err = CommitIdError;

    fn from_str(text: &str) -> Result<Self, CommitIdError> {
        gix::ObjectId::from_hex(text.as_bytes()).map(Self).map_err(|_| CommitIdError(text.chars().take(60).collect()))
    }
}

/// A person or a program, as commits name them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The name.
    pub name: String,
    /// The e-mail address.
    pub email: String,
}

/// Which repository, and how to use it.
#[derive(Clone)]
pub struct Options {
    /// A local path, `file://`, `http(s)://`, `ssh://` or `user@host:path`; without a password.
    pub url: String,
    /// The branch; without one, the branch that the repository's HEAD names.
    pub branch: Option<String>,
    /// The directory of the repository that is the environment repository; without one, its root.
    pub path: Option<String>,
    /// A directory of larder's own for what is fetched. It may be removed at any time.
    pub cache: PathBuf,
    /// Where the credentials are.
    pub credentials: Credentials,
    /// The way there, for http(s).
    pub network: Network,
    /// Who writes lock commits.
    pub author: Identity,
    /// Who commits them.
    pub committer: Identity,
    /// A file with the OpenSSH private key that signs what larder commits; none: it is not signed.
    pub signing_key: Option<PathBuf>,
    /// Who has to have signed a commit whose files are read.
    pub trust: Trust,
    /// What becomes of a work tree in which the branch is checked out.
    pub checkout: Checkout,
}

/// What becomes of a local work tree, when its checked-out branch is moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checkout {
    /// What the repository's `receive.denyCurrentBranch` says: Git refuses by default.
    #[default]
    AsConfigured,
    /// It is updated, if nothing in it is uncommitted. For people who work in it.
    Update,
}

impl fmt::Debug for Options {
    /// Without what might be secret in the address.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { branch, path, cache, credentials, network, .. } = self;
        let mut out = f.debug_struct("Options");
        out.field("url", &self.remote()).field("branch", branch).field("path", path);
        out.field("cache", cache).field("credentials", credentials);
        // Without the proxy's address, where people put logins too.
        out.field("ca_file", &network.ca_file).finish_non_exhaustive()
    }
}

impl Options {
    /// The repository's address as it may be shown.
    fn remote(&self) -> String {
        redact::address(&self.url)
    }
}

/// Where the branch is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tip {
    /// At this commit.
    Commit(CommitId),
    /// Nowhere, as the repository has no references at all yet.
    Empty,
    /// Nowhere, though the repository has other references: the branch was removed or renamed.
    Gone {
        /// Its name.
        branch: String,
    },
}

/// A lock commit to be made.
#[derive(Clone, Copy, Debug)]
pub struct Draft<'a> {
    /// Its parent: the tip from which `changes` were computed.
    pub parent: CommitId,
    /// Paths from the root of the environment repository → new bytes, or `None` to delete.
    pub changes: &'a BTreeMap<String, Option<Vec<u8>>>,
    /// The commit's message.
    pub message: &'a str,
    /// The commit's time, in seconds since 1970 (UTC).
    pub seconds: i64,
}

/// What a push did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// The branch is at this new commit, or already beyond it.
    Commit(CommitId),
    /// The files are like that already; no commit was made.
    Nothing,
}

/// An environment repository in Git.
#[derive(Debug)]
pub struct Repository {
    options: Options,
    address: Address,
    /// The directory that is the environment repository, as components.
    path: Vec<String>,
    /// The branch in full, `refs/heads/…`: as configured, or as HEAD named it when the tip was last asked for.
    branch: Option<String>,
}

impl Repository {
    /// Checks the options. Touches neither network nor disk.
    ///
    /// # Errors
    /// [`GitError::Address`], [`GitError::Proxy`], [`GitError::Branch`] or [`GitError::Path`].
    pub fn open(options: Options) -> Result<Self, GitError> {
        let address = address::parse(&options.url)?;
        options.network.check()?;
        let branch = options.branch.as_deref().map(refs::full_name).transpose()?;
        let path = tree::components(options.path.as_deref().unwrap_or_default())?;
        Ok(Self { options, address, path, branch })
    }

    /// The repository's address as it may be shown.
    pub fn remote(&self) -> String {
        self.options.remote()
    }

    /// The branch that is followed, without `refs/heads/`, as far as it is known.
    pub fn branch(&self) -> Option<&str> {
        self.branch.as_deref().and_then(|name| name.strip_prefix("refs/heads/"))
    }

    /// Where a repository on this machine is; none for one elsewhere. Its `work_tree` is that of the environment repository.
    ///
    /// # Errors
    /// [`GitError`], when there is none now.
    pub fn folders(&self) -> Result<Option<Folders>, GitError> {
        folders::find(&self.options, &self.address)
    }

    /// Makes sure that keys, and lists of keys, can be used, and that larder's own commits will be accepted; `seconds`
    /// is the time. Touches no network.
    ///
    /// # Errors
    /// [`GitError::Keys`], [`GitError::Signing`].
    pub fn check_keys(&self, seconds: i64) -> Result<(), GitError> {
        signature::ready(&self.options, seconds)
    }

    /// Where the branch is now. One question to the remote beside the handshake, and nothing else.
    ///
    /// # Errors
    /// [`GitError`].
    pub fn tip(&mut self) -> Result<Tip, GitError> {
        let configured = self.options.branch.as_deref().map(refs::full_name).transpose()?;
        let found = refs::find(&self.options, &self.address, configured.as_deref())?;
        self.branch = found.branch.or(configured);
        Ok(found.tip)
    }

    /// The commit that is checked out without a branch in a repository on this machine, as in CI, where none is configured:
    /// enough to read its history.
    ///
    /// # Errors
    /// [`GitError`].
    pub fn detached(&self) -> Result<Option<CommitId>, GitError> {
        match &self.address {
            Address::Local(folder) if self.options.branch.is_none() => {
                let repository = local::open(&self.options, folder)?;
                let head = repository.head().map_err(|error| local::corrupt(&self.options, &error))?;
                Ok(head.is_detached().then(|| head.id()).flatten().map(|id| CommitId(id.detach())))
            }
            _ => Ok(None),
        }
    }

    /// The commit that a revision names: for a repository on this machine whatever Git understands (`main`, `HEAD~1`,
    /// `v1`, the beginning of a hash), for another one a full id, a branch or a tag.
    ///
    /// # Errors
    /// [`GitError::Revision`] when it names none.
    pub fn revision(&mut self, revision: &str) -> Result<CommitId, GitError> {
        if let Ok(id) = revision.parse() {
            return fetch::peeled(&self.options, &self.address, id);
        }
        let unknown = || GitError::Revision {
            remote: self.options.remote(),
            revision: redact::printable(revision),
            detail: "it names no commit".to_owned(),
        };
        if let Address::Local(folder) = &self.address {
            let repository = local::open(&self.options, folder)?;
            let object = repository.rev_parse_single(revision).map_err(|_| unknown())?.object();
            let commit = object.and_then(gix::Object::peel_to_commit).map_err(|_| unknown())?;
            return Ok(CommitId(commit.id));
        }
        let branch = refs::full_name(revision).map_err(|_| unknown())?;
        let tag = branch.replacen("refs/heads/", "refs/tags/", 1);
        for name in [&branch, &tag] {
            if let Tip::Commit(id) = refs::find(&self.options, &self.address, Some(name))?.tip {
                return fetch::peeled(&self.options, &self.address, id);
            }
        }
        Err(unknown())
    }

    /// The files of a commit; it is fetched if it is not in the cache. Where commits have to be signed, this one is
    /// checked before any file of it is read.
    ///
    /// # Errors
    /// [`GitError`]; [`GitError::Untrusted`] when it is not signed by whom it must be; [`GitError::CommitGone`] when the remote does not give that commit out.
    pub fn fetch(&mut self, commit: &CommitId) -> Result<Snapshot, GitError> {
        fetch::snapshot(&self.options, &self.address, &self.path, *commit)
    }

    /// The same error, or what is known better: that a local repository is a partial clone.
    pub fn explained(&self, error: GitError) -> GitError {
        match (error, &self.address) {
            (GitError::Corrupt { remote, detail }, Address::Local(folder))
                if local::is_partial(&self.options, folder) =>
            {
                GitError::Partial { remote, detail }
            }
            (error, _) => error,
        }
    }

    /// Whether a commit is read only when a trusted key has signed it.
    pub fn wants_signatures(&self) -> bool {
        !self.options.trust.is_empty()
    }

    /// Whether `tip` descends from `from`, or is it.
    ///
    /// # Errors
    /// As [`Self::ledger`].
    pub fn descends(&mut self, tip: CommitId, from: CommitId) -> Result<bool, GitError> {
        for reach in [history::LATEST, history::HISTORY] {
            if history::contains(&self.options, &self.address, tip, from, reach)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Makes a commit on top of `draft.parent` and moves the branch to it, if the branch is still at that parent.
    ///
    /// # Errors
    /// [`PushError::Raced`] when it is not; [`PushError::Refused`] when the remote does not want it.
    pub fn commit_and_push(&mut self, draft: &Draft<'_>) -> Result<Pushed, PushError> {
        let branch = match &self.branch {
            Some(branch) => branch.clone(),
            None => {
                self.tip()?;
                let remote = self.options.remote();
                self.branch.clone().ok_or(GitError::Ambiguous { remote })?
            }
        };
        push::commit_and_push(&self.options, &self.address, &self.path, &branch, draft)
    }

    /// The history of a commit, to be read; a remote's is fetched first, or what is new of it. Where commits have to be
    /// signed, this one is checked first.
    ///
    /// # Errors
    /// [`GitError`]; [`GitError::CommitGone`] when the remote does not give that commit out.
    pub fn ledger(&mut self, tip: &CommitId) -> Result<Ledger, GitError> {
        Ledger::open(&self.options, &self.address, &self.path, self.branch(), *tip, history::HISTORY)
    }

    /// The changes of some lockfiles in the latest `limit` commits below `tip`. Of a remote no more than these are
    /// fetched, into a cache of their own.
    ///
    /// # Errors
    /// As [`Self::ledger`].
    pub fn trace(&mut self, tip: &CommitId, paths: BTreeSet<String>, limit: usize) -> Result<Trace, GitError> {
        self.latest(tip, limit)?.trace(paths, limit)
    }

    /// As [`Self::ledger`], with the latest `limit` commits only, if they are elsewhere.
    ///
    /// # Errors
    /// As [`Self::ledger`].
    pub fn latest(&mut self, tip: &CommitId, limit: usize) -> Result<Ledger, GitError> {
        let reach = (history::LATEST.0, limit.max(history::LATEST.1));
        Ledger::open(&self.options, &self.address, &self.path, self.branch(), *tip, reach)
    }
}
