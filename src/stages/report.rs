//! What a pass came to: conditions of environments, from what the other stages found.

use std::collections::BTreeMap;

use super::{load::Environments, lock::holds};
use crate::model::{
    batch::{failed, succeeded},
    failure::{Category, Problem},
    lock::LockChange,
    manifest::Owner,
    name::{EnvironmentId, Name},
    plan::{Applied, Blocked, Outcome},
    report::{Condition, EnvironmentReport, PassReport},
};

/// What the other stages found.
#[derive(Debug)]
pub struct Inputs<'a> {
    /// The commit that was rendered.
    pub commit: Option<String>,
    /// The lock commit of this pass.
    pub lock_commit: Option<String>,
    /// Why the lock could not be committed.
    pub lock_problem: Option<Problem>,
    /// Where lock changes wait to be merged.
    pub lock_proposal: Option<String>,
    /// The environments as the commit has them.
    pub environments: &'a Environments,
    /// What moved in the lock.
    pub lock: &'a LockChange,
    /// What was done.
    pub applied: &'a Applied,
}

/// Summarises a pass. An environment's part depends on that environment alone.
pub fn report(inputs: &Inputs<'_>) -> PassReport {
    let mut environments: BTreeMap<EnvironmentId, EnvironmentReport> = BTreeMap::new();
    for (id, result) in &inputs.environments.environments {
        let (condition, problems) = match result {
            Ok(environment) if environment.suspend => (Condition::Suspended, Vec::new()),
            Ok(_) => (Condition::Applied, Vec::new()),
            Err(failure) => (Condition::Failed, failure.problems().to_vec()),
        };
        environments.insert(id.clone(), EnvironmentReport { condition, problems, notes: Vec::new() });
    }
    for (id, failure) in failed(&inputs.lock.lock) {
        if let Some(report) = environments.get_mut(id) {
            report.worsen(Condition::Failed, failure.problems());
        }
    }
    for (id, problems) in &inputs.lock.problems {
        if let Some(report) = environments.get_mut(id) {
            report.worsen(Condition::Degraded, problems);
        }
    }
    for (id, lockfile) in succeeded(&inputs.lock.lock) {
        if let Some(report) = environments.get_mut(id) {
            report.notes = holds::notes(id, lockfile);
        }
    }
    for waiting in &inputs.lock.waiting {
        if let Some(report) = environments.get_mut(&waiting.environment) {
            report.notes.push(waiting.note.clone());
        }
    }
    let mut tenants: BTreeMap<Name, Vec<Problem>> = BTreeMap::new();
    let unapplied = inputs.applied.outcomes.iter().filter_map(|(change, outcome)| match outcome {
        Outcome::Failed(problem) => Some((&change.owner, std::slice::from_ref(problem))),
        Outcome::Done | Outcome::Unchanged | Outcome::NotAttempted => None,
    });
    let not_attempted = inputs.applied.outcomes.iter().filter(|(_, outcome)| *outcome == Outcome::NotAttempted);
    let unplanned = inputs.applied.failures.iter().map(|(owner, failure)| (owner, failure.problems()));
    for (owner, problems) in unplanned.chain(unapplied) {
        match owner {
            Owner::Tenant(tenant) => tenants.entry(tenant.clone()).or_default().extend(problems.iter().cloned()),
            Owner::Environment(id) => environments
                .entry(id.clone())
                .or_insert(EnvironmentReport { condition: Condition::Failed, problems: Vec::new(), notes: Vec::new() })
                .worsen(Condition::Failed, problems),
        }
    }
    for (change, _) in not_attempted {
        let problem = Problem::new(Category::Cluster, format!("{} was not attempted", change.id))
            .hint("the pass was ended, or something before it failed; the next pass tries it");
        if let Owner::Environment(id) = &change.owner
            && let Some(report) = environments.get_mut(id)
        {
            report.worsen(Condition::Failed, &[problem]);
        }
    }
    let mut blocked: Vec<Problem> = Vec::new();
    for Blocked { environments: ids, problem } in inputs.lock.blocked.iter().chain(&inputs.applied.blocked) {
        if !blocked.contains(problem) {
            blocked.push(problem.clone());
        }
        for id in ids {
            let problems = vec![waits(problem)];
            environments
                .insert(id.clone(), EnvironmentReport { condition: Condition::Blocked, problems, notes: vec![] });
        }
    }
    PassReport {
        commit: inputs.commit.clone(),
        lock_commit: inputs.lock_commit.clone(),
        lock_problem: inputs.lock_problem.clone(),
        cannot_start: Vec::new(),
        strays: inputs.environments.strays.clone(),
        lock_proposal: inputs.lock_proposal.clone(),
        environments,
        tenants,
        blocked,
    }
}

/// What one blocked environment is told; the reason, which is long when they are many, is told once for all.
fn waits(reason: &Problem) -> Problem {
    Problem::new(reason.category, "its removal waits until `spec.prune.confirmed` names it")
}

impl EnvironmentReport {
    /// Adds problems, each once, and takes the condition unless it is a worse one already.
    fn worsen(&mut self, condition: Condition, problems: &[Problem]) {
        if self.condition != Condition::Failed {
            self.condition = condition;
        }
        for problem in problems {
            if !self.problems.contains(problem) {
                self.problems.push(problem.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{
        model::settings::Prune,
        stages::{budget, lock::testing::settings},
    };

    /// A snapshot with no environment at all.
    fn nothing() -> Environments {
        Environments {
            settings: settings(),
            environments: BTreeMap::new(),
            lock: BTreeMap::new(),
            templates: BTreeMap::new(),
            warnings: Vec::new(),
            strays: Vec::new(),
            ignored: 0,
            unread: BTreeSet::new(),
        }
    }

    #[test]
    fn why_removals_are_blocked_is_said_once() {
        let gone: BTreeSet<EnvironmentId> = (0..2000).map(|n| format!("research/e{n}").parse().unwrap()).collect();
        let prune = Prune { budget: 30, confirmed: vec![] };
        let blocked = *budget::decide(&gone, &gone, &prune).unwrap_err();
        let lock = LockChange { blocked: Some(blocked.clone()), ..LockChange::default() };
        let applied = Applied { blocked: Some(blocked.clone()), ..Applied::default() };
        let report = report(&Inputs {
            commit: None,
            lock_commit: None,
            lock_problem: None,
            lock_proposal: None,
            environments: &nothing(),
            lock: &lock,
            applied: &applied,
        });
        assert_eq!(report.blocked, [blocked.problem]);
        assert_eq!(report.environments.len(), 2000);
        for environment in report.environments.values() {
            assert_eq!(environment.condition, Condition::Blocked);
            assert!(environment.problems.len() == 1 && environment.problems[0].message.contains("confirmed"));
        }
        let size = serde_json::to_string(&report).unwrap().len();
        assert!(size < 2000 * 200, "{size} bytes");
    }
}
