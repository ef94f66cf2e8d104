//! Answers to auditors' questions, from lockfiles at commits and the changes between them.

mod blame;
#[cfg(test)]
mod tests;
mod trailers;
mod wanted;
mod who_ran;

pub use self::{
    blame::Blamer,
    trailers::Trailers,
    wanted::{Wanted, WantedError},
    who_ran::Spans,
};

use super::lockfile::{self, diff, environment_of, in_commit};
use crate::model::{
    history::{CommitInfo, Difference, FileChange, State, StateRow},
    lock::Lockfile,
    name::EnvironmentId,
};

/// The whole lock at a commit, whose lockfiles are the new sides of `files`.
pub fn state(commit: CommitInfo, files: &[FileChange]) -> State {
    let mut state = State { commit, images: Vec::new(), problems: Vec::new() };
    for file in files {
        let (Some(environment), Some(bytes)) = (environment_of(&file.path), &file.new) else { continue };
        match lockfile::parse(&file.path, bytes) {
            Ok(lockfile) => state.images.extend(rows(&environment, lockfile)),
            Err(failure) => state.problems.extend(in_commit(&failure, &state.commit)),
        }
    }
    state.images.sort_by(|a, b| (&a.environment, &a.image).cmp(&(&b.environment, &b.image)));
    state
}

fn rows(environment: &EnvironmentId, lockfile: Lockfile) -> impl Iterator<Item = StateRow> {
    lockfile.images.into_iter().map(|(image, entry)| StateRow {
        environment: environment.clone(),
        image,
        reference: entry.reference,
        digest: entry.digest,
        hold: entry.hold.map(|hold| hold.reason),
    })
}

/// What moved between two commits that differ in `files`. An environment with an unreadable lockfile on either side is
/// passed over with a problem.
pub fn difference(from: CommitInfo, to: CommitInfo, files: &[FileChange]) -> Difference {
    let mut difference = Difference { from, to, moves: Vec::new(), problems: Vec::new() };
    for file in files {
        let Some(environment) = environment_of(&file.path) else { continue };
        let side = |bytes: &Option<_>| bytes.as_deref().map(|bytes| lockfile::parse(&file.path, bytes)).transpose();
        match (side(&file.old), side(&file.new)) {
            (Ok(old), Ok(new)) => difference.moves.extend(diff::diff(&environment, old.as_ref(), new.as_ref())),
            (old, new) => {
                let old = old.err().map(|failure| in_commit(&failure, &difference.from));
                let new = new.err().map(|failure| in_commit(&failure, &difference.to));
                difference.problems.extend(old.into_iter().chain(new).flatten());
            }
        }
    }
    difference.moves.sort_by(|a, b| (&a.environment, &a.image).cmp(&(&b.environment, &b.image)));
    difference
}
