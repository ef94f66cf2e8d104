//! A repository on this machine, read and written in place.

use std::{fs, path::Path};

use gix::{
    error::bail,
    objs::Kind,
    refs::{
        Target,
        transaction::{Change, LogChange, PreviousValue, RefEdit, RefLog},
    },
};

use super::{CommitId, GitError, Options, PushError, pack, refs::short};

/// The hooks that git runs for a push; where one of them is there, git itself has to take the push.
const HOOKS: [&str; 6] =
    ["pre-receive", "update", "proc-receive", "reference-transaction", "post-receive", "post-update"];

/// The most bytes of one object that are unpacked: a commit or a tree of more is not read. Files have a bound of their own.
const MAX_OBJECT: usize = 16 * 1024 * 1024;

/// How every repository is opened, larder's cache included: with the repository's own configuration only, and with each
/// object read as what its identity was computed from. Anyone who may push may push `refs/replace/`, too.
/// <https://git-scm.com/docs/git-replace>
pub(super) fn as_it_is() -> gix::open::Options {
    let limit = format!("gitoxide.objects.allocLimit={MAX_OBJECT}");
    gix::open::Options::isolated().strict_config(false).config_overrides(["core.useReplaceRefs=false", limit.as_str()])
}

/// The bound that an object exceeds which could not be unpacked.
pub(super) fn too_large() -> String {
    format!("{} MiB in one object", MAX_OBJECT >> 20)
}

/// The bytes of an object, which are certainly those that its identity was computed from, wherever they are stored.
///
/// # Errors
/// When it is missing, broken, of another kind, or holds what belongs to another identity.
pub(super) fn read(repository: &gix::Repository, id: gix::ObjectId, kind: Kind) -> Result<Vec<u8>, gix::Error> {
    let object = repository.find_object(id)?;
    if object.kind != kind {
        bail!("{id} is a {}, where a {kind} is expected", object.kind);
    }
    let found = gix::objs::compute_hash(gix::hash::Kind::Sha1, kind, &object.data)?;
    if found != id {
        bail!("the object {id} holds what belongs to {found}");
    }
    Ok(object.detach().data)
}

/// Opens the repository at `folder`, without looking for one above it and without the user's configuration.
///
/// # Errors
/// [`GitError::NotFound`], [`GitError::UnsupportedObjectFormat`], [`GitError::Corrupt`].
pub(super) fn open(options: &Options, folder: &Path) -> Result<gix::Repository, GitError> {
    let opened: Result<gix::Repository, _> = as_it_is().open(folder).map(Into::into);
    match opened {
        Ok(repository) => {
            let references = repository.config_snapshot().string("extensions.refStorage").map(|name| name.to_string());
            let references = references.filter(|name| name != "files");
            let hash = repository.object_hash();
            let format = references.or_else(|| (hash != gix::hash::Kind::Sha1).then(|| hash.to_string()));
            match format {
                Some(format) => Err(GitError::UnsupportedObjectFormat { remote: options.remote(), format }),
                None => Ok(repository),
            }
        }
        Err(error) => {
            let remote = options.remote();
            if let Some(format) = unsupported(folder) {
                return Err(GitError::UnsupportedObjectFormat { remote, format });
            }
            let detail = text(&error);
            Err(if is_repository(folder) {
                GitError::Corrupt { remote, detail }
            } else {
                GitError::NotFound { remote, detail }
            })
        }
    }
}

/// Whether a repository is a clone that was made without some objects.
/// <https://git-scm.com/docs/partial-clone>
pub(super) fn is_partial(options: &Options, folder: &Path) -> bool {
    open(options, folder).is_ok_and(|repository| {
        let config = repository.config_snapshot();
        config.string("extensions.partialClone").is_some()
            || config
                .plumbing()
                .sections_by_name("remote")
                .is_some_and(|mut remotes| remotes.any(|one| one.value("promisor").is_some()))
    })
}

/// What git's own rule takes for a repository: a HEAD, objects and refs, or a `.git` that leads there.
fn is_repository(folder: &Path) -> bool {
    folder.join(".git").exists() || (folder.join("HEAD").exists() && folder.join("objects").exists())
}

/// The extension of the repository that is the reason why it cannot be opened.
fn unsupported(folder: &Path) -> Option<String> {
    let config = [folder.join("config"), folder.join(".git/config")];
    let text = config.iter().find_map(|file| fs::read_to_string(file).ok())?.to_ascii_lowercase();
    let values = text.lines().filter_map(|line| line.split_once('=')).map(|(key, value)| (key.trim(), value.trim()));
    values.into_iter().find_map(|(key, value)| match (key, value) {
        ("objectformat", "sha256") | ("refstorage", "reftable") => Some(value.to_owned()),
        _ => None,
    })
}

/// Something in a local repository that cannot be read.
pub(super) fn corrupt(options: &Options, error: &gix::Error) -> GitError {
    if error.classify().is_resource_exhausted() {
        return GitError::TooLarge { remote: options.remote(), path: String::new(), limit: too_large() };
    }
    GitError::Corrupt { remote: options.remote(), detail: text(error) }
}

/// An error with all that it comes from, in one line.
pub(super) fn text(error: &gix::Error) -> String {
    let texts: Vec<String> = error.iter_errors().map(ToString::to_string).collect();
    super::redact::printable(&texts.join(": "))
}

/// Whether only git itself may move a branch of this repository: it has a work tree (its own or a linked one), hooks that a
/// push runs, or settings for pushes, the user's included.
pub(super) fn needs_git(repository: &gix::Repository) -> bool {
    let users = gix::config::File::from_globals().ok();
    let own = repository.config_snapshot();
    let configured = own.string("core.hooksPath").or_else(|| users.as_ref()?.string("core.hooksPath"));
    let hooks = match configured {
        Some(path) => repository.git_dir().join(path.to_string()),
        None => repository.common_dir().join("hooks"),
    };
    let linked = fs::read_dir(repository.common_dir().join("worktrees")).is_ok_and(|mut trees| trees.next().is_some());
    !repository.is_bare()
        || linked
        || has_rules(own.plumbing())
        || users.as_ref().is_some_and(has_rules)
        || HOOKS.iter().any(|hook| is_executable(&hooks.join(hook)))
}

/// Whether a configuration says which pushes are taken: `receive.denyNonFastForwards`, `receive.fsckObjects` and others.
fn has_rules(config: &gix::config::File) -> bool {
    ["receive", "transfer"].iter().any(|name| config.sections_by_name(name).is_some_and(|mut all| all.next().is_some()))
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(file).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(file: &Path) -> bool {
    file.is_file()
}

/// Writes new objects into the repository, in a way that leaves its owner able to write there too.
///
/// # Errors
/// [`GitError::Io`].
pub(super) fn write(repository: &gix::Repository, objects: &gix::odb::memory::Storage) -> Result<(), GitError> {
    let fail =
        |error: gix::Error| GitError::Io { path: repository.common_dir().display().to_string(), detail: text(&error) };
    if repository.git_dir_trust() == gix::sec::Trust::Full {
        for (kind, data) in objects.values() {
            gix::objs::Write::write_buf(&repository.objects, *kind, data).map_err(fail)?;
        }
        return Ok(());
    }
    // Single objects would bring new directories, in which only larder's user could write from then on.
    let pack = pack::encode(objects)?;
    pack::store(repository, &mut pack.as_slice()).map_err(fail)
}

/// Moves `branch` from `parent` to `commit`, if it is still at `parent`.
///
/// # Errors
/// [`PushError::Raced`] when it is not, or when another writer holds its lock.
pub(super) fn swap(
    options: &Options,
    repository: &gix::Repository,
    branch: &str,
    (parent, commit): (CommitId, CommitId),
    committer: gix::actor::SignatureRef<'_>,
) -> Result<(), PushError> {
    let corrupt = |error: &gix::Error| PushError::Git(corrupt(options, error));
    let name = gix::refs::FullName::try_from(branch).map_err(|_| GitError::Branch { branch: branch.to_owned() })?;
    let edit = RefEdit {
        change: Change::Update {
            log: LogChange { mode: RefLog::AndReference, force_create_reflog: false, message: "push".into() },
            expected: PreviousValue::MustExistAndMatch(Target::Object(parent.0)),
            new: Target::Object(commit.0),
        },
        name,
        deref: true,
    };
    let Err(error) = repository.edit_references_as([edit], Some(committer)) else {
        return Ok(());
    };
    // Whatever the reason was said to be: a branch that is elsewhere, or is being written, is a lost race.
    let now = repository.try_find_reference(branch).map_err(|error| corrupt(&error))?;
    let now = now.and_then(|reference| reference.try_id().map(gix::Id::detach));
    let locked = repository.common_dir().join(format!("{branch}.lock")).exists();
    if now != Some(parent.0) || locked {
        return Err(PushError::Raced { branch: short(branch), detail: text(&error) });
    }
    Err(GitError::Io { path: repository.common_dir().display().to_string(), detail: text(&error) }.into())
}
