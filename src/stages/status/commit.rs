//! A status in one line, for a commit at its forge.

use crate::model::{
    forge::{CommitState, CommitStatus},
    status::{EnvironmentStatus, NodeState, Reason, Status},
    text::plural,
};

/// The commit status of the commit that was looked at; none while its nodes are not observed.
pub fn of_commit(status: &Status) -> Option<CommitStatus> {
    let cannot_start: Vec<&str> =
        status.problems_of(Reason::CannotStart).map(|problem| problem.message.as_str()).collect();
    if let Some(first) = cannot_start.first() {
        return Some(CommitStatus::new(CommitState::Failure, &with_more(first, cannot_start.len())));
    }
    if let Some(failure) = failure(status) {
        return Some(failure);
    }
    let environments = || status.environments.values();
    if environments().any(|environment| environment.reason() == Reason::NotObserved) {
        return None;
    }
    if environments().all(|environment| environment.nodes.is_none()) {
        let count = plural(status.environments.len(), "environment");
        return Some(CommitStatus::new(CommitState::Success, &format!("rendered: {count}")));
    }
    Some(of_nodes(status))
}

/// What the pass could not do.
fn failure(status: &Status) -> Option<CommitStatus> {
    let is_proposed = status.notes.iter().any(|note| note.reason == Reason::ProposalWaiting);
    let mut reasons: Vec<String> =
        status.problems_of(Reason::LockRefused).map(|problem| problem.message.clone()).collect();
    let mut waiting = 0;
    for (id, environment) in &status.environments {
        let Some(first) = environment.problems.first() else { continue };
        // What is only proposed so far cannot be locked yet.
        if is_proposed && environment.problems.iter().all(|finding| finding.reason == Reason::NotLocked) {
            waiting += 1;
        } else {
            reasons.push(format!("{id}: {}", first.problem.message));
        }
    }
    let tenants = status.tenants.iter().filter_map(|(tenant, status)| Some((tenant, status.problems.first()?)));
    reasons.extend(tenants.map(|(tenant, first)| format!("{tenant}: {}", first.problem.message)));
    match (reasons.first(), waiting) {
        (Some(first), _) => Some(CommitStatus::new(CommitState::Failure, &with_more(first, reasons.len()))),
        (None, 0) => None,
        (None, 1) => Some(CommitStatus::new(CommitState::Pending, "1 environment waits for its lock to be merged")),
        (None, _) => {
            let text = format!("{waiting} environments wait for their lock to be merged");
            Some(CommitStatus::new(CommitState::Pending, &text))
        }
    }
}

fn of_nodes(status: &Status) -> CommitStatus {
    let (mut ready, mut eligible) = (0, 0);
    let mut failures = Vec::new();
    let active = |environment: &&EnvironmentStatus| environment.reason() != Reason::Suspended;
    for (id, environment) in status.environments.iter().filter(|(_, environment)| active(environment)) {
        for image in &environment.images {
            let Some(coverage) = &image.coverage else { continue };
            ready += coverage.ready;
            eligible += coverage.eligible;
            if environment.reason() == Reason::PullFailed {
                let failed = coverage.nodes.iter().filter(|node| node.state == NodeState::Failure);
                failures.extend(failed.map(|node| {
                    format!("{id} {} on {}: {}", image.name, node.node, node.message.as_deref().unwrap_or("failed"))
                }));
            }
        }
    }
    let counts = format!("{ready} of {eligible} images are on their nodes");
    match failures.first() {
        Some(first) => CommitStatus::new(CommitState::Failure, &with_more(first, failures.len())),
        None if status.environments.values().all(EnvironmentStatus::is_well) => {
            CommitStatus::new(CommitState::Success, &counts)
        }
        None => CommitStatus::new(CommitState::Pending, &counts),
    }
}

/// The first of several reasons, and how many there are. The count comes first: a long reason is cut.
fn with_more(first: &str, count: usize) -> String {
    if count > 1 { format!("{count} problems, the first: {first}") } else { first.to_owned() }
}
