//! What moved when: the lock's commits, read back.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, sync::Arc};

use super::lock::{diff, file, read::environment_of};
use crate::model::{
    failure::Problem,
    history::{FileChange, History, HistoryEntry, LockCommit},
    lock::{Lockfile, Move},
    name::EnvironmentId,
};

/// What each of `commits` moved, of one environment or of all, in the order of `commits`.
///
/// The files are compared, not the messages read: commits of people count as those of larder do, and nobody can claim
/// what did not happen. A lockfile that cannot be read is passed over with a problem that names its commit.
pub fn history(commits: &[LockCommit], environment: Option<&EnvironmentId>) -> History {
    let mut history = History::default();
    let mut parsed = Parsed::default();
    for commit in commits {
        let mut moves = Vec::new();
        for change in &commit.files {
            let Some(id) = environment_of(&change.path) else { continue };
            if environment.is_some_and(|wanted| *wanted != id) {
                continue;
            }
            match moved(&id, change, &mut parsed) {
                Ok(found) => moves.extend(found),
                Err(problems) => {
                    history.problems.extend(problems.into_iter().map(|problem| in_commit(problem, commit)))
                }
            }
        }
        moves.sort_by(|a, b| (&a.environment, &a.image).cmp(&(&b.environment, &b.image)));
        if !moves.is_empty() {
            history.entries.push(HistoryEntry {
                commit: commit.id.clone(),
                time: commit.time,
                author: commit.author.clone(),
                subject: commit.subject.clone(),
                moves,
            });
        }
    }
    history
}

/// The last lockfile that was read at each path: one commit's old file is its neighbour's new one.
#[derive(Default)]
struct Parsed(BTreeMap<String, (Arc<[u8]>, Lockfile)>);

impl Parsed {
    fn parse(&mut self, path: &str, bytes: &Arc<[u8]>) -> Result<Lockfile, Vec<Problem>> {
        if let Some((known, lockfile)) = self.0.get(path)
            && known == bytes
        {
            return Ok(lockfile.clone());
        }
        let lockfile = file::parse(path, bytes).map_err(|failure| failure.problems().to_vec())?;
        self.0.insert(path.to_owned(), (bytes.clone(), lockfile.clone()));
        Ok(lockfile)
    }
}

fn moved(id: &EnvironmentId, change: &FileChange, parsed: &mut Parsed) -> Result<Vec<Move>, Vec<Problem>> {
    let new = change.new.as_ref().map(|bytes| parsed.parse(&change.path, bytes)).transpose()?;
    let old = change.old.as_ref().map(|bytes| parsed.parse(&change.path, bytes)).transpose()?;
    Ok(diff::diff(id, old.as_ref(), new.as_ref()))
}

fn in_commit(problem: Problem, commit: &LockCommit) -> Problem {
    let short = commit.id.get(..12).unwrap_or(&commit.id);
    Problem { message: format!("passed over in commit {short}: {}", problem.message), hint: None, ..problem }
}
