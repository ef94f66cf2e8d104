//! Where a branch is: one question to the remote, or one look into a repository on this machine.

use std::path::Path;

use gix::protocol::{LsRefsCommand, handshake::Ref, ls_refs::RefPrefixes};
use gix_transport::Service;

use super::{
    CommitId, GitError, Options, Tip,
    address::Address,
    local,
    session::{AGENT, Session, once_more},
};

/// What a repository says about the wanted branch.
pub(super) struct Found {
    /// Where the branch is.
    pub(super) tip: Tip,
    /// Its full name, when it is known.
    pub(super) branch: Option<String>,
}

/// Checks a branch's name and gives it in full, `refs/heads/…`; so a tag of the same name is never meant.
///
/// # Errors
/// [`GitError::Branch`].
pub(super) fn full_name(branch: &str) -> Result<String, GitError> {
    let short = branch.strip_prefix("refs/heads/").unwrap_or(branch);
    let name = format!("refs/heads/{short}");
    let valid = gix::refs::FullName::try_from(name.as_str()).is_ok();
    if !valid || short.starts_with("refs/") || short.starts_with('-') || short == "HEAD" {
        return Err(GitError::Branch { branch: super::redact::printable(branch) });
    }
    Ok(name)
}

/// Asks for the tip of `branch`, or of the one that HEAD names.
pub(super) fn find(options: &Options, address: &Address, branch: Option<&str>) -> Result<Found, GitError> {
    match address {
        Address::Local(folder) => find_local(options, folder, branch),
        _ => once_more(options, address, || find_remote(options, address, branch)),
    }
}

fn find_local(options: &Options, folder: &Path, branch: Option<&str>) -> Result<Found, GitError> {
    let repository = local::open(options, folder)?;
    let corrupt = |error: gix::Error| local::corrupt(options, &error);
    let name = match branch {
        Some(name) => name.to_owned(),
        None => match repository.head_name().map_err(corrupt)? {
            Some(name) => name.as_bstr().to_string(),
            None => return Err(GitError::Ambiguous { remote: options.remote() }),
        },
    };
    let tip = match repository.try_find_reference(name.as_str()).map_err(corrupt)? {
        Some(mut reference) => Tip::Commit(CommitId(reference.peel_to_id().map_err(corrupt)?.detach())),
        None => {
            let any = repository.references().map_err(corrupt)?.all().map_err(corrupt)?.next().is_some();
            if any { Tip::Gone { branch: short(&name) } } else { Tip::Empty }
        }
    };
    Ok(Found { tip, branch: Some(name) })
}

fn find_remote(options: &Options, address: &Address, branch: Option<&str>) -> Result<Found, GitError> {
    let mut session = Session::open(options, address, Service::UploadPack)?;
    let wanted = branch.unwrap_or("HEAD");
    let refs = match session.advertised() {
        Some(refs) => refs.to_vec(),
        None => match list(&mut session, &["HEAD", wanted]) {
            Ok(refs) => refs,
            Err(error) => return Err(session.fail(&error)),
        },
    };
    let found = read(options, &refs, branch);
    if !matches!(&found, Ok(Found { tip: Tip::Gone { .. }, .. })) || refs.iter().any(|one| !is_unborn(one)) {
        return found;
    }
    // Nothing at all: is the repository empty, or is only this branch away? Costs a second question, seldom.
    drop(session);
    let mut session = Session::open(options, address, Service::UploadPack)?;
    match list(&mut session, &["refs/"]) {
        Ok(refs) if refs.iter().all(is_unborn) => Ok(Found { tip: Tip::Empty, branch: found?.branch }),
        Ok(_) => found,
        Err(error) => Err(session.fail(&error)),
    }
}

/// The `ls-refs` command of protocol version 2.
fn list(session: &mut Session, prefixes: &[&str]) -> Result<Vec<Ref>, gix::Error> {
    if let Some(refs) = session.advertised() {
        return Ok(refs.to_vec());
    }
    let mut wanted = RefPrefixes::new();
    wanted.extend(prefixes.iter().map(|&prefix| prefix.into()));
    let agent = ("agent", Some(AGENT.to_owned()));
    LsRefsCommand::new(Some(wanted), &session.handshake.capabilities, agent).invoke_blocking(
        &mut session.transport,
        &mut gix::progress::Discard,
        false,
    )
}

fn read(options: &Options, refs: &[Ref], branch: Option<&str>) -> Result<Found, GitError> {
    let name = match branch {
        Some(name) => name.to_owned(),
        None => {
            let head = refs.iter().find(|one| one.unpack().0 == "HEAD");
            match head {
                Some(Ref::Symbolic { target, .. } | Ref::Unborn { target, .. }) => target.to_string(),
                Some(_) => return Err(GitError::Ambiguous { remote: options.remote() }),
                // An old server says nothing of a HEAD that names no branch yet.
                None => return Ok(Found { tip: Tip::Gone { branch: "HEAD".into() }, branch: None }),
            }
        }
    };
    let by_name = refs.iter().find(|one| one.unpack().0 == name.as_str());
    let head = refs.iter().find(|one| matches!(one, Ref::Symbolic { target, .. } if *target == name.as_str()));
    let tip = match by_name.or(head).and_then(|one| one.unpack().1) {
        Some(id) => Tip::Commit(CommitId(id.to_owned())),
        None => Tip::Gone { branch: short(&name) },
    };
    Ok(Found { tip, branch: Some(name) })
}

fn is_unborn(one: &Ref) -> bool {
    let (name, id, _) = one.unpack();
    id.is_none_or(gix::oid::is_null) || name == "capabilities^{}"
}

/// A branch's name without `refs/heads/`.
pub(super) fn short(name: &str) -> String {
    name.strip_prefix("refs/heads/").unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::full_name;

    #[test]
    fn a_branch_is_always_meant_as_a_branch() {
        for (given, expected) in [
            ("main", Some("refs/heads/main")),
            ("refs/heads/main", Some("refs/heads/main")),
            ("team/x", Some("refs/heads/team/x")),
            ("refs/tags/v1", None),
            ("refs/remotes/origin/main", None),
            ("", None),
            ("HEAD", None),
            ("-x", None),
            ("a..b", None),
            ("a b", None),
            ("a~1", None),
            ("a^{commit}", None),
            ("x.lock", None),
            ("a\nb", None),
        ] {
            assert_eq!(full_name(given).ok().as_deref(), expected, "{given:?}");
        }
    }
}
