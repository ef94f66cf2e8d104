//! The person who asks for a commit, by Git's own configuration: a name, and how commits are signed. Nothing else is ever
//! read from it.

use std::path::{Path, PathBuf};

use super::Identity;

/// Whom Git takes for the author of a commit in `folder`: `GIT_AUTHOR_NAME`, the repository's configuration, the
/// user's. None when either the name or the address is not known.
/// <https://git-scm.com/docs/git-commit#_commit_information>
pub fn person(folder: &Path) -> Option<Identity> {
    if let Ok(repository) = gix::discover(folder) {
        let config = repository.config_snapshot();
        return known(|key| config.string(key).map(|value| value.to_string()));
    }
    let config = gix::config::File::from_globals().ok()?;
    known(|key| config.string(key).map(|value| value.to_string()))
}

/// The first of the keys that has a value counts; the first of all are gix's names for Git's environment variables.
fn known(value: impl Fn(&str) -> Option<String>) -> Option<Identity> {
    let first = |keys: [&str; 3]| keys.iter().find_map(|key| value(key).map(|text| text.trim().to_owned()));
    let name = first(["gitoxide.author.nameFallback", "author.name", "user.name"])?;
    let email = first(["gitoxide.author.emailFallback", "author.email", "user.email"])?;
    (!name.is_empty() && !email.is_empty()).then_some(Identity { name, email })
}

/// How Git would sign a person's commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signing {
    /// Not at all.
    Unsigned,
    /// With the SSH key in this file.
    SshKey(PathBuf),
    /// In a way that larder does not know: with an OpenPGP key, with one of an agent.
    Otherwise,
}

/// How Git would sign a commit in `folder`: `commit.gpgSign`, `gpg.format` and `user.signingKey`.
/// <https://git-scm.com/docs/git-config#Documentation/git-config.txt-commitgpgSign>
pub fn signing(folder: &Path) -> Signing {
    let Ok(repository) = gix::discover(folder) else { return Signing::Unsigned };
    let config = repository.config_snapshot();
    if config.boolean("commit.gpgSign") != Some(true) {
        return Signing::Unsigned;
    }
    let is_ssh = config.string("gpg.format").is_some_and(|format| format.as_slice() == b"ssh");
    let Ok(Some(key)) = config.trusted_path("user.signingKey") else { return Signing::Otherwise };
    // Git takes the public key too, and finds the private one beside it.
    let key = if key.extension().is_some_and(|extension| extension == "pub") { key.with_extension("") } else { key };
    if is_ssh && key.is_file() { Signing::SshKey(key) } else { Signing::Otherwise }
}
