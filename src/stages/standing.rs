//! How environments stand: files, lock, the last pass and the nodes, put together for people.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{load::Environments, lock::holds};
use crate::model::{
    failure::{Category, Problem},
    manifest::{Manifests, Owner},
    name::EnvironmentId,
    report::{Condition, Coverage, NodeState, PassReport},
    snapshot::Origin,
};

/// How one environment stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum State {
    /// Every eligible node holds every image.
    Warm,
    /// Nodes are still pulling, or the cluster has not taken up its newest lock yet.
    Pulling,
    /// The cluster has no puller of it, so that no node pulls.
    NotApplied,
    /// Some node cannot pull, or some image is not locked; the rest is there.
    Degraded,
    /// Its file or lockfile is broken; former objects stay.
    Failed,
    /// Suspended by its file.
    Suspended,
    /// Gone from Git, but the budget does not allow its removal.
    Blocked,
}

/// One environment.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentStanding {
    /// How it stands.
    pub state: State,
    /// What is wrong with it.
    pub problems: Vec<Problem>,
    /// What is to be known though nothing is wrong: images that are held, and answers that have to be given again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Problem>,
    /// The nodes that hold its images; none when it has no manifests.
    pub coverage: Option<Coverage>,
}

/// All environments.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Standing {
    /// The commit whose lock is shown; none for a folder.
    pub commit: Option<String>,
    /// The commit that the last pass of a controller rendered.
    pub last_pass: Option<String>,
    /// Why the last pass could not commit the lock.
    pub lock_problem: Option<Problem>,
    /// Why the controller cannot start a pass on a later commit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cannot_start: Vec<Problem>,
    /// Why removals are blocked, and how to confirm them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<Problem>,
    /// Each environment.
    pub environments: BTreeMap<EnvironmentId, EnvironmentStanding>,
}

/// Puts it together. `last` is what the controller wrote down after its last pass.
pub fn standing(
    environments: &Environments,
    manifests: &Manifests,
    mut coverage: BTreeMap<EnvironmentId, Coverage>,
    last: Option<PassReport>,
    origin: &Origin,
) -> Standing {
    let last = last.unwrap_or_default();
    let commit = match origin {
        Origin::Commit(commit) => Some(commit.clone()),
        Origin::Folder => None,
    };
    // What the last pass found says nothing about files that it has not seen.
    let current = commit.is_none() || commit == last.commit;
    let mut all = BTreeMap::new();
    for (id, result) in &environments.environments {
        let reported = last.environments.get(id).filter(|_| current);
        let mut problems = reported.map(|report| report.problems.clone()).unwrap_or_default();
        let mut add = |more: &[Problem]| {
            let new: Vec<_> = more.iter().filter(|problem| !problems.contains(problem)).cloned().collect();
            problems.extend(new);
        };
        let coverage = coverage.remove(id);
        let state = match (result, manifests.get(&Owner::Environment(id.clone()))) {
            (Err(failure), _) => {
                add(failure.problems());
                State::Failed
            }
            (Ok(environment), _) if environment.suspend => State::Suspended,
            (Ok(_), Some(Err(failure))) => {
                // Nothing is locked yet: a pass that has not seen this commit may still do it.
                add(failure.problems());
                if current && last.commit.is_some() { State::Failed } else { State::NotApplied }
            }
            (Ok(_), _) => of_nodes(coverage.as_ref(), reported.map(|report| report.condition)),
        };
        let lockfile = environments.lock.get(id).and_then(|lockfile| lockfile.as_ref().ok());
        let mut notes = lockfile.map(|lockfile| holds::notes(id, lockfile)).unwrap_or_default();
        for note in reported.map(|report| &report.notes).into_iter().flatten() {
            if !notes.contains(note) {
                notes.push(note.clone());
            }
        }
        all.insert(id.clone(), EnvironmentStanding { state, problems, notes, coverage });
    }
    for (id, report) in last.environments.iter().filter(|(_, report)| report.condition == Condition::Blocked) {
        all.entry(id.clone()).or_insert_with(|| EnvironmentStanding {
            state: State::Blocked,
            problems: report.problems.clone(),
            notes: Vec::new(),
            coverage: None,
        });
    }
    let PassReport { commit: last_pass, lock_problem, cannot_start, blocked, .. } = last;
    Standing { commit, last_pass, lock_problem, cannot_start, blocked, environments: all }
}

fn of_nodes(coverage: Option<&Coverage>, reported: Option<Condition>) -> State {
    let Some(coverage) = coverage.filter(|coverage| is_applied(coverage)) else {
        return State::NotApplied;
    };
    let fails = coverage.images.iter().flat_map(|image| &image.nodes).any(|node| node.state == NodeState::Failure);
    match reported {
        _ if coverage.current && fails => State::Degraded,
        _ if !coverage.is_warm() => State::Pulling,
        Some(Condition::Degraded | Condition::Failed) => State::Degraded,
        _ => State::Warm,
    }
}

/// Whether the cluster shows any trace of a puller: it has taken it up, or has pods for it.
fn is_applied(coverage: &Coverage) -> bool {
    coverage.current || !coverage.excluded.is_empty() || coverage.images.iter().any(|image| image.eligible > 0)
}

/// The problem of somebody who names an environment that is not there.
pub fn unknown_environment<'a>(unknown: &EnvironmentId, mut known: impl Iterator<Item = &'a EnvironmentId>) -> Problem {
    let problem = Problem::new(Category::Name, format!("there is no environment {unknown}"));
    match known.find(|id| id.name == unknown.name) {
        Some(meant) => problem.hint(format!("did you mean {meant}?")),
        None => problem.hint("an environment is named `tenant/name`; `larder status` lists all of them"),
    }
}

impl Standing {
    /// Drops all environments but these, unless there are none of these.
    ///
    /// # Errors
    /// When one of these is not known.
    pub fn keep(&mut self, only: &[EnvironmentId]) -> Result<(), Problem> {
        if let Some(unknown) = only.iter().find(|id| !self.environments.contains_key(id)) {
            return Err(unknown_environment(unknown, self.environments.keys()));
        }
        if !only.is_empty() {
            self.environments.retain(|id, _| only.contains(id));
        }
        Ok(())
    }

    /// Whether every eligible node holds every image of every environment that is not suspended.
    pub fn is_warm(&self) -> bool {
        self.cannot_start.is_empty()
            && self.environments.values().all(|environment| matches!(environment.state, State::Warm | State::Suspended))
    }

    /// Whether waiting can help: something is being pulled, or the kubelet tries again by itself.
    pub fn may_become_warm(&self) -> bool {
        self.environments.values().any(|environment| {
            let pulls = environment.coverage.as_ref().is_some_and(|coverage| !coverage.is_warm());
            matches!(environment.state, State::Pulling | State::NotApplied)
                || (environment.state == State::Degraded && pulls)
        })
    }

    /// Why it is not warm, a line for each reason.
    pub fn reasons(&self) -> Vec<String> {
        let mut reasons: Vec<String> = self.cannot_start.iter().map(ToString::to_string).collect();
        for (id, environment) in &self.environments {
            if matches!(environment.state, State::Warm | State::Suspended) {
                continue;
            }
            let before = reasons.len();
            reasons.extend(environment.problems.iter().map(|problem| format!("{id}: {problem}")));
            let Some(coverage) = &environment.coverage else {
                if reasons.len() == before {
                    reasons.push(format!("{id}: not applied yet"));
                }
                continue;
            };
            if environment.state == State::NotApplied {
                reasons.push(format!("{id}: not applied yet"));
            } else if !coverage.current {
                reasons.push(format!("{id}: the cluster has not taken up this lock yet"));
            }
            for image in coverage.images.iter().filter(|image| image.ready < image.eligible) {
                for node in image.nodes.iter().filter(|node| node.state != NodeState::Success) {
                    let message = node.message.as_deref().unwrap_or("pulling");
                    reasons.push(format!("{id} {} on {}: {message}", image.image, node.node));
                }
            }
        }
        reasons
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{digest::Digest, report::ImageCoverage};

    fn coverage(current: bool, ready: usize, eligible: usize) -> Coverage {
        let image = ImageCoverage {
            image: "notebook".parse().unwrap(),
            reference: "quay.io/t/a:1".parse().unwrap(),
            digest: Digest::sha256(b"a"),
            ready,
            eligible,
            nodes: Vec::new(),
        };
        Coverage { current, images: vec![image], excluded: BTreeMap::new() }
    }

    #[test]
    fn nodes_decide_between_warm_pulling_and_not_applied() {
        let full = Coverage { excluded: [("n1".to_owned(), "no room".to_owned())].into(), ..coverage(false, 0, 0) };
        let cases = [
            (None, State::NotApplied),
            (Some(coverage(false, 0, 0)), State::NotApplied),
            (Some(full), State::Pulling),
            (Some(coverage(false, 0, 2)), State::Pulling),
            (Some(coverage(true, 1, 2)), State::Pulling),
            (Some(coverage(true, 2, 2)), State::Warm),
            // A pool without a node.
            (Some(coverage(true, 0, 0)), State::Warm),
        ];
        for (coverage, expected) in cases {
            assert_eq!(of_nodes(coverage.as_ref(), Some(Condition::Applied)), expected, "{coverage:?}");
        }
    }

    #[test]
    fn what_is_not_applied_is_not_warm_and_may_become_so() {
        let standing = |coverage: Option<Coverage>| {
            let environment =
                EnvironmentStanding { state: State::NotApplied, problems: vec![], notes: vec![], coverage };
            Standing { environments: [("research/a".parse().unwrap(), environment)].into(), ..Standing::default() }
        };
        for coverage in [None, Some(coverage(false, 0, 0))] {
            let standing = standing(coverage);
            assert!(!standing.is_warm() && standing.may_become_warm());
            assert_eq!(standing.reasons(), ["research/a: not applied yet"]);
        }
    }
}
