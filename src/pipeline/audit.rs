//! Auditors' questions, answered from the history of the environment repository alone.

use std::ops::ControlFlow;

use crate::{
    io::{
        git::{GitError, Ledger, Query},
        repository::Repository,
    },
    model::{
        digest::Digest,
        failure::{Category, Failure, Problem},
        history::{Blame, CommitFilter, CommitInfo, Difference, HistoryEntry, State, WalkEnd, WhoRan},
        lock::Lockfile,
        name::{EnvironmentId, Name},
    },
    stages::{
        audit::{self, Blamer, Spans, Wanted},
        history::{Filter, Reader},
        lockfile::{self, environment_of},
        source::suggest::closest,
    },
};

/// How many commits wait to be shown at most.
const WAITING: usize = 256;

/// Which moves are wanted.
#[derive(Clone, Debug, Default)]
pub struct HistoryQuery {
    /// Only this environment's.
    pub environment: Option<EnvironmentId>,
    /// Only those of images with this name.
    pub image: Option<Name>,
    /// Only those of these commits.
    pub commits: CommitFilter,
    /// At most so many commits; none: all.
    pub limit: Option<usize>,
}

/// A commit, as the user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The newest commit of the branch that was there at this time, in seconds since 1970 (UTC).
    Time(i64),
    /// The commit that a Git revision names.
    Revision(String),
}

impl Moment {
    /// The newest commit of the branch.
    pub fn newest() -> Self {
        Self::Revision("HEAD".to_owned())
    }
}

/// What moved, newest first: `each` gets one commit after the other, and the answer is what is wrong with lockfiles of
/// the past.
///
/// # Errors
/// When the history cannot be read, or has never had the environment.
pub async fn history(
    repository: &Repository,
    wanted: HistoryQuery,
    each: &mut dyn FnMut(HistoryEntry),
) -> Result<Vec<Problem>, Failure> {
    let (sender, mut entries) = tokio::sync::mpsc::channel(WAITING);
    let read = move |ledger: &Ledger| -> Result<Result<Vec<Problem>, Failure>, GitError> {
        if let Some(unknown) =
            wanted.environment.as_ref().map(|id| known(ledger, id)).transpose()?.and_then(Result::err)
        {
            return Ok(Err(unknown));
        }
        read_history(ledger, wanted, &mut |entry| match sender.blocking_send(entry) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        })
        .map(Ok)
    };
    let show = async {
        while let Some(entry) = entries.recv().await {
            each(entry);
        }
    };
    let (problems, ()) = tokio::join!(repository.ledger(read), show);
    problems?
}

fn read_history(
    ledger: &Ledger,
    HistoryQuery { environment, image, commits, limit }: HistoryQuery,
    each: &mut (dyn FnMut(HistoryEntry) -> ControlFlow<()> + Send),
) -> Result<Vec<Problem>, GitError> {
    let limit = limit.unwrap_or(usize::MAX);
    let path = environment.as_ref().map(EnvironmentId::lock_path);
    let filter = Filter { environment, image, commits: commits.clone() };
    let mut reader = Reader::new(filter.clone());
    let mut shown = 0;
    ledger.walk(&Query { path: path.clone(), commits, holding: None }, &mut |commit| {
        reader.read(commit);
        if reader.has_gaps() {
            return ControlFlow::Break(());
        }
        for entry in reader.take() {
            each(entry)?;
            shown += 1;
        }
        if shown < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    if !reader.has_gaps() {
        return Ok(reader.finish().1);
    }
    // What a commit changed is told by the last lockfile before it that can be read, regardless of its author and time.
    let mut reader = Reader::new(filter);
    ledger.walk(&Query { path, ..Query::default() }, &mut |commit| {
        reader.read(commit);
        ControlFlow::Continue(())
    })?;
    let (entries, problems) = reader.finish();
    // Those that were shown were compared without a gap.
    let _ = entries.into_iter().take(limit).skip(shown).try_for_each(each);
    Ok(problems)
}

/// The lock at a moment: of these environments, or of all if none is named.
///
/// # Errors
/// When there is no such commit, it cannot be read, or the history has never had one of the environments.
pub async fn at(repository: &Repository, moment: Moment, only: Vec<EnvironmentId>) -> Result<State, Failure> {
    let read = move |ledger: &Ledger| -> Result<Result<State, Failure>, GitError> {
        for id in &only {
            if let Err(unknown) = known(ledger, id)? {
                return Ok(Err(unknown));
            }
        }
        let Some(commit) = find(ledger, &moment)? else { return Ok(Err(too_early())) };
        let mut files = ledger.between(None, &commit)?;
        files.retain(|file| only.is_empty() || environment_of(&file.path).is_some_and(|id| only.contains(&id)));
        Ok(Ok(audit::state(commit, &files)))
    };
    repository.ledger(read).await?
}

/// What moved between two moments, whichever is older.
///
/// # Errors
/// When there is no such commit, or it cannot be read.
pub async fn diff(repository: &Repository, from: Moment, to: Moment) -> Result<Difference, Failure> {
    let read = move |ledger: &Ledger| {
        let (Some(from), Some(to)) = (find(ledger, &from)?, find(ledger, &to)?) else {
            return Ok(None);
        };
        let files = ledger.between(Some(&from), &to)?;
        Ok(Some(audit::difference(from, to, &files)))
    };
    repository.ledger(read).await?.ok_or_else(too_early)
}

/// Which commit brought the present digest of each image of an environment.
///
/// # Errors
/// When the environment has no lockfile at the branch's tip, or one that cannot be read.
pub async fn blame(repository: &Repository, environment: EnvironmentId) -> Result<Blame, Failure> {
    let path = environment.lock_path();
    let read = move |ledger: &Ledger| -> Result<Result<Blame, Failure>, GitError> {
        let Some(present) = ledger.file(&path)? else {
            return Ok(Err(known(ledger, &environment)?.err().unwrap_or_else(|| not_locked(&environment))));
        };
        let present: Lockfile = match lockfile::parse(&path, &present) {
            Ok(present) => present,
            Err(failure) => return Ok(Err(failure)),
        };
        let mut blamer = Blamer::new(environment, &present);
        let query = Query { path: Some(path), ..Query::default() };
        ledger.walk(&query, &mut |commit| blamer.read(&commit))?;
        Ok(Ok(blamer.finish()))
    };
    repository.ledger(read).await?
}

/// Where an image was locked, from when to when.
///
/// # Errors
/// When several digests begin like the one that is asked for, or the history cannot be read.
pub async fn who_ran(repository: &Repository, wanted: Wanted) -> Result<WhoRan, Failure> {
    let read = move |ledger: &Ledger| {
        let mut spans = Spans::new(wanted.clone());
        let mut end =
            ledger.walk(&Query { holding: Some(wanted.text().to_owned()), ..Query::default() }, &mut |commit| {
                spans.read(&commit);
                ControlFlow::Continue(())
            })?;
        // Until when the digest was locked is told by the first lockfile after it that can be read.
        if spans.has_gaps() {
            spans = Spans::new(wanted);
            end = ledger.walk(&Query::default(), &mut |commit| {
                spans.read(&commit);
                ControlFlow::Continue(())
            })?;
        }
        let tip = ledger.tip()?;
        let files = if end == WalkEnd::Cut { ledger.between(None, &tip)? } else { Vec::new() };
        Ok(spans.finish(end, &files))
    };
    repository.ledger(read).await?.map_err(|found| ambiguous(&found))
}

/// The commit at a moment; none when all that are here are younger.
pub(super) fn find(ledger: &Ledger, moment: &Moment) -> Result<Option<CommitInfo>, GitError> {
    match moment {
        Moment::Time(seconds) => ledger.at(*seconds),
        Moment::Revision(revision) => ledger.revision(revision).map(Some),
    }
}

pub(super) fn too_early() -> Failure {
    Problem::new(Category::Git, "the history that is here does not go back that far")
        .hint("`larder history` shows how far it goes; a shallow clone has only the newest commits")
        .into()
}

/// Whether the environment has a lockfile or a file at the tip, or had a lockfile once.
fn known(ledger: &Ledger, id: &EnvironmentId) -> Result<Result<(), Failure>, GitError> {
    let path = id.lock_path();
    let sources = ["yaml", "yml", "json"].map(|suffix| format!("environments/{id}.{suffix}"));
    for path in [&path].into_iter().chain(&sources) {
        if ledger.file(path)?.is_some() {
            return Ok(Ok(()));
        }
    }
    let mut found = false;
    ledger.walk(&Query { path: Some(path), ..Query::default() }, &mut |_| {
        found = true;
        ControlFlow::Break(())
    })?;
    if found {
        return Ok(Ok(()));
    }
    let environments: Vec<String> =
        ledger.lockfiles()?.iter().filter_map(|path| Some(environment_of(path)?.to_string())).collect();
    let hint = match closest(&id.to_string(), environments.iter().map(String::as_str)) {
        Some(meant) => format!("did you mean {meant}?"),
        None => "`larder at HEAD` lists what is locked; names are written `tenant/name`".to_owned(),
    };
    let message = format!("{id} has never been locked, as far as the history that is here goes");
    Ok(Err(Problem::new(Category::Lock, message).hint(hint).into()))
}

fn not_locked(environment: &EnvironmentId) -> Failure {
    Problem::new(Category::Lock, format!("{environment} has no lockfile at the branch's tip"))
        .hint(format!("`larder history {environment}` shows what it had; names are written `tenant/name`"))
        .into()
}

fn ambiguous(found: &[Digest]) -> Failure {
    let shown: Vec<_> = found.iter().take(5).map(Digest::as_str).collect();
    let more = if found.len() > shown.len() { " and more" } else { "" };
    Problem::new(Category::Lock, format!("several digests begin like this: {}{more}", shown.join(", ")))
        .hint("give more digits")
        .into()
}
