//! What moved when: the lock's commits, read back.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::lock::{diff, file, path::environment_of};
use crate::model::{
    failure::{Failure, Problem},
    history::{FileChange, History, HistoryEntry, LockCommit},
    lock::{Lockfile, Move},
    name::EnvironmentId,
};

/// What each of `commits` moved, of one environment or of all, in the order of `commits`.
pub fn history<'a>(commits: impl IntoIterator<Item = &'a LockCommit>, environment: Option<&EnvironmentId>) -> History {
    let mut reader = Reader::new(environment);
    for commit in commits {
        reader.read(commit);
    }
    reader.finish()
}

/// Reads commits one by one, so that not all of them must be in memory.
///
/// The files are compared, not the messages read: commits of people count as those of larder do, and nobody can claim
/// what did not happen. A lockfile that cannot be read is passed over with a problem that names its commit.
pub struct Reader<'a> {
    environment: Option<&'a EnvironmentId>,
    parsed: Parsed,
    history: History,
}

impl<'a> Reader<'a> {
    /// Reads what concerns one environment, or all.
    pub fn new(environment: Option<&'a EnvironmentId>) -> Self {
        Self { environment, parsed: Parsed::default(), history: History::default() }
    }

    /// Takes up what a commit moved. It is fastest when neighbours come one after the other.
    pub fn read(&mut self, commit: &LockCommit) {
        let mut moves = Vec::new();
        for change in &commit.files {
            let Some(id) = environment_of(&change.path) else { continue };
            if self.environment.is_some_and(|wanted| *wanted != id) {
                continue;
            }
            match moved(&id, change, &mut self.parsed) {
                Ok(found) => moves.extend(found),
                Err(failure) => {
                    let problems = failure.problems().iter().map(|problem| in_commit(problem.clone(), commit));
                    self.history.problems.extend(problems);
                }
            }
        }
        moves.sort_by(|a, b| (&a.environment, &a.image).cmp(&(&b.environment, &b.image)));
        if !moves.is_empty() {
            self.history.entries.push(HistoryEntry {
                commit: commit.id.clone(),
                time: commit.time,
                author: commit.author.clone(),
                subject: commit.subject.clone(),
                moves,
            });
        }
    }

    /// What was read.
    pub fn finish(self) -> History {
        self.history
    }
}

/// Both sides of the last change of each path: one commit's old file is its neighbour's new one, whichever comes first.
#[derive(Default)]
struct Parsed(BTreeMap<String, Vec<(Vec<u8>, Lockfile)>>);

fn moved(id: &EnvironmentId, change: &FileChange, parsed: &mut Parsed) -> Result<Vec<Move>, Failure> {
    let known = parsed.0.remove(&change.path).unwrap_or_default();
    let side = |bytes: &Option<Vec<u8>>| -> Result<Option<(Vec<u8>, Lockfile)>, Failure> {
        let Some(bytes) = bytes else { return Ok(None) };
        let lockfile = match known.iter().find(|(known, _)| known == bytes) {
            Some((_, lockfile)) => lockfile.clone(),
            None => file::parse(&change.path, bytes)?,
        };
        Ok(Some((bytes.clone(), lockfile)))
    };
    let (old, new) = (side(&change.old)?, side(&change.new)?);
    let moves = diff::diff(id, old.as_ref().map(|(_, old)| old), new.as_ref().map(|(_, new)| new));
    parsed.0.insert(change.path.clone(), old.into_iter().chain(new).collect());
    Ok(moves)
}

fn in_commit(problem: Problem, commit: &LockCommit) -> Problem {
    let short = commit.id.get(..12).unwrap_or(&commit.id);
    Problem { message: format!("passed over in commit {short}: {}", problem.message), hint: None, ..problem }
}
