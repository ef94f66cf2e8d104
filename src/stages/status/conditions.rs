//! Conditions, from the reasons that hold.

use crate::model::status::{
    Condition, ConditionStatus, ConditionType, Coverage, Effect, EnvironmentStatus, Finding, NodeState, Reason,
};

/// What is known of an environment's nodes.
#[derive(Clone, Copy)]
pub(super) enum Observed<'a> {
    /// The target has none.
    NoNodes,
    /// They were not observed yet.
    Nothing,
    /// They were observed; without coverage, nothing of the environment is locked.
    Nodes(Option<&'a Coverage>),
}

/// A reason that holds, with its message.
struct Holds {
    reason: Reason,
    message: String,
}

/// That it is suspended.
pub(super) fn suspended(commit: Option<&str>) -> Condition {
    let holds = Holds { reason: Reason::Suspended, message: "suspended by its file".to_owned() };
    condition(ConditionType::Suspended, ConditionStatus::True, &holds, commit)
}

/// The conditions of the controller.
pub(super) fn of_controller(commit: Option<&str>, problems: &[Finding]) -> Vec<Condition> {
    let otherwise = if commit.is_some() { Reason::Succeeded } else { Reason::NoPass };
    of(of_findings(problems), otherwise, commit)
}

/// The conditions of a tenant.
pub(super) fn of_tenant(commit: Option<&str>, problems: &[Finding]) -> Vec<Condition> {
    of(of_findings(problems), Reason::Applied, commit)
}

/// The conditions of an environment. Whether it is suspended is told by the conditions that it has.
pub(super) fn of_environment(
    commit: Option<&str>,
    environment: &EnvironmentStatus,
    observed: Observed<'_>,
) -> Vec<Condition> {
    let mut holds = of_findings(&environment.problems);
    if environment.is(ConditionType::Suspended) {
        holds.push(Holds { reason: Reason::Suspended, message: "suspended by its file".to_owned() });
    }
    // Nodes say nothing about what is broken or suspended: they have what was there before.
    let counts = !holds.iter().any(|holds| matches!(holds.reason.effect(), Effect::Stalled | Effect::Suspended));
    let otherwise = match observed {
        Observed::NoNodes => Reason::Applied,
        Observed::Nothing => Reason::NotObserved,
        Observed::Nodes(coverage) => {
            holds.extend(coverage_problem(coverage).filter(|_| counts));
            Reason::NodesReady
        }
    };
    of(holds, otherwise, commit)
}

fn of_findings(findings: &[Finding]) -> Vec<Holds> {
    let mut all: Vec<Holds> = Vec::new();
    for Finding { reason, problem } in findings {
        if all.iter().all(|known| known.reason != *reason) {
            let more = findings.iter().filter(|other| other.reason == *reason).count() - 1;
            let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
            all.push(Holds { reason: *reason, message: format!("{}{more}", problem.message) });
        }
    }
    all
}

/// Why nodes do not have all images.
fn coverage_problem(coverage: Option<&Coverage>) -> Option<Holds> {
    let holds = |reason, message: &str| Some(Holds { reason, message: message.to_owned() });
    let is_applied = |coverage: &&Coverage| {
        coverage.nodes.current
            || !coverage.nodes.ineligible.is_empty()
            || coverage.images.values().any(|image| image.eligible > 0)
    };
    let Some(coverage) = coverage.filter(is_applied) else {
        return holds(Reason::NotApplied, "the cluster has no puller of it");
    };
    let failing = coverage.images.iter().flat_map(|(name, image)| image.nodes.iter().map(move |node| (name, node)));
    let mut failing = failing.filter(|(_, node)| node.state == NodeState::Failure);
    match failing.next() {
        Some((name, node)) if coverage.nodes.current => {
            let message = node.message.as_deref().unwrap_or("failed");
            let more = match failing.count() {
                0 => String::new(),
                more => format!(" (and {more} more)"),
            };
            return holds(Reason::PullFailed, &format!("{name} on {}: {message}{more}", node.node));
        }
        _ if coverage.is_complete() => return None,
        _ if !coverage.nodes.current => {
            return holds(Reason::Pulling, "the cluster has not taken up the newest lock yet");
        }
        _ => {}
    }
    let ready: usize = coverage.images.values().map(|image| image.ready).sum();
    let eligible: usize = coverage.images.values().map(|image| image.eligible).sum();
    holds(Reason::Pulling, &format!("{ready} of {eligible} images are on their nodes"))
}

/// The conditions that these reasons lead to; `otherwise` holds where none of them says anything about `Ready`.
fn of(mut holds: Vec<Holds>, otherwise: Reason, commit: Option<&str>) -> Vec<Condition> {
    holds.push(Holds { reason: otherwise, message: String::new() });
    holds.sort_by_key(|holds| holds.reason);
    let first = |effect: Effect| holds.iter().find(|holds| holds.reason.effect() == effect);
    let ready = holds.iter().find_map(|holds| {
        let status = match holds.reason.effect() {
            Effect::Note => return None,
            Effect::Ready => ConditionStatus::True,
            Effect::Unknown | Effect::Suspended => ConditionStatus::Unknown,
            Effect::Stalled | Effect::Reconciling | Effect::NotReady => ConditionStatus::False,
        };
        Some(condition(ConditionType::Ready, status, holds, commit))
    });
    let abnormal = [
        (ConditionType::Reconciling, Effect::Reconciling),
        (ConditionType::Stalled, Effect::Stalled),
        (ConditionType::Suspended, Effect::Suspended),
    ];
    let abnormal = abnormal
        .into_iter()
        .filter_map(|(kind, effect)| Some(condition(kind, ConditionStatus::True, first(effect)?, commit)));
    ready.into_iter().chain(abnormal).collect()
}

fn condition(kind: ConditionType, status: ConditionStatus, holds: &Holds, commit: Option<&str>) -> Condition {
    Condition {
        kind,
        status,
        reason: holds.reason,
        message: holds.message.clone(),
        observed_commit: commit.map(str::to_owned),
    }
}
