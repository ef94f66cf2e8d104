//! The environment repository of the demonstration: a bare repository that a person commits to.

use std::{collections::BTreeMap, path::Path, time::SystemTime};

use gix::objs::tree::EntryKind;

use crate::model::failure::{Category, Problem};

/// The branch of the demonstration.
pub const BRANCH: &str = "refs/heads/main";

/// Commits these files on top of the branch's tip, as a person; `None` removes a file. Makes the repository when there
/// is none.
pub fn commit(folder: &Path, changes: &BTreeMap<String, Option<Vec<u8>>>, message: &str) -> Result<(), Problem> {
    try_commit(folder, changes, message).map_err(|error| {
        Problem::new(Category::Git, format!("the demonstration's repository cannot be written: {error}"))
    })
}

fn try_commit(
    folder: &Path,
    changes: &BTreeMap<String, Option<Vec<u8>>>,
    message: &str,
) -> Result<(), Box<dyn std::error::Error>> {
    let repository = if folder.join("HEAD").exists() { gix::open(folder)? } else { gix::init_bare(folder)? };
    let parent =
        repository.try_find_reference(BRANCH)?.map(|mut tip| tip.peel_to_id()).transpose()?.map(gix::Id::detach);
    let tree = match parent {
        Some(parent) => repository.find_commit(parent)?.tree()?,
        None => repository.empty_tree(),
    };
    let mut editor = tree.edit()?;
    for (path, bytes) in changes {
        match bytes {
            Some(bytes) => editor.upsert(path.as_str(), EntryKind::Blob, repository.write_blob(bytes)?)?,
            None => editor.remove(path.as_str())?,
        };
    }
    let tree = editor.write()?;
    let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs();
    let time = format!("{seconds} +0000");
    let person = gix::actor::SignatureRef { name: "Ada".into(), email: "ada@example.com".into(), time: &time };
    repository.commit_as(person, person, BRANCH, message, tree, parent)?;
    Ok(())
}
