//! Auditors' questions, answered from the history of the environment repository alone.

use std::{ops::ControlFlow, sync::Arc};

use crate::{
    io::{
        git::{GitError, Ledger, Query},
        repository::Repository,
    },
    model::{
        digest::Digest,
        failure::{Category, Failure, Problem},
        history::{Blame, CommitInfo, Difference, History, State, WalkEnd, WhoRan},
        lock::Lockfile,
        name::{EnvironmentId, Name},
    },
    stages::{
        audit::{self, Blamer, Spans, Wanted},
        history::{self, Filter},
        lockfile,
    },
};

/// Which moves are wanted.
#[derive(Clone, Debug, Default)]
pub struct HistoryQuery {
    /// Only this environment's.
    pub environment: Option<EnvironmentId>,
    /// Only those of images with this name.
    pub image: Option<Name>,
    /// Only those whose author has this in `Name <address>`; capitals or not.
    pub author: Option<String>,
    /// Only those committed then or later, in seconds since 1970 (UTC).
    pub since: Option<i64>,
    /// Only those committed then or earlier, in seconds since 1970 (UTC).
    pub until: Option<i64>,
    /// At most so many commits; none: all.
    pub limit: Option<usize>,
}

/// A commit, as somebody asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The newest commit of the branch that was there at this time, in seconds since 1970 (UTC).
    Time(i64),
    /// The commit that a Git revision names.
    Revision(String),
}

/// What moved, newest first.
///
/// # Errors
/// When the history cannot be read.
pub async fn history(repository: &Arc<Repository>, wanted: HistoryQuery) -> Result<History, Failure> {
    let read = move |ledger: &Ledger| {
        let HistoryQuery { environment, image, author, since, until, limit } = wanted;
        let query =
            Query { path: environment.as_ref().map(EnvironmentId::lock_path), since, until, author, holding: None };
        let mut reader = history::Reader::new(Filter { environment, image });
        let limit = limit.unwrap_or(usize::MAX);
        ledger.walk(&query, &mut |commit| {
            reader.read(commit);
            if reader.count() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(reader.finish())
    };
    Ok(repository.ledger(read).await?)
}

/// The whole lock at a moment.
///
/// # Errors
/// When there is no such commit, or it cannot be read.
pub async fn at(repository: &Arc<Repository>, moment: Moment) -> Result<State, Failure> {
    let read = move |ledger: &Ledger| match find(ledger, &moment)? {
        Some(commit) => ledger.between(None, &commit).map(|files| Some(audit::state(commit, &files))),
        None => Ok(None),
    };
    repository.ledger(read).await?.ok_or_else(too_early)
}

/// What moved between two moments, whichever is older.
///
/// # Errors
/// When there is no such commit, or it cannot be read.
pub async fn diff(repository: &Arc<Repository>, from: Moment, to: Moment) -> Result<Difference, Failure> {
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
pub async fn blame(repository: &Arc<Repository>, environment: EnvironmentId) -> Result<Blame, Failure> {
    let path = environment.lock_path();
    let read = move |ledger: &Ledger| -> Result<Result<Blame, Failure>, GitError> {
        let Some(present) = ledger.file(&path)? else {
            return Ok(Err(not_locked(&environment)));
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

/// Where a digest was locked, from when to when.
///
/// # Errors
/// When several digests begin like the one that is asked for, or the history cannot be read.
pub async fn who_ran(repository: &Arc<Repository>, wanted: Wanted) -> Result<WhoRan, Failure> {
    let read = move |ledger: &Ledger| {
        let mut spans = Spans::new(wanted.clone());
        let mut end = ledger.walk(&Query { holding: Some(wanted.to_string()), ..Query::default() }, &mut |commit| {
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
        Ok(spans.finish(end, &audit::state(tip, &files)))
    };
    repository.ledger(read).await?.map_err(|found| ambiguous(&found))
}

pub(super) fn find(ledger: &Ledger, moment: &Moment) -> Result<Option<CommitInfo>, GitError> {
    match moment {
        Moment::Time(seconds) => ledger.at(*seconds),
        Moment::Revision(revision) => ledger.revision(revision).map(Some),
    }
}

pub(super) fn too_early() -> Failure {
    Problem::new(Category::Git, "no commit that is here is as old as that")
        .hint("`larder history` shows how far back the history goes; a shallow clone knows only its newest commits")
        .into()
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
