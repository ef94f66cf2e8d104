//! `larder verify`: whether each change of the lock was made by a trusted controller and leads to what it records.
//!
//! Commits are read in one thread, in order; each is rendered on another one.

use std::{
    num::NonZero,
    ops::ControlFlow,
    sync::{Mutex, PoisonError, mpsc},
};

use super::{
    audit::{self, Moment},
    record,
};
use crate::{
    io::{
        git::{GitError, Ledger, LockingCommit, Trust, Trusted, Until, Untrusted},
        repository::Repository,
    },
    model::{
        digest::Digest,
        failure::Failure,
        history::WalkEnd,
        snapshot::Snapshot,
        verification::{Outcome, SignedBy, Verification, VerifiedCommit},
    },
    stages::{audit::Trailers, load::Loader, render::Renderer},
};

/// What is to be checked, and whose signatures count.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where to begin: the commit before the first one that is checked; none: where manifests began to be recorded.
    pub from: Option<Moment>,
    /// The last commit; none: the branch's tip.
    pub to: Option<Moment>,
    /// Whether the first commit of all is where to begin, when `from` is none.
    pub whole: bool,
    /// The controllers' keys.
    pub controllers: Trust,
    /// The keys of people who may change the lock; nobody's if it is empty.
    pub people: Trust,
}

/// Checks the commits that change the lock.
///
/// # Errors
/// When the history or a file of keys cannot be read.
pub async fn verify(repository: &Repository, options: Options) -> Result<Verification, Failure> {
    Ok(repository.ledger(move |ledger| check(ledger, &options)).await?)
}

fn check(ledger: &Ledger, options: &Options) -> Result<Verification, GitError> {
    let (controllers, people) = (options.controllers.load()?, options.people.load()?);
    controllers.ready()?;
    people.ready()?;
    let newest = match &options.to {
        Some(to) => audit::find(ledger, to)?.ok_or_else(|| ledger.no_commit("there is none that is as old as that"))?,
        None => ledger.tip()?,
    };
    // At a time before the first commit, all of them are younger.
    let from = options.from.as_ref().map(|from| audit::find(ledger, from)).transpose()?.flatten();
    let until = from.map_or(Until::Start, Until::Commit);
    let (end, mut commits) = rendered(|render| {
        let mut judged = Vec::new();
        let end = ledger.lock_commits(&newest, &until, &mut |commit| {
            let (verified, wanted) = judge(&commit, &controllers, (&options.people, &people));
            if wanted {
                render(judged.len(), ledger.snapshot(&verified.commit)?);
            }
            judged.push(verified);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok((end, judged))
    })?;
    let mut older = 0;
    if options.from.is_none() && !options.whole {
        let recorded = commits.iter().rposition(|commit| commit.recorded.is_some()).map_or(0, |at| at + 1);
        older = commits.len() - recorded;
        commits.truncate(recorded);
    }
    // That nothing changes the lock after a commit that is named is no fault; that nothing is found at all may be one.
    let is_answer = !commits.is_empty() || (options.from.is_some() && end != WalkEnd::Cut);
    let sound = is_answer && commits.iter().all(|commit| commit.outcome.is_sound());
    // Who was the last to be passed over is no matter of where the history is cut.
    let complete = end != WalkEnd::Cut || older > 0;
    Ok(Verification { commits, older, complete, sound })
}

/// What a commit says of itself, and whether it has to be rendered.
fn judge(commit: &LockingCommit, controllers: &Trusted, (any, people): (&Trust, &Trusted)) -> (VerifiedCommit, bool) {
    let Trailers { manifests, version } = Trailers::of(&commit.message);
    let mut verified = VerifiedCommit {
        commit: commit.commit.clone(),
        outcome: Outcome::Ok,
        detail: None,
        signed_by: None,
        recorded: manifests,
        rendered: None,
        version,
        merged_by: commit.merged_by.as_ref().map(|merge| merge.id.clone()),
    };
    let signed_by = |signer: crate::io::git::Signer| Some(SignedBy { name: signer.name, key: signer.key });
    match controllers.check(&commit.bytes) {
        Ok(signer) => verified.signed_by = signed_by(signer),
        Err(why) => {
            let person = if any.is_empty() { Err(why.clone()) } else { people.check(&commit.bytes) };
            match person {
                Ok(signer) => (verified.outcome, verified.signed_by) = (Outcome::Person, signed_by(signer)),
                Err(other) => {
                    // Of two reasons the one that says more of the key.
                    let why = if matches!(why, Untrusted::Unknown { .. }) { other } else { why };
                    let unsigned = why == Untrusted::Unsigned;
                    verified.outcome = if unsigned { Outcome::Unsigned } else { Outcome::Untrusted };
                    verified.detail = Some(why.to_string());
                }
            }
            return (verified, false);
        }
    }
    if let Some(path) = &commit.beside {
        verified.outcome = Outcome::ChangesMore;
        verified.detail = Some(format!("a controller changes nothing but lock/, and this commit changes `{path}`"));
    } else if verified.recorded.is_none() {
        verified.outcome = Outcome::NoDigest;
        verified.detail = Some("it has no trailer Larder-Manifests".to_owned());
    } else {
        return (verified, true);
    }
    (verified, false)
}

/// Takes up what rendering came to.
fn settle(verified: &mut VerifiedCommit, rendered: Result<Digest, Failure>) {
    let recorded = verified.recorded.clone().unwrap_or_default();
    match rendered {
        Ok(digest) if digest.as_str() == recorded => verified.rendered = Some(digest),
        Ok(digest) => {
            let ours = env!("CARGO_PKG_VERSION");
            let theirs = verified.version.clone().unwrap_or_else(|| "of an unknown version".to_owned());
            let detail = format!("it records {recorded}, and renders to {digest}");
            (verified.outcome, verified.detail) = if theirs == ours {
                (Outcome::Differs, Some(detail))
            } else {
                let detail =
                    format!("{detail} with larder {ours}; it was made by larder {theirs}: check it with that one");
                (Outcome::OtherVersion, Some(detail))
            };
            verified.rendered = Some(digest);
        }
        Err(failure) => {
            verified.outcome = Outcome::Unreadable;
            verified.detail = Some(format!("it cannot be rendered: {failure}"));
        }
    }
}

/// Runs `walk`, which hands over snapshots by the places of their commits, and renders those meanwhile.
fn rendered(
    walk: impl FnOnce(&mut dyn FnMut(usize, Snapshot)) -> Result<(WalkEnd, Vec<VerifiedCommit>), GitError>,
) -> Result<(WalkEnd, Vec<VerifiedCommit>), GitError> {
    let workers = std::thread::available_parallelism().map_or(1, NonZero::get).min(8);
    // Bounded, so that a fast disk does not fill the memory.
    let (sender, receiver) = mpsc::sync_channel::<(usize, Snapshot)>(2 * workers);
    let (receiver, digests) = (Mutex::new(receiver), Mutex::new(Vec::new()));
    let work = || {
        // What is the same as in the commit that this worker had last is neither read nor rendered again.
        let (mut loader, mut renderer) = (Loader::default(), Renderer::default());
        loop {
            let next = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok((place, snapshot)) = next else { return };
            let digest = loader.load(&snapshot).map(|environments| record::digest(&environments, &mut renderer));
            digests.lock().unwrap_or_else(PoisonError::into_inner).push((place, digest));
        }
    };
    let (end, mut commits) = std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(work);
        }
        let walked = walk(&mut |place, snapshot| {
            // Nobody receives any more only after a panic, which the scope passes on.
            let _ = sender.send((place, snapshot));
        });
        drop(sender);
        walked
    })?;
    for (place, digest) in digests.into_inner().unwrap_or_else(PoisonError::into_inner) {
        if let Some(commit) = commits.get_mut(place) {
            settle(commit, digest);
        }
    }
    Ok((end, commits))
}
