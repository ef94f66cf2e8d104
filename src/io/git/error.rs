//! What can go wrong with a Git repository, in words for its user.

use crate::model::failure::{Category, Problem};

use super::CommitId;

/// Why a repository could not be read. Texts of remotes in it hold no secrets and no control characters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GitError {
    /// An address that larder does not use.
    #[error("the repository address `{address}` {problem}")]
    Address {
        /// The address, without secrets.
        address: String,
        /// What is wrong with it.
        problem: &'static str,
        /// What to write instead.
        hint: &'static str,
    },
    /// A branch name that Git does not allow, or that names something else than a branch.
    #[error("`{branch}` is not a name of a branch")]
    Branch {
        /// The name that was given.
        branch: String,
    },
    /// No branch was given, and the repository's HEAD names none.
    #[error("the HEAD of {remote} is detached, so there is no branch to follow")]
    Ambiguous {
        /// The repository.
        remote: String,
    },
    /// Nothing there, or nothing that these credentials may see.
    #[error("there is no Git repository at {remote}: {detail}")]
    NotFound {
        /// The repository.
        remote: String,
        /// What was said about it.
        detail: String,
    },
    /// Credentials that are missing or refused.
    #[error("{remote} refuses the credentials: {detail}")]
    Authentication {
        /// The repository.
        remote: String,
        /// What was said about it.
        detail: String,
    },
    /// A credential file that cannot be used.
    #[error("the credentials for {remote} cannot be read: {detail}")]
    Credentials {
        /// The repository.
        remote: String,
        /// Which file, and why.
        detail: String,
    },
    /// A server's certificate that is not trusted.
    #[error("the certificate of {remote} is not trusted: {detail}")]
    Certificate {
        /// The repository.
        remote: String,
        /// What is wrong with it.
        detail: String,
    },
    /// A file of authorities that cannot be used.
    #[error("the certificates of {path} cannot be used: {detail}")]
    Authority {
        /// The file.
        path: String,
        /// Why.
        detail: String,
    },
    /// A proxy that cannot be used.
    #[error("the proxy {proxy} for Git cannot be used: {detail}")]
    Proxy {
        /// Its address, without secrets.
        proxy: String,
        /// Why.
        detail: String,
    },
    /// An ssh host that is not known, or is not the one that is known.
    #[error("the ssh host of {remote} is not trusted: {detail}")]
    HostKey {
        /// The repository.
        remote: String,
        /// The ssh program's words.
        detail: String,
    },
    /// No answer, or a broken one.
    #[error("{remote} cannot be reached: {detail}")]
    Network {
        /// The repository.
        remote: String,
        /// What was said about it.
        detail: String,
    },
    /// An HTTP status that is neither of the credentials nor of the network.
    #[error("{remote} answered with {detail}")]
    Status {
        /// The repository.
        remote: String,
        /// The status, and what it means.
        detail: String,
        /// What to do about it.
        hint: &'static str,
    },
    /// An answer that says no.
    #[error("{remote} answered: {detail}")]
    Remote {
        /// The repository.
        remote: String,
        /// Its words.
        detail: String,
    },
    /// Objects or references that are missing or broken.
    #[error("{remote} is damaged or incomplete: {detail}")]
    Corrupt {
        /// The repository.
        remote: String,
        /// What was found.
        detail: String,
    },
    /// Objects that are missing because the clone is partial.
    #[error("{remote} is a partial clone, without an object that is needed: {detail}")]
    Partial {
        /// The repository.
        remote: String,
        /// What is missing.
        detail: String,
    },
    /// Objects that are named by another hash than SHA-1, or references in a form that is not read.
    #[error("{remote} uses {format}, which larder does not support yet")]
    UnsupportedObjectFormat {
        /// The repository.
        remote: String,
        /// `sha256`, `reftable`.
        format: String,
    },
    /// A commit that the repository does not give out (any more): its history was rewritten.
    #[error("{remote} has no commit {commit} (any more)")]
    CommitGone {
        /// The repository.
        remote: String,
        /// The commit that was asked for.
        commit: CommitId,
    },
    /// A commit that is not signed by whom it must be.
    #[error("the commit {commit} of {remote} is not trusted: {detail}; it has to be signed with {expected}")]
    Untrusted {
        /// The repository.
        remote: String,
        /// The commit.
        commit: CommitId,
        /// What is wrong with its signature.
        detail: String,
        /// What it has to be signed with.
        expected: String,
        /// What to do about it.
        hint: String,
    },
    /// A file of trusted keys that cannot be used.
    #[error("{path} cannot be used: {detail}")]
    Keys {
        /// The file.
        path: String,
        /// What is wrong with it.
        detail: String,
        /// What to do about it.
        hint: String,
    },
    /// A commit of larder's own that cannot be signed, or would not be accepted.
    #[error("lock commits cannot be signed: {detail}")]
    Signing {
        /// What is in the way. Holds nothing of a key.
        detail: String,
        /// What to do about it.
        hint: String,
    },
    /// More files or bytes than a snapshot may hold.
    #[error("{remote} holds more than {limit}{}", under(path))]
    TooLarge {
        /// The repository.
        remote: String,
        /// Where; empty for an object that is at no path.
        path: String,
        /// The bound that is exceeded.
        limit: String,
    },
    /// A text that names no commit.
    #[error("{remote} has no commit `{revision}`: {detail}")]
    Revision {
        /// The repository.
        remote: String,
        /// What was asked for.
        revision: String,
        /// Why it names none.
        detail: String,
    },
    /// A path that larder will not write to or read from.
    #[error("the path `{path}` of the environment repository {problem}")]
    Path {
        /// The path, from the root of the environment repository.
        path: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A program that is needed is not there.
    #[error("the program `{program}` cannot be started: {detail}")]
    Program {
        /// Its name.
        program: String,
        /// Why.
        detail: String,
    },
    /// A file of the local machine.
    #[error("{path} cannot be used: {detail}")]
    Io {
        /// Which one.
        path: String,
        /// Why.
        detail: String,
    },
}

fn under(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!(" under `{path}`") }
}

impl GitError {
    /// What its reader can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Address { hint, .. } | Self::Status { hint, .. } => (*hint).to_owned(),
            Self::Untrusted { hint, .. } => format!("{hint}; until then the target stays as it is"),
            Self::Keys { hint, .. } | Self::Signing { hint, .. } => hint.clone(),
            Self::Branch { .. } => "give a branch, such as `--branch main`; tags cannot be followed".into(),
            Self::Revision { .. } => {
                "give a commit, a branch, a tag, or a time such as 2026-11-30 or `2 days ago`; of a repository elsewhere, a branch or a commit's 40 digits; if it is a shallow clone (CI), fetch more history".into()
            }
            Self::Ambiguous { .. } => "say which branch with `--branch`".into(),
            Self::NotFound { .. } => "check the address, and that these credentials may read the repository".into(),
            Self::Authentication { .. } => {
                "check the user name, the token or key file, and that it may read and write the repository".into()
            }
            Self::Credentials { .. } => "check that the file exists, is readable by larder and is not empty".into(),
            Self::Certificate { detail, .. } if detail.contains("UnknownIssuer") => {
                "it is by an authority that this machine does not know: name a file with that authority's certificate \
                 with --git-ca-file"
                    .into()
            }
            Self::Certificate { .. } => "compare the certificate's names and dates with the address and the clock".into(),
            Self::Authority { .. } => {
                "--git-ca-file holds certificates in PEM form, starting with -----BEGIN CERTIFICATE-----".into()
            }
            Self::Proxy { .. } => "--git-proxy takes http://HOST:PORT; its login, USER:PASSWORD, goes into a file that is \
                                   named with --git-proxy-login-file"
                .into(),
            Self::HostKey { .. } => {
                "compare the host's key with what its operator publishes, then put it into the known_hosts file that is \
                 named with --known-hosts-file; a new key may stand there beside the old one".into()
            }
            Self::Network { detail, .. } if detail.contains("the proxy wants") => {
                "name a file with USER:PASSWORD with --git-proxy-login-file".into()
            }
            Self::Network { .. } => "check the address, DNS, proxies and certificates; larder tries again".into(),
            Self::Remote { detail, remote, .. } if detail.contains("dubious ownership") => format!(
                "the repository belongs to another user: run `git config --global --add safe.directory {}` as the user \
                 that runs larder",
                remote.trim_start_matches("file://")
            ),
            Self::Remote { .. } => "the text comes from the remote; ask its operator if it is not clear".into(),
            Self::Corrupt { .. } => {
                "run `git fsck` on the repository; a damaged cache of larder can just be removed".into()
            }
            Self::Partial { .. } => {
                "`git fetch --refetch --no-filter` there brings what is missing; or read the remote itself with --repo".into()
            }
            Self::UnsupportedObjectFormat { .. } => {
                "use a repository with SHA-1 objects and files as references".into()
            }
            Self::CommitGone { .. } => {
                "the branch was rewritten meanwhile; larder starts again from its new tip".into()
            }
            Self::TooLarge { .. } => "keep large files out of the environment repository, or use `--path`".into(),
            Self::Path { .. } => "only regular files and directories can be there".into(),
            Self::Program { program, .. } if program == "ssh" => {
                "install the OpenSSH client, or use an https address".into()
            }
            Self::Program { .. } => {
                "install git: the repository has hooks or a work tree, and only git itself can serve those".into()
            }
            Self::Io { .. } => "check that larder may read and write there and that the disk is not full".into(),
        }
    }
}

impl From<GitError> for Problem {
    fn from(error: GitError) -> Self {
        Self::new(Category::Git, error.to_string()).hint(error.hint())
    }
}

/// Why a commit did not become the branch's tip. In each case nothing was changed at the remote.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// Someone else was faster: fetch the new tip, compute again, push again.
    #[error("the branch `{branch}` moved meanwhile: {detail}")]
    Raced {
        /// The branch.
        branch: String,
        /// How that was noticed.
        detail: String,
    },
    /// The branch is checked out, and Git does not move it under people's hands.
    #[error("`{branch}` is checked out in a work tree of {place}, so it is not moved")]
    CheckedOut {
        /// The branch.
        branch: String,
        /// The repository.
        place: String,
    },
    /// The work tree that would be updated holds changes that are not committed.
    #[error("the work tree of {place} is not clean, so nothing is committed to `{branch}`: {detail}")]
    Uncommitted {
        /// The branch.
        branch: String,
        /// The repository.
        place: String,
        /// Git's words.
        detail: String,
    },
    /// The remote does not want this commit. Trying again without a change will not help.
    #[error("the push to `{branch}` was refused: {message}")]
    Refused {
        /// The branch.
        branch: String,
        /// The remote's words: its hook's text and the reason in its report.
        message: String,
    },
    /// The repository could not be read or reached.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl PushError {
    /// What its reader can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Raced { .. } => "larder tries again on the new tip".into(),
            Self::CheckedOut { .. } => "name a bare repository with --repo, set `receive.denyCurrentBranch=updateInstead` in \
                                        this one, or use `--follow` to apply without locking"
                .into(),
            Self::Uncommitted { .. } => "commit or stash your changes (`git status` lists them), then try again".into(),
            Self::Refused { message, .. } if is_signature(message) => {
                "the branch wants signed commits: give larder a key with --signing-key-file and register its public half \
                 with larder's account at the forge; docs/guides/signing.md shows how"
                    .into()
            }
            Self::Refused { .. } => {
                "allow larder's account to push commits that change `lock/` to this branch (if it wants them signed, give \
                 larder a key with --signing-key-file), or use `--follow`"
                    .into()
            }
            Self::Git(error) => error.hint(),
        }
    }
}

/// Whether a refusal is about missing signatures (GitHub's GH006, GitLab's push rules, Gitea's protected branches).
fn is_signature(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    ["verified signature", "must be signed", "unsigned commit", "unverified commit", "not signed", "is unsigned"]
        .iter()
        .any(|words| message.contains(words))
}

impl From<PushError> for Problem {
    fn from(error: PushError) -> Self {
        Self::new(Category::Git, error.to_string()).hint(error.hint())
    }
}
