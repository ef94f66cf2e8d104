//! Why nodes do not have everything, in lines for people.

use crate::model::status::{NodeState, Reason, State, Status};

/// Why it is not warm, a line for each reason.
pub fn why_not_warm(status: &Status) -> Vec<String> {
    let mut reasons: Vec<String> = status.problems_of(Reason::CannotStart).map(ToString::to_string).collect();
    for (id, environment) in &status.environments {
        if matches!(environment.state(), State::Warm | State::Suspended) {
            continue;
        }
        reasons.extend(environment.problems.iter().map(|finding| format!("{id}: {}", finding.problem)));
        match &environment.nodes {
            _ if environment.reason() == Reason::NotApplied => reasons.push(format!("{id}: not applied yet")),
            Some(nodes) if !nodes.current => {
                reasons.push(format!("{id}: the cluster has not taken up this lock yet"));
            }
            _ => {}
        }
        for image in &environment.images {
            let Some(coverage) = image.coverage.as_ref().filter(|coverage| coverage.ready < coverage.eligible) else {
                continue;
            };
            for node in coverage.nodes.iter().filter(|node| node.state != NodeState::Success) {
                let message = node.message.as_deref().unwrap_or("pulling");
                reasons.push(format!("{id} {} on {}: {message}", image.name, node.node));
            }
            match coverage.eligible.saturating_sub(coverage.nodes.len()) {
                0 => {}
                1 => reasons.push(format!("{id} {}: 1 node has no pod yet", image.name)),
                more => reasons.push(format!("{id} {}: {more} nodes have no pod yet", image.name)),
            }
        }
    }
    reasons
}
