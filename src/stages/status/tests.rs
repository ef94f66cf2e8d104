//! Statuses from hand-made passes and observations.

use std::collections::BTreeSet;

use super::*;
use crate::{
    model::{
        digest::Digest,
        forge::CommitState,
        settings::Prune,
        status::{ConditionStatus, ConditionType, ImageCoverage, NodeState, NodeStatus, Nodes, State},
    },
    stages::{budget, lock::testing::settings},
};

fn id() -> EnvironmentId {
    "t/a".parse().unwrap()
}

fn problem(text: &str) -> Problem {
    Problem::new(Category::Schema, text)
}

/// A status with one environment that has one image and these problems.
fn status(problems: &[(Reason, &str)]) -> Status {
    let image = ImageStatus {
        name: "i".parse().unwrap(),
        reference: "quay.io/a:1".parse().unwrap(),
        digest: Digest::sha256(b"a"),
        hold: None,
        coverage: None,
    };
    let environment = EnvironmentStatus {
        images: vec![image],
        problems: problems.iter().map(|(reason, text)| Finding::new(*reason, problem(text))).collect(),
        ..EnvironmentStatus::default()
    };
    let draft = Draft { environments: BTreeMap::from([(id(), environment)]), ..Draft::default() };
    draft.finish(Some("c".repeat(40)), LastPass::default(), Observed::Nothing)
}

fn coverage(current: bool, states: &[NodeState], unseen: usize) -> Coverage {
    let nodes = states.iter().enumerate().map(|(index, state)| NodeStatus {
        node: format!("n{index}"),
        state: *state,
        message: (*state == NodeState::Failure).then(|| "no space left".into()),
    });
    let image = ImageCoverage {
        ready: states.iter().filter(|state| **state == NodeState::Success).count(),
        eligible: states.len() + unseen,
        nodes: nodes.collect(),
    };
    let nodes = Nodes { current, ineligible: BTreeMap::new() };
    Coverage { nodes, images: BTreeMap::from([("i".parse().unwrap(), image)]) }
}

/// The same status with these nodes.
fn with(mut status: Status, coverage: Option<Coverage>) -> Status {
    observe(&mut status, coverage.into_iter().map(|coverage| (id(), coverage)).collect());
    status
}

fn conditions(status: &Status) -> Vec<(ConditionType, ConditionStatus, Reason)> {
    let conditions = &status.environments[&id()].conditions;
    conditions.iter().map(|condition| (condition.kind, condition.status, condition.reason)).collect()
}

#[test]
fn nodes_decide_between_warm_pulling_and_not_applied() {
    use NodeState::{Failure, Pulling, Success};
    let full = Coverage {
        nodes: Nodes { current: false, ineligible: [("n1".to_owned(), "no room".to_owned())].into() },
        ..coverage(false, &[], 0)
    };
    let cases = [
        (None, State::NotApplied),
        (Some(coverage(false, &[], 0)), State::NotApplied),
        (Some(full), State::Pulling),
        (Some(coverage(false, &[], 2)), State::Pulling),
        (Some(coverage(true, &[Success], 1)), State::Pulling),
        (Some(coverage(true, &[Success, Success], 0)), State::Warm),
        (Some(coverage(true, &[Success, Failure], 0)), State::Degraded),
        (Some(coverage(true, &[Pulling], 0)), State::Pulling),
        // A pool without a node.
        (Some(coverage(true, &[], 0)), State::Warm),
    ];
    for (coverage, expected) in cases {
        let case = format!("{coverage:?}");
        let status = with(status(&[]), coverage);
        assert_eq!(status.environments[&id()].state(), expected, "{case}");
        let ready = expected == State::Warm;
        assert_eq!((status.is_warm(), status.is_reconciling()), (ready, !ready), "{case}");
        assert_eq!(why_not_warm(&status).is_empty(), ready, "{case}");
    }
}

#[test]
fn conditions_have_the_shape_of_kubernetes() {
    use ConditionStatus::{False, True, Unknown};
    use ConditionType::{Ready, Reconciling, Stalled};
    let warm = || Some(coverage(true, &[NodeState::Success], 0));
    let pulling = || Some(coverage(true, &[NodeState::Pulling], 0));
    assert_eq!(conditions(&status(&[])), [(Ready, Unknown, Reason::NotObserved)]);
    assert_eq!(conditions(&with(status(&[]), warm())), [(Ready, True, Reason::NodesReady)]);
    assert_eq!(
        conditions(&with(status(&[]), pulling())),
        [(Ready, False, Reason::Pulling), (Reconciling, True, Reason::Pulling)]
    );
    // What is broken is not on its way, whatever its nodes do.
    let invalid = status(&[(Reason::InvalidFile, "unknown field"), (Reason::InvalidFile, "another")]);
    let invalid = with(invalid, pulling());
    assert_eq!(conditions(&invalid), [(Ready, False, Reason::InvalidFile), (Stalled, True, Reason::InvalidFile)]);
    let ready = &invalid.environments[&id()].conditions[0];
    assert_eq!(ready.message, "unknown field (and 1 more)");
    assert_eq!(ready.observed_commit.as_deref(), Some("c".repeat(40).as_str()));
    // An image that does not resolve is told once the nodes have what is locked.
    let unusable = || status(&[(Reason::ImageUnusable, "not found")]);
    assert_eq!(conditions(&with(unusable(), warm())), [(Ready, False, Reason::ImageUnusable)]);
    assert_eq!(
        conditions(&with(unusable(), pulling())),
        [(Ready, False, Reason::Pulling), (Reconciling, True, Reason::Pulling)]
    );
    let json = serde_json::to_value(&invalid.environments[&id()].conditions[1]).unwrap();
    assert_eq!(
        (&json["type"], &json["status"], &json["reason"]),
        (&"Stalled".into(), &"True".into(), &"InvalidFile".into())
    );
}

#[test]
fn the_earlier_reason_takes_precedence() {
    assert!(Reason::ALL.windows(2).all(|pair| pair[0] < pair[1]));
    for reason in Reason::ALL {
        assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
    }
}

#[test]
fn a_commit_is_green_when_its_nodes_are_warm() {
    use NodeState::{Failure, Pulling, Success};
    for (current, states, expected, text) in [
        (true, &[Success, Success][..], CommitState::Success, "2 of 2 images are on their nodes"),
        (true, &[Success, Pulling], CommitState::Pending, "1 of 2 images are on their nodes"),
        (false, &[Success, Success], CommitState::Pending, "2 of 2 images are on their nodes"),
        (true, &[Success, Failure], CommitState::Failure, "t/a i on n1: no space left"),
        (true, &[], CommitState::Success, "0 of 0 images are on their nodes"),
    ] {
        let status = of_commit(&with(status(&[]), Some(coverage(current, states, 0)))).unwrap();
        assert_eq!((status.state, status.description.as_str()), (expected, text));
    }
    assert_eq!(of_commit(&status(&[])), None, "nothing is known of its nodes yet");
    // A directory has no nodes.
    let environments = status(&[]).environments;
    let draft = Draft { environments, ..Draft::default() };
    let rendered = of_commit(&draft.finish(None, LastPass::default(), Observed::NoNodes)).unwrap();
    assert_eq!((rendered.state, rendered.description.as_str()), (CommitState::Success, "rendered: 1 environment"));
}

#[test]
fn what_a_pass_could_not_do_is_the_reason() {
    let mut broken = status(&[(Reason::InvalidFile, "unknown field `imags`")]);
    let commit = of_commit(&broken).unwrap();
    assert_eq!((commit.state, commit.description.as_str()), (CommitState::Failure, "t/a: unknown field `imags`"));
    broken.problems = vec![Finding::new(Reason::LockRefused, Problem::new(Category::Git, "refused: ticket"))];
    assert_eq!(of_commit(&broken).unwrap().description, "2 problems, the first: refused: ticket");
    let stopped = cannot_start(&broken, Some("d".repeat(40)), &problem("no larder.yaml").into());
    let commit = of_commit(&stopped).unwrap();
    assert_eq!((commit.state, commit.description.as_str()), (CommitState::Failure, "no larder.yaml"));
    assert_eq!(stopped.environments, broken.environments, "the rest is as the last pass left it");
    // It is told once, however often it is tried.
    assert_eq!(cannot_start(&stopped, Some("d".repeat(40)), &problem("no larder.yaml").into()), stopped);
}

#[test]
fn a_failed_poll_is_told_until_one_succeeds() {
    let before = status(&[]);
    let failure = Failure::from(Problem::new(Category::Git, "the repository does not answer"));
    let failed = polled(&before, Some(&failure));
    let ready = &failed.conditions[0];
    assert_eq!((ready.status, ready.reason), (ConditionStatus::False, Reason::PollFailed));
    assert!(failed.conditions.iter().any(|condition| condition.kind == ConditionType::Reconciling));
    assert_eq!((&failed.environments, &failed.last_pass), (&before.environments, &before.last_pass));
    assert_eq!(polled(&failed, Some(&failure)), failed, "it is told once, however often it fails");
    assert_eq!(of_commit(&failed), of_commit(&before), "it says nothing about the commit");
    let healed = polled(&failed, None);
    assert!(healed.problems.is_empty() && healed.conditions[0].reason == Reason::Succeeded);
    assert_eq!(polled(&before, None), before);
}

#[test]
fn what_is_only_proposed_is_waited_for() {
    let mut waiting = status(&[(Reason::NotLocked, "not locked yet")]);
    assert_eq!(of_commit(&waiting).unwrap().state, CommitState::Failure);
    waiting.notes = vec![Finding::new(Reason::ProposalWaiting, problem("lock changes wait to be merged"))];
    assert_eq!(of_commit(&waiting).unwrap().state, CommitState::Pending);
}

/// A snapshot without environments.
fn nothing() -> Environments {
    Environments {
        settings: settings(),
        environments: BTreeMap::new(),
        lock: BTreeMap::new(),
        templates: BTreeMap::new(),
        strays: Vec::new(),
        ignored: 0,
        unread: BTreeSet::new(),
    }
}

#[test]
fn why_removals_are_blocked_is_told_once() {
    let gone: BTreeSet<EnvironmentId> = (0..2000).map(|n| format!("research/e{n}").parse().unwrap()).collect();
    let prune = Prune { budget: 30, confirmed: vec![] };
    let blocked = *budget::decide(&gone, &gone, &prune).unwrap_err();
    let lock = LockChange { blocked: Some(blocked.clone()), ..LockChange::default() };
    let applied = Applied { blocked: Some(blocked.clone()), ..Applied::default() };
    let status = of_pass(&Inputs {
        commit: "c".repeat(40),
        last_pass: LastPass::default(),
        lock_problem: None,
        proposal: None,
        environments: &nothing(),
        lock: &lock,
        applied: &applied,
        target: Target::Cluster,
    });
    assert_eq!(status.problems, [Finding::new(Reason::RemovalBlocked, blocked.problem)]);
    assert_eq!(status.environments.len(), 2000);
    for environment in status.environments.values() {
        assert_eq!(environment.state(), State::Blocked);
        assert!(environment.problems.len() == 1 && environment.problems[0].problem.message.contains("confirmed"));
    }
    // The files alone do not have them any more; what was written down still tells.
    let published: Status = serde_json::from_str(&status.published(usize::MAX)).unwrap();
    let files = of_files(&nothing(), &Manifests::new(), &Origin::Commit("d".repeat(40)), Some(&published));
    assert_eq!(files.environments.len(), 2000);
    assert!(files.environments.values().all(|environment| environment.state() == State::Blocked));
}

#[test]
fn what_was_observed_of_a_commit_stays_until_it_is_observed_again() {
    let before = with(status(&[]), Some(coverage(true, &[NodeState::Success], 0)));
    let mut again = status(&[]);
    keep_observed(&mut again, &before);
    assert_eq!(again, before);
    let mut next = Status { commit: Some("d".repeat(40)), ..status(&[]) };
    keep_observed(&mut next, &before);
    assert_eq!(next.environments[&id()].reason(), Reason::NotObserved);
}
