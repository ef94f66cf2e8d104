//! How everything is doing: the only place that decides it, from the last pass and from what was observed.
//!
//! [`of_pass`] is the status after a pass, [`of_files`] that of files which a pass may have seen or not;
//! [`observe`] adds the nodes to either of them.

mod commit;
mod conditions;
mod reasons;
#[cfg(test)]
mod tests;

pub use self::{commit::of_commit, reasons::why_not_warm};

use std::collections::BTreeMap;

use self::conditions::Observed;
use super::{load::Environments, lock::holds, source::suggest};
use crate::model::{
    batch::failed,
    failure::{Category, Failure, Problem},
    lock::{Lock, LockChange},
    manifest::{Manifests, Owner},
    name::{EnvironmentId, Name},
    plan::{Applied, Blocked, Outcome},
    snapshot::Origin,
    status::{Coverage, EnvironmentStatus, Finding, ImageStatus, LastPass, Reason, Status, TenantStatus},
    text::one_line,
};

/// A pass that has ended.
#[derive(Debug)]
pub struct Inputs<'a> {
    /// The commit that was rendered.
    pub commit: String,
    /// What the pass did to the branch.
    pub last_pass: LastPass,
    /// Why the lock could not be committed.
    pub lock_problem: Option<&'a Problem>,
    /// Where lock changes wait to be merged: the pull request's address, or the branch.
    pub proposal: Option<&'a str>,
    /// The environments as the commit has them.
    pub environments: &'a Environments,
    /// What moved in the lock.
    pub lock: &'a LockChange,
    /// What was done.
    pub applied: &'a Applied,
    /// Whether the target has nodes.
    pub target: Target,
}

/// What manifests are applied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A cluster, whose nodes can be observed.
    Cluster,
    /// A directory.
    Directory,
}

/// The status after a pass, before anything was observed. An environment's part depends on that environment alone.
pub fn of_pass(inputs: &Inputs<'_>) -> Status {
    let Inputs { environments, lock, applied, .. } = inputs;
    let mut draft = Draft::of_files(environments, &lock.lock);
    for (id, problems) in &lock.problems {
        draft.add(id, Reason::ImageUnusable, problems);
    }
    for waiting in &lock.waiting {
        if let Some(environment) = draft.environments.get_mut(&waiting.environment) {
            environment.notes.push(Finding::new(Reason::Unconfirmed, waiting.note.clone()));
        }
    }
    for (owner, failure) in &applied.failures {
        draft.add_unapplied(owner, failure.problems());
    }
    for (change, outcome) in &applied.outcomes {
        match outcome {
            Outcome::Failed(problem) => draft.add_unapplied(&change.owner, std::slice::from_ref(problem)),
            Outcome::NotAttempted => {
                let problem = Problem::new(Category::Cluster, format!("{} was not attempted", change.id))
                    .hint("the pass was ended, or something before it failed; the next pass tries it");
                if let Owner::Environment(id) = &change.owner {
                    draft.add(id, Reason::NotAttempted, &[problem]);
                }
            }
            Outcome::Done | Outcome::Unchanged => {}
        }
    }
    for Blocked { environments, problem } in lock.blocked.iter().chain(&applied.blocked) {
        draft.add_problem(Reason::RemovalBlocked, problem);
        // The reason, which is long when they are many, is given once for all.
        let waits = Problem::new(problem.category, "its removal waits until `spec.prune.confirmed` names it");
        for id in environments {
            let blocked = EnvironmentStatus::default();
            draft.environments.insert(id.clone(), blocked);
            draft.add(id, Reason::RemovalBlocked, std::slice::from_ref(&waits));
        }
    }
    if let Some(problem) = inputs.lock_problem {
        draft.add_problem(Reason::LockRefused, problem);
    }
    if let Some(place) = inputs.proposal {
        let note = Problem::new(Category::Lock, format!("lock changes wait to be merged: {place}"));
        draft.notes.push(Finding::new(Reason::ProposalWaiting, note));
    }
    let observed = match inputs.target {
        Target::Cluster => Observed::Nothing,
        Target::Directory => Observed::NoNodes,
    };
    draft.finish(Some(inputs.commit.clone()), inputs.last_pass.clone(), observed)
}

/// The status after a pass could not start: everything else is as the last one that could left it.
pub fn cannot_start(previous: &Status, tip: Option<String>, failure: &Failure) -> Status {
    let mut status = Status { last_pass: LastPass { tip, lock_commit: None }, ..previous.clone() };
    status.problems.retain(|finding| finding.reason != Reason::CannotStart);
    let problems = failure.problems().iter().map(|problem| Finding::new(Reason::CannotStart, problem.clone()));
    status.problems.splice(0..0, problems);
    status.conditions = conditions::of_controller(status.commit.as_deref(), &status.problems);
    status
}

/// The status after a poll of the branch: with its failure, or without that of an earlier poll.
pub fn polled(previous: &Status, failure: Option<&Failure>) -> Status {
    let mut status = previous.clone();
    status.problems.retain(|finding| finding.reason != Reason::PollFailed);
    let problems = failure.map(Failure::problems).unwrap_or_default();
    status.problems.extend(problems.iter().map(|problem| Finding::new(Reason::PollFailed, problem.clone())));
    if status.problems != previous.problems {
        status.conditions = conditions::of_controller(status.commit.as_deref(), &status.problems);
    }
    status
}

/// The status of files: of a commit, or of a directory. `published` is what a controller has written down after its last
/// pass; it says nothing about files that it has not seen.
pub fn of_files(
    environments: &Environments,
    manifests: &Manifests,
    origin: &Origin,
    published: Option<&Status>,
) -> Status {
    let commit = match origin {
        Origin::Commit(commit) => Some(commit.clone()),
        Origin::Folder => None,
    };
    let nothing = Status::default();
    let published = published.unwrap_or(&nothing);
    let seen = published.commit.is_some() && (commit.is_none() || commit == published.commit);
    let mut draft = Draft::of_files(environments, &environments.lock);
    for (owner, result) in manifests {
        if let (Owner::Environment(_), Err(failure)) = (owner, result) {
            draft.add_unapplied(owner, failure.problems());
        }
    }
    for (id, environment) in &published.environments {
        let is_blocked = environment.reason() == Reason::RemovalBlocked;
        if is_blocked {
            draft.environments.entry(id.clone()).or_default();
        }
        let Some(known) = draft.environments.get_mut(id).filter(|_| seen || is_blocked) else { continue };
        extend(&mut known.problems, &environment.problems);
        extend(&mut known.notes, &environment.notes);
    }
    if !seen {
        // Nothing is locked yet: a pass that has not seen this commit may still do it.
        for finding in draft.environments.values_mut().flat_map(|environment| &mut environment.problems) {
            if finding.reason == Reason::NotLocked {
                finding.reason = Reason::NotApplied;
            }
        }
    }
    extend(&mut draft.problems, &published.problems);
    draft.notes.clone_from(&published.notes);
    for (tenant, status) in &published.tenants {
        extend(&mut draft.tenants.entry(tenant.clone()).or_default().problems, &status.problems);
    }
    let last_pass = LastPass { tip: published.commit.clone(), lock_commit: None };
    draft.finish(commit, last_pass, Observed::Nothing)
}

/// Adds what was observed of nodes. What is missing from `coverage` has no puller.
pub fn observe(status: &mut Status, mut coverage: BTreeMap<EnvironmentId, Coverage>) {
    let commit = status.commit.clone();
    for (id, environment) in &mut status.environments {
        let seen = coverage.remove(id);
        for image in &mut environment.images {
            image.coverage = seen.as_ref().and_then(|seen| seen.images.get(&image.name)).cloned();
        }
        environment.conditions =
            conditions::of_environment(commit.as_deref(), environment, Observed::Nodes(seen.as_ref()));
        environment.nodes = seen.map(|seen| seen.nodes);
    }
}

/// Takes over what was observed for the same commit before.
pub fn keep_observed(status: &mut Status, previous: &Status) {
    if status.commit != previous.commit || previous.environments.values().all(|known| known.nodes.is_none()) {
        return;
    }
    let coverage = previous.environments.iter().filter_map(|(id, known)| {
        let images = known.images.iter().filter_map(|image| Some((image.name.clone(), image.coverage.clone()?)));
        Some((id.clone(), Coverage { nodes: known.nodes.clone()?, images: images.collect() }))
    });
    observe(status, coverage.collect());
}

/// Keeps these environments only; all of them when none is named.
///
/// # Errors
/// When one of them is not known.
pub fn keep(status: &mut Status, only: &[EnvironmentId]) -> Result<(), Problem> {
    if let Some(unknown) = only.iter().find(|id| !status.environments.contains_key(id)) {
        return Err(unknown_environment(unknown, status.environments.keys()));
    }
    if !only.is_empty() {
        status.environments.retain(|id, _| only.contains(id));
    }
    Ok(())
}

/// The problem of naming an environment that does not exist.
pub fn unknown_environment<'a>(unknown: &EnvironmentId, known: impl Iterator<Item = &'a EnvironmentId>) -> Problem {
    let problem = Problem::new(Category::Name, format!("there is no environment {unknown}"));
    let known: Vec<(String, &EnvironmentId)> = known.map(|id| (id.to_string(), id)).collect();
    let closest = suggest::closest(&unknown.to_string(), known.iter().map(|(text, _)| text.as_str()));
    let namesake = || known.iter().find(|(_, id)| id.name == unknown.name).map(|(text, _)| text.as_str());
    match closest.or_else(namesake) {
        Some(meant) => problem.hint(format!("did you mean {meant}?")),
        None => problem.hint("an environment is named `tenant/name`; `larder status` lists all of them"),
    }
}

/// A status without conditions, which follow from the rest.
#[derive(Default)]
struct Draft {
    problems: Vec<Finding>,
    notes: Vec<Finding>,
    tenants: BTreeMap<Name, TenantStatus>,
    environments: BTreeMap<EnvironmentId, EnvironmentStatus>,
    suspended: Vec<EnvironmentId>,
}

impl Draft {
    /// What the files alone say.
    fn of_files(environments: &Environments, lock: &Lock) -> Self {
        let strays = environments.strays.iter().map(|stray| Finding::new(Reason::MisplacedFile, stray.clone()));
        let mut draft = Self { problems: strays.collect(), ..Self::default() };
        for (id, result) in &environments.environments {
            let lockfile = lock.get(id).and_then(|lockfile| lockfile.as_ref().ok());
            let images = lockfile.iter().flat_map(|lockfile| &lockfile.images).map(|(name, image)| ImageStatus {
                name: name.clone(),
                reference: image.reference.clone(),
                digest: image.digest.clone(),
                hold: image.hold.as_ref().map(|hold| one_line(&hold.reason).into_owned()),
                coverage: None,
            });
            let notes = lockfile.map(|lockfile| holds::notes(id, lockfile)).unwrap_or_default();
            let notes = notes.into_iter().map(|note| Finding::new(Reason::Held, note)).collect();
            let status = EnvironmentStatus { images: images.collect(), notes, ..EnvironmentStatus::default() };
            draft.environments.insert(id.clone(), status);
            match result {
                Ok(environment) if environment.suspend => draft.suspended.push(id.clone()),
                Ok(_) => {}
                Err(failure) => draft.add(id, Reason::InvalidFile, failure.problems()),
            }
        }
        for (id, failure) in failed(lock) {
            draft.add(id, Reason::InvalidLockfile, failure.problems());
        }
        draft
    }

    fn add_problem(&mut self, reason: Reason, problem: &Problem) {
        extend(&mut self.problems, &[Finding::new(reason, problem.clone())]);
    }

    /// Adds problems to an environment that is known.
    fn add(&mut self, id: &EnvironmentId, reason: Reason, problems: &[Problem]) {
        if let Some(environment) = self.environments.get_mut(id) {
            let found: Vec<_> = problems.iter().map(|problem| Finding::new(reason, problem.clone())).collect();
            extend(&mut environment.problems, &found);
        }
    }

    /// Adds why objects were not rendered, compared or written. The owner may be one that Git no longer has.
    fn add_unapplied(&mut self, owner: &Owner, problems: &[Problem]) {
        for problem in problems {
            let reason = match problem.category {
                Category::Cluster | Category::Conflict => Reason::ApplyFailed,
                Category::Lock => Reason::NotLocked,
                _ => Reason::RenderFailed,
            };
            let found = [Finding::new(reason, problem.clone())];
            match owner {
                Owner::Tenant(tenant) => extend(&mut self.tenants.entry(tenant.clone()).or_default().problems, &found),
                Owner::Environment(id) => {
                    extend(&mut self.environments.entry(id.clone()).or_default().problems, &found);
                }
            }
        }
    }

    /// Derives the conditions.
    fn finish(self, commit: Option<String>, last_pass: LastPass, observed: Observed<'_>) -> Status {
        let Self { problems, notes, mut tenants, mut environments, suspended } = self;
        for id in &suspended {
            if let Some(environment) = environments.get_mut(id) {
                environment.conditions = vec![conditions::suspended(commit.as_deref())];
            }
        }
        for environment in environments.values_mut() {
            environment.conditions = conditions::of_environment(commit.as_deref(), environment, observed);
        }
        for tenant in tenants.values_mut() {
            tenant.conditions = conditions::of_tenant(commit.as_deref(), &tenant.problems);
        }
        let conditions = conditions::of_controller(commit.as_deref(), &problems);
        Status { commit, last_pass, conditions, problems, notes, tenants, environments, ..Status::default() }
    }
}

/// Adds what is not there yet. A problem that is told twice keeps its first reason.
fn extend(findings: &mut Vec<Finding>, more: &[Finding]) {
    for finding in more {
        if !findings.iter().any(|known| known.problem == finding.problem) {
            findings.push(finding.clone());
        }
    }
}
