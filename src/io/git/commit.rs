//! Making a lock commit: the parent's tree with some files changed.

use std::path::Path;

use gix::{
    ObjectId, Repository,
    actor::SignatureRef,
    objs::{Commit, WriteTo as _, tree::EntryKind},
    odb::memory::Storage,
};

use super::{CommitId, Draft, GitError, Identity, Options, signature, tree};
use crate::model::text::is_unseen;

/// A commit that exists in memory only.
pub(super) struct Made {
    /// Its identity.
    pub(super) id: CommitId,
    /// It and the trees and blobs that are new with it.
    pub(super) objects: Storage,
}

/// Builds the commit, signed where there is a key, or nothing if its tree would be the parent's.
///
/// # Errors
/// [`GitError::Path`] for a path that cannot be written; [`GitError::Signing`]; [`GitError::Corrupt`].
pub(super) fn make(
    options: &Options,
    repository: &Repository,
    path: &[String],
    draft: &Draft<'_>,
) -> Result<Option<Made>, GitError> {
    build(options, repository, path, draft, options.signing_key.as_deref())
}

/// As [`make`], without a signature: two commits that differ in nothing else are equal then.
///
/// # Errors
/// As [`make`].
pub(super) fn make_unsigned(
    options: &Options,
    repository: &Repository,
    path: &[String],
    draft: &Draft<'_>,
) -> Result<Option<Made>, GitError> {
    build(options, repository, path, draft, None)
}

fn build(
    options: &Options,
    repository: &Repository,
    path: &[String],
    draft: &Draft<'_>,
    key: Option<&Path>,
) -> Result<Option<Made>, GitError> {
    let mut repository = repository.clone().with_object_memory();
    let corrupt = |error: gix::Error| super::local::corrupt(options, &error);
    let old =
        repository.find_commit(draft.parent.0).and_then(|commit| Ok(commit.tree_id()?.detach())).map_err(corrupt)?;
    let Some(new) = edit(options, &repository, path, draft, old)? else {
        return Ok(None);
    };
    let (author, committer) = (Signed::new(&options.author, draft), Signed::new(&options.committer, draft));
    let mut commit = Commit {
        message: draft.message.into(),
        tree: new,
        author: author.as_ref().into(),
        committer: committer.as_ref().into(),
        encoding: None,
        parents: [draft.parent.0].into_iter().collect(),
        extra_headers: Vec::new(),
    };
    if let Some(key) = key {
        let mut bytes = Vec::new();
        commit.write_to(&mut bytes).map_err(|error| GitError::Signing {
            detail: error.to_string(),
            hint: "this is a bug in larder; please report it".into(),
        })?;
        commit.extra_headers.push((signature::HEADER.into(), signature::sign(key, &bytes)?.into()));
    }
    let id = repository.write_object(commit).map(|id| CommitId(id.detach())).map_err(corrupt)?;
    let objects = repository.objects.take_object_memory().unwrap_or_default();
    Ok(Some(Made { id, objects }))
}

fn edit(
    options: &Options,
    repository: &Repository,
    path: &[String],
    draft: &Draft<'_>,
    old: ObjectId,
) -> Result<Option<ObjectId>, GitError> {
    let corrupt = |error: gix::Error| super::local::corrupt(options, &error);
    // Without gix's own checks: they want each of people's files to be here, and to have a name that Windows takes too.
    let mut editor = repository.edit_tree(old).map_err(corrupt)?.detach();
    for (file, bytes) in draft.changes {
        let mut whole = path.to_vec();
        whole.extend(tree::components(file)?);
        check_parents(options, repository, old, &whole)?;
        let there = tree::find(repository, old, &whole).map_err(corrupt)?;
        let location = whole.iter().map(String::as_str);
        match (bytes, there) {
            (_, Some((EntryKind::Tree | EntryKind::Commit, _))) => {
                return Err(GitError::Path { path: file.clone(), problem: "is a directory, not a file" });
            }
            (None, None) => {}
            (None, Some(_)) => {
                editor.remove(location).map_err(corrupt)?;
            }
            (Some(bytes), _) => {
                let blob = repository.write_blob(bytes).map_err(corrupt)?;
                editor.upsert(location, EntryKind::Blob, blob.detach()).map_err(corrupt)?;
            }
        }
    }
    let new = editor.write(|tree| repository.write_object(tree).map(gix::Id::detach)).map_err(corrupt)?;
    Ok((new != old).then_some(new))
}

/// Every directory above a file has to be a directory: a link, submodule or file of a person is never replaced.
fn check_parents(options: &Options, repository: &Repository, root: ObjectId, path: &[String]) -> Result<(), GitError> {
    for length in 1..path.len() {
        let found = tree::find(repository, root, &path[..length]);
        match found.map_err(|error| super::local::corrupt(options, &error))? {
            Some((EntryKind::Tree, _)) => {}
            None => return Ok(()),
            Some(_) => {
                let problem = "is not a directory, so nothing can be written below it";
                return Err(GitError::Path { path: path[..length].join("/"), problem });
            }
        }
    }
    Ok(())
}

/// An identity with a time, in the form that commits use; without the characters that would break out of it.
pub(super) struct Signed {
    name: String,
    email: String,
    time: String,
}

impl Signed {
    pub(super) fn new(identity: &Identity, draft: &Draft<'_>) -> Self {
        Self::at(identity, draft.seconds)
    }

    /// The identity at a time, in seconds since 1970.
    pub(super) fn at(identity: &Identity, seconds: i64) -> Self {
        let plain = |text: &str, otherwise: &str| {
            let text: String = text.chars().filter(|&c| !(is_unseen(c) || matches!(c, '<' | '>'))).collect();
            if text.trim().is_empty() { otherwise.to_owned() } else { text.trim().to_owned() }
        };
        Self {
            name: plain(&identity.name, "larder"),
            email: plain(&identity.email, "larder@localhost"),
            time: format!("{seconds} +0000"),
        }
    }

    pub(super) fn as_ref(&self) -> SignatureRef<'_> {
        SignatureRef { name: self.name.as_str().into(), email: self.email.as_str().into(), time: &self.time }
    }
}
