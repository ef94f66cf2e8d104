//! Coverage from hand-made observations.

use serde_json::json;

use super::*;
use crate::model::{
    digest::Digest,
    failure::{Category, Problem},
    manifest::{MANIFEST_ANNOTATION, Manifest, ObjectId},
    observation::PodImage,
    reference::ImageReference,
};

const REFERENCE: &str = "quay.io/team/a:v1";

fn digest(text: &str) -> Digest {
    Digest::sha256(text.as_bytes())
}

fn pinned(reference: &str, content: &str) -> String {
    reference.parse::<ImageReference>().unwrap().pinned(&digest(content))
}

fn id() -> EnvironmentId {
    "team/env".parse().unwrap()
}

fn lock(images: &[(&str, &str, &str)]) -> Lock {
    let images = images.iter().map(|(name, reference, content)| {
        let image = LockedImage {
            reference: reference.parse().unwrap(),
            digest: digest(content),
            media_type: String::new(),
            platforms: Vec::new(),
            previous: Vec::new(),
            hold: None,
        };
        (name.parse().unwrap(), image)
    });
    Lock::from([(id(), Ok(Lockfile { images: images.collect() }))])
}

fn object(name: &str) -> ObjectId {
    ObjectId { kind: Kind::DaemonSet, namespace: "team".to_owned(), name: name.to_owned() }
}

fn manifests(names: &[&str]) -> Manifests {
    let manifest = |name: &&str| Manifest {
        impersonate: None,
        id: object(name),
        owner: Owner::Environment(id()),
        object: json!({"metadata": {"annotations": {MANIFEST_ANNOTATION: "new"}}}).into(),
    };
    Manifests::from([(Owner::Environment(id()), Ok(names.iter().map(manifest).collect()))])
}

fn puller(name: &str, desired: usize, images: &[&str]) -> PullerState {
    PullerState {
        id: object(name),
        uid: format!("uid-{name}"),
        owner: Owner::Environment(id()),
        manifest: "new".to_owned(),
        observed: true,
        desired,
        images: images.iter().map(|image| (*image).to_owned()).collect(),
    }
}

fn pod(puller: &str, node: &str, images: &[(&str, Progress)]) -> PullerPod {
    PullerPod {
        puller: format!("uid-{puller}"),
        node: node.to_owned(),
        unschedulable: None,
        terminating: false,
        images: images
            .iter()
            .map(|(image, progress)| PodImage { image: (*image).to_owned(), progress: progress.clone() })
            .collect(),
    }
}

fn nodes(conditions: &[(&str, NodeCondition)]) -> BTreeMap<String, NodeCondition> {
    conditions.iter().map(|(name, condition)| ((*name).to_owned(), condition.clone())).collect()
}

fn two_ready() -> BTreeMap<String, NodeCondition> {
    nodes(&[("n1", NodeCondition::Ready), ("n2", NodeCondition::Ready)])
}

/// A node, its state and message.
type Report = (String, NodeState, Option<String>);

/// `current`, each image as `ready/eligible`, and the reports of the first image.
fn summary(coverage: &Coverage) -> (bool, Vec<String>, Vec<Report>) {
    let counts = coverage.images.values().map(|image| format!("{}/{}", image.ready, image.eligible)).collect();
    let reports = coverage.images.values().take(1).flat_map(|image| &image.nodes);
    (
        coverage.nodes.current,
        counts,
        reports.map(|node| (node.node.clone(), node.state, node.message.clone())).collect(),
    )
}

fn judge(lock: &Lock, manifests: &Manifests, observation: &Observation) -> Coverage {
    coverage(lock, manifests, observation).remove(&id()).unwrap()
}

#[test]
fn a_started_container_counts_and_a_failed_one_says_why() {
    let new = pinned(REFERENCE, "new");
    let cases = [
        (Progress::Started, "2/2", NodeState::Success, None),
        (Progress::Pending, "1/2", NodeState::Pulling, None),
        (Progress::Failed("not found".to_owned()), "1/2", NodeState::Failure, Some("not found".to_owned())),
    ];
    for (progress, count, state, message) in cases {
        let observation = Observation {
            pullers: vec![puller("d", 2, &[&new])],
            pods: vec![pod("d", "n1", &[(&new, Progress::Started)]), pod("d", "n2", &[(&new, progress)])],
            nodes: two_ready(),
        };
        let coverage = judge(&lock(&[("a", REFERENCE, "new")]), &manifests(&["d"]), &observation);
        let expected = vec![("n1".to_owned(), NodeState::Success, None), ("n2".to_owned(), state, message)];
        assert_eq!(summary(&coverage), (true, vec![count.to_owned()], expected));
        assert_eq!(coverage.is_complete(), state == NodeState::Success);
    }
}

#[test]
fn a_container_that_stands_in_the_way_is_named() {
    let (a, b) = (pinned(REFERENCE, "a"), pinned("quay.io/team/b:v1", "b"));
    let blocked =
        |image: &str, message: &str| Progress::Blocked { image: image.to_owned(), message: message.to_owned() };
    let helper = "docker.io/library/busybox:1.37";
    let cases = [
        (
            blocked(helper, "ImagePullBackOff: toomanyrequests"),
            "helper docker.io/library/busybox:1.37: ImagePullBackOff: toomanyrequests".to_owned(),
        ),
        (blocked(&b, "ErrImagePull: not found"), format!("waits for {b}: ErrImagePull: not found")),
    ];
    for (progress, message) in cases {
        let observation = Observation {
            pullers: vec![puller("d", 2, &[&a, &b])],
            pods: vec![pod("d", "n1", &[(&a, Progress::Started)]), pod("d", "n2", &[(&a, progress)])],
            nodes: two_ready(),
        };
        let lock = lock(&[("a", REFERENCE, "a"), ("b", "quay.io/team/b:v1", "b")]);
        let coverage = judge(&lock, &manifests(&["d"]), &observation);
        let (_, counts, nodes) = summary(&coverage);
        assert_eq!((counts[0].as_str(), &nodes[1]), ("1/2", &("n2".to_owned(), NodeState::Failure, Some(message))));
    }
}

#[test]
fn a_puller_in_another_namespace_is_not_the_environments() {
    let new = pinned(REFERENCE, "new");
    let mut forged = puller("forged", 50, &[&new]);
    forged.id.namespace = "elsewhere".to_owned();
    forged.observed = false;
    let observation = Observation {
        pullers: vec![puller("d", 1, &[&new]), forged],
        pods: vec![
            pod("d", "n1", &[(&new, Progress::Started)]),
            pod("forged", "n2", &[(&new, Progress::Failed("no".to_owned()))]),
        ],
        nodes: two_ready(),
    };
    let coverage = judge(&lock(&[("a", REFERENCE, "new")]), &manifests(&["d"]), &observation);
    assert_eq!(summary(&coverage), (true, vec!["1/1".to_owned()], vec![("n1".to_owned(), NodeState::Success, None)]));
}

#[test]
fn an_image_is_matched_by_what_the_pod_pins() {
    // Two references with the same content are two containers; only the one that has started is proven.
    let (a, b) = (pinned(REFERENCE, "same"), pinned("docker.io/library/busybox:1.37", "same"));
    let observation = Observation {
        pullers: vec![puller("d", 1, &[&a, &b])],
        pods: vec![pod("d", "n1", &[(&a, Progress::Pending), (&b, Progress::Started)])],
        nodes: two_ready(),
    };
    let lock = lock(&[("a", REFERENCE, "same"), ("b", "docker.io/library/busybox:1.37", "same")]);
    let coverage = judge(&lock, &manifests(&["d"]), &observation);
    assert_eq!(summary(&coverage).1, ["0/1", "1/1"]);
}

#[test]
fn a_pod_of_the_old_template_is_still_pulling() {
    let (old, new) = (pinned(REFERENCE, "old"), pinned(REFERENCE, "new"));
    let observation = Observation {
        pullers: vec![puller("d", 2, &[&new])],
        pods: vec![pod("d", "n1", &[(&new, Progress::Started)]), pod("d", "n2", &[(&old, Progress::Started)])],
        nodes: two_ready(),
    };
    let coverage = judge(&lock(&[("a", REFERENCE, "new")]), &manifests(&["d"]), &observation);
    assert_eq!(summary(&coverage).1, ["1/2"]);
}

#[test]
fn nothing_counts_before_the_cluster_has_taken_it_up() {
    // A status of an older generation must not look like success.
    let new = pinned(REFERENCE, "new");
    let good = puller("d", 1, &[&new]);
    let cases = [
        ("not observed", vec![PullerState { observed: false, ..good.clone() }], manifests(&["d"])),
        ("another manifest", vec![PullerState { manifest: "old".to_owned(), ..good.clone() }], manifests(&["d"])),
        ("a shard is missing", vec![good.clone()], manifests(&["d", "e"])),
    ];
    for (case, pullers, manifests) in cases {
        let pods = vec![pod("d", "n1", &[(&new, Progress::Started)])];
        let observation = Observation { pullers, pods, nodes: two_ready() };
        let coverage = judge(&lock(&[("a", REFERENCE, "new")]), &manifests, &observation);
        assert_eq!(
            summary(&coverage),
            (false, vec!["0/1".to_owned()], vec![("n1".to_owned(), NodeState::Pulling, None)]),
            "{case}"
        );
        assert!(!coverage.is_complete());
    }
    let coverage = judge(&lock(&[("a", REFERENCE, "new")]), &manifests(&["d"]), &Observation::default());
    assert_eq!(summary(&coverage), (false, vec!["0/0".to_owned()], vec![]));
    assert!(!coverage.is_complete());
}

#[test]
fn an_environment_without_manifests_is_judged_by_its_former_puller() {
    let new = pinned(REFERENCE, "new");
    let observation = Observation {
        pullers: vec![PullerState { manifest: "former".to_owned(), ..puller("d", 1, &[&new]) }],
        pods: vec![pod("d", "n1", &[(&new, Progress::Started)])],
        nodes: two_ready(),
    };
    let broken = Manifests::from([(Owner::Environment(id()), Err(Problem::new(Category::Syntax, "broken").into()))]);
    let coverage = judge(&lock(&[("a", REFERENCE, "new")]), &broken, &observation);
    assert_eq!((coverage.nodes.current, summary(&coverage).1), (true, vec!["1/1".to_owned()]));
}

#[test]
fn nodes_that_cannot_take_it_do_not_count() {
    let new = pinned(REFERENCE, "new");
    let not_ready = NodeCondition::NotReady("Kubelet stopped posting node status.".to_owned());
    let full = "0/2 nodes are available: 1 Too many pods.";
    let cases = [
        (Progress::Started, NodeCondition::Ready, None, "2/2", None),
        (Progress::Started, not_ready.clone(), None, "1/1", Some("not ready: Kubelet stopped posting node status.")),
        (Progress::Pending, not_ready, None, "1/1", Some("not ready: Kubelet stopped posting node status.")),
        (Progress::Pending, NodeCondition::Cordoned, None, "1/1", Some("cordoned")),
        (Progress::Started, NodeCondition::Cordoned, None, "2/2", None),
        (
            Progress::Pending,
            NodeCondition::Ready,
            Some(full),
            "1/1",
            Some("no room: 0/2 nodes are available: 1 Too many pods."),
        ),
    ];
    for (progress, condition, unschedulable, count, excluded) in cases {
        let case = format!("{progress:?} {condition:?} {unschedulable:?}");
        let mut second = pod("d", "n2", &[(&new, progress)]);
        second.unschedulable = unschedulable.map(str::to_owned);
        let observation = Observation {
            pullers: vec![puller("d", 2, &[&new])],
            pods: vec![pod("d", "n1", &[(&new, Progress::Started)]), second],
            nodes: nodes(&[("n1", NodeCondition::Ready), ("n2", condition)]),
        };
        let coverage = judge(&lock(&[("a", REFERENCE, "new")]), &manifests(&["d"]), &observation);
        assert_eq!(summary(&coverage).1, [count], "{case}");
        assert_eq!(coverage.nodes.ineligible.get("n2").map(String::as_str), excluded, "{case}");
        assert!(coverage.is_complete(), "{case}");
    }
}

#[test]
fn a_node_without_a_pod_yet_is_waited_for() {
    let new = pinned(REFERENCE, "new");
    let observation = Observation {
        pullers: vec![puller("d", 2, &[&new])],
        pods: vec![pod("d", "n1", &[(&new, Progress::Started)])],
        nodes: two_ready(),
    };
    let coverage = judge(&lock(&[("a", REFERENCE, "new")]), &manifests(&["d"]), &observation);
    assert_eq!(summary(&coverage).1, ["1/2"]);
    // No node matches: all of none hold it.
    let observation = Observation { pullers: vec![puller("d", 0, &[&new])], pods: vec![], nodes: two_ready() };
    let coverage = judge(&lock(&[("a", REFERENCE, "new")]), &manifests(&["d"]), &observation);
    assert_eq!(summary(&coverage).1, ["0/0"]);
    assert!(coverage.is_complete());
}

#[test]
fn each_image_is_counted_at_its_own_puller() {
    let (a, b) = (pinned(REFERENCE, "a"), pinned("quay.io/team/b:v1", "b"));
    let mut old = pod("d", "n1", &[(&a, Progress::Pending)]);
    old.terminating = true;
    let observation = Observation {
        pullers: vec![puller("d", 2, &[&a]), puller("e", 2, &[&b])],
        pods: vec![
            old,
            pod("d", "n1", &[(&a, Progress::Started)]),
            pod("d", "n2", &[(&a, Progress::Started)]),
            pod("e", "n1", &[(&b, Progress::Started)]),
            pod("e", "n2", &[(&b, Progress::Pending)]),
        ],
        nodes: two_ready(),
    };
    let lock = lock(&[("a", REFERENCE, "a"), ("b", "quay.io/team/b:v1", "b")]);
    let coverage = judge(&lock, &manifests(&["d", "e"]), &observation);
    assert_eq!(summary(&coverage).1, ["2/2", "1/2"]);
}
