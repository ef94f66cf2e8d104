//! Signatures of commits: larder's own, and those that others' commits must have.
//!
//! Source: <https://git-scm.com/docs/gitformat-signature>; what OpenSSH signs is
//! <https://github.com/openssh/openssh-portable/blob/master/PROTOCOL.sshsig>.

mod allowed;
mod header;
mod key;
mod openpgp;
mod ssh;
#[cfg(test)]
mod tests;
mod trust;

use gix::objs::Kind;

use super::{CommitId, GitError, Options, local};

pub(super) use header::split;
pub(super) use key::sign;
pub use trust::{Signer, Trust, Trusted, Untrusted};

/// The header of a commit that holds its signature.
pub(super) const HEADER: &str = "gpgsig";

/// The largest file of keys, in bytes.
const MAX_FILE: u64 = 1024 * 1024;

/// Makes sure that a commit is signed by whom it must be, if anything is asked. Nothing but the commit itself is read.
///
/// # Errors
/// [`GitError::Untrusted`] when it is not; [`GitError::Keys`] when the trusted keys cannot be read.
pub(super) fn demand(options: &Options, repository: &gix::Repository, commit: CommitId) -> Result<(), GitError> {
    if options.trust.is_empty() {
        return Ok(());
    }
    let trusted = options.trust.load()?;
    trusted.check(&object(options, repository, commit)?).map(drop).map_err(|why| GitError::Untrusted {
        remote: options.remote(),
        commit,
        detail: why.to_string(),
        expected: trusted.expected(),
        hint: why.hint(),
    })
}

/// The bytes of a commit.
///
/// # Errors
/// [`GitError::Corrupt`].
pub(super) fn object(options: &Options, repository: &gix::Repository, commit: CommitId) -> Result<Vec<u8>, GitError> {
    local::read(repository, commit.0, Kind::Commit).map_err(|error| local::corrupt(options, &error))
}

/// Makes sure that what larder is about to commit will be accepted when it comes back: a lock commit that is not would
/// stop every pass after it.
///
/// # Errors
/// [`GitError::Signing`] when it would not be.
pub(super) fn own(options: &Options, seconds: i64) -> Result<(), GitError> {
    if options.trust.is_empty() {
        return Ok(());
    }
    let Some(file) = &options.signing_key else {
        return Err(GitError::Signing {
            detail: "no key is given, and commits of this branch have to be signed".into(),
            hint: "give larder a key with --signing-key-file and list it in --verify-signers; or use --follow".into(),
        });
    };
    let key = key::read(file)?;
    let key = key.public_key().key_data();
    options.trust.load()?.accepts(key, seconds).map_err(|why| GitError::Signing {
        detail: format!("larder's own key would not be accepted: {why}"),
        hint: format!("add the line `larder {}` to the file of --verify-signers", ssh::line(key)),
    })
}

/// Checks keys and lists of keys before the first pass, so that what is wrong with them shows at once.
///
/// # Errors
/// [`GitError::Keys`], [`GitError::Signing`].
pub(super) fn ready(options: &Options, seconds: i64) -> Result<(), GitError> {
    options.trust.load()?.ready()?;
    match &options.signing_key {
        Some(_) if !options.trust.is_empty() => own(options, seconds),
        // Signing something shows whether the key can sign at all.
        Some(file) => sign(file, b"").map(drop),
        None => Ok(()),
    }
}

/// The key that signs, as people compare it.
///
/// # Errors
/// [`GitError::Signing`].
pub(super) fn own_key(file: &std::path::Path) -> Result<String, GitError> {
    Ok(ssh::shown(key::read(file)?.public_key().key_data()))
}

/// What a commit's identity would be without its signature, and the SSH key that made that, if one did.
pub(super) fn without(commit: &[u8]) -> Option<(gix::ObjectId, Option<String>)> {
    let parts = split(commit).ok()?;
    let id = gix::objs::compute_hash(gix::hash::Kind::Sha1, Kind::Commit, &parts.payload).ok()?;
    let key = parts.signature.and_then(|signature| ssh::parse(&signature).ok());
    Some((id, key.map(|signature| ssh::shown(signature.public_key()))))
}

/// Reads a file of keys.
fn read(file: &std::path::Path) -> Result<Vec<u8>, String> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let opened = std::fs::File::open(file).and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut bytes));
    match opened {
        Err(error) => Err(error.to_string()),
        Ok(_) if bytes.len() as u64 > MAX_FILE => Err(format!("it is larger than {MAX_FILE} bytes")),
        Ok(_) => Ok(bytes),
    }
}
