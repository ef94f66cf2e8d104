//! How a commit stands, in one line for its forge: what the pass came to, and what the nodes hold.

use std::collections::BTreeMap;

use crate::model::{
    failure::{Category, Problem},
    forge::{CommitState, CommitStatus},
    name::EnvironmentId,
    report::{Condition, Coverage, NodeState, PassReport},
};

/// The status of a commit that a pass has applied. `coverage` is none for a target without nodes.
pub fn of_pass(report: &PassReport, coverage: Option<&BTreeMap<EnvironmentId, Coverage>>) -> CommitStatus {
    if let Some(status) = failure(report) {
        return status;
    }
    let Some(coverage) = coverage else {
        let count = report.environments.len();
        return CommitStatus::new(CommitState::Success, &format!("rendered: {count} environments"));
    };
    of_nodes(report, coverage)
}

/// The status of a commit whose pass could not start.
pub fn of_error(problems: &[Problem]) -> CommitStatus {
    let reason = problems.first().map(|problem| problem.message.as_str()).unwrap_or_default();
    CommitStatus::new(CommitState::Failure, &with_more(reason, problems.len()))
}

/// What the pass could not do.
fn failure(report: &PassReport) -> Option<CommitStatus> {
    let mut reasons: Vec<String> = Vec::new();
    if let Some(problem) = &report.lock_problem {
        reasons.push(problem.message.clone());
    }
    let waits = report.lock_proposal.is_some();
    let mut waiting = 0;
    for (id, part) in &report.environments {
        let bad = !matches!(part.condition, Condition::Applied | Condition::Suspended);
        // What is only proposed so far cannot be locked yet.
        if bad && waits && part.problems.iter().all(|problem| problem.category == Category::Lock) {
            waiting += 1;
        } else if bad {
            let reason = part.problems.first().map_or("not applied", |problem| problem.message.as_str());
            reasons.push(format!("{id}: {reason}"));
        }
    }
    let tenants = report.tenants.iter().filter_map(|(tenant, problems)| Some((tenant, problems.first()?)));
    reasons.extend(tenants.map(|(tenant, problem)| format!("{tenant}: {}", problem.message)));
    match (reasons.first(), waiting) {
        (Some(first), _) => Some(CommitStatus::new(CommitState::Failure, &with_more(first, reasons.len()))),
        (None, 0) => None,
        (None, _) => {
            let text = format!("{waiting} environments wait for their lock to be merged");
            Some(CommitStatus::new(CommitState::Pending, &text))
        }
    }
}

fn of_nodes(report: &PassReport, coverage: &BTreeMap<EnvironmentId, Coverage>) -> CommitStatus {
    let (mut ready, mut eligible, mut stale) = (0, 0, 0);
    let mut failures = Vec::new();
    for (id, _) in report.environments.iter().filter(|(_, part)| part.condition == Condition::Applied) {
        let Some(coverage) = coverage.get(id) else {
            stale += 1;
            continue;
        };
        stale += usize::from(!coverage.current);
        for image in &coverage.images {
            ready += image.ready;
            eligible += image.eligible;
            let failed = image.nodes.iter().filter(|node| coverage.current && node.state == NodeState::Failure);
            failures.extend(failed.map(|node| {
                format!("{id} {} on {}: {}", image.image, node.node, node.message.as_deref().unwrap_or("failed"))
            }));
        }
    }
    let held = format!("{ready} of {eligible} images are on their nodes");
    match failures.first() {
        Some(first) => CommitStatus::new(CommitState::Failure, &with_more(first, failures.len())),
        None if stale > 0 || ready < eligible => CommitStatus::new(CommitState::Pending, &held),
        None => CommitStatus::new(CommitState::Success, &held),
    }
}

/// The first of several reasons, and how many more there are. The count comes first: a long reason is cut.
fn with_more(first: &str, count: usize) -> String {
    if count > 1 { format!("{count} problems, the first: {first}") } else { first.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{of_error, of_pass};
    use crate::model::{
        failure::{Category, Problem},
        forge::CommitState,
        report::{Condition, Coverage, EnvironmentReport, ImageCoverage, NodeReport, NodeState, PassReport},
    };

    fn report(condition: Condition, problems: &[(Category, &str)]) -> PassReport {
        let problems = problems.iter().map(|(category, text)| Problem::new(*category, *text)).collect();
        let environments =
            BTreeMap::from([("t/a".parse().unwrap(), EnvironmentReport { condition, problems, notes: vec![] })]);
        PassReport { environments, ..PassReport::default() }
    }

    fn coverage(current: bool, states: &[NodeState]) -> BTreeMap<crate::model::name::EnvironmentId, Coverage> {
        let nodes: Vec<_> = states
            .iter()
            .enumerate()
            .map(|(index, &state)| NodeReport {
                node: format!("n{index}"),
                state,
                message: (state == NodeState::Failure).then(|| "no space left".into()),
            })
            .collect();
        let image = ImageCoverage {
            image: "i".parse().unwrap(),
            reference: "quay.io/a:1".parse().unwrap(),
            digest: format!("sha256:{}", "0".repeat(64)).parse().unwrap(),
            ready: states.iter().filter(|state| **state == NodeState::Success).count(),
            eligible: states.len(),
            nodes,
        };
        let one = Coverage { current, images: vec![image], excluded: BTreeMap::new() };
        BTreeMap::from([("t/a".parse().unwrap(), one)])
    }

    #[test]
    fn a_commit_is_green_when_its_nodes_are_warm() {
        use NodeState::{Failure, Pulling, Success};
        let applied = report(Condition::Applied, &[]);
        for (current, states, expected, text) in [
            (true, &[Success, Success][..], CommitState::Success, "2 of 2 images are on their nodes"),
            (true, &[Success, Pulling], CommitState::Pending, "1 of 2 images are on their nodes"),
            (false, &[Success, Success], CommitState::Pending, "2 of 2 images are on their nodes"),
            (true, &[Success, Failure], CommitState::Failure, "t/a i on n1: no space left"),
            (true, &[], CommitState::Success, "0 of 0 images are on their nodes"),
        ] {
            let status = of_pass(&applied, Some(&coverage(current, states)));
            assert_eq!((status.state, status.description.as_str()), (expected, text));
        }
        // Nothing is known of its nodes yet.
        assert_eq!(of_pass(&applied, Some(&BTreeMap::new())).state, CommitState::Pending);
        // A folder has no nodes.
        assert_eq!(of_pass(&applied, None).state, CommitState::Success);
    }

    #[test]
    fn what_a_pass_could_not_do_is_the_reason() {
        let broken = report(Condition::Failed, &[(Category::Schema, "unknown field `imags`")]);
        let status = of_pass(&broken, Some(&BTreeMap::new()));
        assert_eq!((status.state, status.description.as_str()), (CommitState::Failure, "t/a: unknown field `imags`"));
        let refused = PassReport { lock_problem: Some(Problem::new(Category::Git, "refused: ticket")), ..broken };
        let status = of_pass(&refused, None);
        assert_eq!(status.description, "2 problems, the first: refused: ticket");
        let status = of_error(&[Problem::new(Category::Schema, "no larder.yaml")]);
        assert_eq!((status.state, status.description.as_str()), (CommitState::Failure, "no larder.yaml"));
    }

    #[test]
    fn what_is_only_proposed_is_waited_for() {
        let mut waiting = report(Condition::Failed, &[(Category::Lock, "not locked yet")]);
        assert_eq!(of_pass(&waiting, None).state, CommitState::Failure);
        waiting.lock_proposal = Some("https://forge/pulls/1".into());
        assert_eq!(of_pass(&waiting, None).state, CommitState::Pending);
    }
}
