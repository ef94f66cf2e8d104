//! The person who asks for a commit, by Git's own configuration. Nothing else is ever read from it.

use std::path::Path;

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
