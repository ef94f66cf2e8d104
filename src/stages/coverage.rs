//! Which node holds which image, judged by the pullers' pods.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{
    batch::succeeded,
    lock::{Lock, LockedImage, Lockfile},
    manifest::{Kind, Manifests, Owner},
    name::{EnvironmentId, Name},
    observation::{NodeCondition, Observation, Progress, PullerPod, PullerState},
    status::{Coverage, ImageCoverage, NodeState, NodeStatus, Nodes},
};

/// How far each locked environment has come.
///
/// A container that has started proves the image that its pod pins by digest; what the container's status says of the
/// image is another name of the same content at times. `manifests` are what the lock renders to: a puller that is not
/// like its manifest yet is not current.
pub fn coverage(lock: &Lock, manifests: &Manifests, observation: &Observation) -> BTreeMap<EnvironmentId, Coverage> {
    let mut pullers: BTreeMap<&Owner, Vec<&PullerState>> = BTreeMap::new();
    let namespaces = namespaces(manifests);
    // Anyone can make an object in a namespace of their own that names this owner.
    let is_in_place = |puller: &&PullerState| {
        namespaces.get(puller.owner.tenant()).is_none_or(|namespace| puller.id.namespace == *namespace)
    };
    for puller in observation.pullers.iter().filter(is_in_place) {
        pullers.entry(&puller.owner).or_default().push(puller);
    }
    let mut pods: BTreeMap<&str, Vec<&PullerPod>> = BTreeMap::new();
    for pod in observation.pods.iter().filter(|pod| !pod.terminating) {
        pods.entry(&pod.puller).or_default().push(pod);
    }
    succeeded(lock)
        .map(|(id, lockfile)| {
            let owner = Owner::Environment(id.clone());
            let pullers = pullers.get(&owner).map(Vec::as_slice).unwrap_or_default();
            let current = is_current(&owner, manifests, pullers);
            let shown = Shown { pullers, pods: &pods, nodes: &observation.nodes };
            (id.clone(), of_environment(lockfile, current, &shown))
        })
        .collect()
}

/// The namespace of each tenant that anything is rendered for.
fn namespaces(manifests: &Manifests) -> BTreeMap<&Name, &str> {
    let rendered = manifests.values().flatten().flatten().filter(|manifest| manifest.id.kind != Kind::Namespace);
    rendered.map(|manifest| (manifest.owner.tenant(), manifest.id.namespace.as_str())).collect()
}

/// What the cluster shows of one environment.
struct Shown<'a> {
    pullers: &'a [&'a PullerState],
    /// All pods by the uid of their puller.
    pods: &'a BTreeMap<&'a str, Vec<&'a PullerPod>>,
    nodes: &'a BTreeMap<String, NodeCondition>,
}

impl<'a> Shown<'a> {
    fn pods_of(&self, puller: &PullerState) -> &'a [&'a PullerPod] {
        self.pods.get(puller.uid.as_str()).map(Vec::as_slice).unwrap_or_default()
    }
}

/// Whether the cluster has taken up all pullers as they are rendered; without manifests, whatever they are.
fn is_current(owner: &Owner, manifests: &Manifests, pullers: &[&PullerState]) -> bool {
    if pullers.iter().any(|puller| !puller.observed) {
        return false;
    }
    let Some(Ok(manifests)) = manifests.get(owner) else { return !pullers.is_empty() };
    let wanted = manifests.iter().filter(|manifest| manifest.id.kind == Kind::DaemonSet);
    wanted
        .into_iter()
        .all(|manifest| pullers.iter().any(|puller| puller.id == manifest.id && puller.manifest == manifest.digest()))
}

fn of_environment(lockfile: &Lockfile, current: bool, shown: &Shown<'_>) -> Coverage {
    let locked: BTreeSet<String> = lockfile.images.values().map(pinned).collect();
    let mut images: BTreeMap<Name, ImageCoverage> =
        lockfile.images.iter().map(|(name, image)| (name.clone(), of_image(image, &locked, shown))).collect();
    let ineligible = ineligible(shown, &images);
    for image in images.values_mut() {
        let unseen = image.eligible;
        image.nodes.retain(|node| !ineligible.contains_key(&node.node));
        if !current {
            image
                .nodes
                .iter_mut()
                .filter(|node| node.state == NodeState::Success)
                .for_each(|node| node.state = NodeState::Pulling);
        }
        image.ready = image.nodes.iter().filter(|node| node.state == NodeState::Success).count();
        image.eligible = image.nodes.len() + unseen;
    }
    Coverage { nodes: Nodes { current, ineligible }, images }
}

fn pinned(image: &LockedImage) -> String {
    image.reference.pinned(&image.digest)
}

/// An image on all nodes that have a pod for it; `eligible` counts those that have none yet.
fn of_image(image: &LockedImage, locked: &BTreeSet<String>, shown: &Shown<'_>) -> ImageCoverage {
    let pinned = pinned(image);
    // The one puller that has it; while none is known to, each of them may be about to.
    let holders = shown.pullers.iter().filter(|puller| puller.images.contains(&pinned));
    let holders: Vec<&&PullerState> = match holders.collect::<Vec<_>>() {
        none if none.is_empty() => shown.pullers.iter().collect(),
        some => some,
    };
    let mut nodes: BTreeMap<&str, NodeStatus> = BTreeMap::new();
    let mut desired = 0;
    for puller in holders {
        desired = desired.max(puller.desired);
        for pod in shown.pods_of(puller) {
            let found = on_node(pod, &pinned, locked);
            // Of two pods on a node the one that has come further tells.
            let known = nodes.entry(&pod.node).or_insert_with(|| found.clone());
            if found.state > known.state {
                *known = found;
            }
        }
    }
    ImageCoverage { ready: 0, eligible: desired.saturating_sub(nodes.len()), nodes: nodes.into_values().collect() }
}

fn on_node(pod: &PullerPod, pinned: &str, locked: &BTreeSet<String>) -> NodeStatus {
    let images = || pod.images.iter().filter(|image| image.image == pinned);
    let failure = images().find_map(|image| match &image.progress {
        Progress::Failed(message) => Some(message.clone()),
        Progress::Blocked { image, message } if locked.contains(image) => Some(format!("waits for {image}: {message}")),
        Progress::Blocked { image, message } => Some(format!("helper {image}: {message}")),
        Progress::Pending | Progress::Started => None,
    });
    let (state, message) = match failure {
        _ if images().any(|image| image.progress == Progress::Started) => (NodeState::Success, None),
        Some(message) => (NodeState::Failure, Some(message)),
        // Also a pod of an older template, which has another digest.
        None => (NodeState::Pulling, None),
    };
    NodeStatus { node: pod.node.clone(), state, message }
}

/// Nodes that do not count, each with the reason.
fn ineligible(shown: &Shown<'_>, images: &BTreeMap<Name, ImageCoverage>) -> BTreeMap<String, String> {
    let pods = shown.pullers.iter().flat_map(|puller| shown.pods_of(puller));
    let mut ineligible = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for pod in pods {
        seen.insert(pod.node.as_str());
        if let Some(message) = &pod.unschedulable {
            ineligible.insert(pod.node.clone(), format!("no room: {message}"));
        }
    }
    for node in seen {
        let has_all = || {
            let states = images.values().flat_map(|image| &image.nodes);
            states.filter(|status| status.node == node).all(|status| status.state == NodeState::Success)
        };
        let reason = match shown.nodes.get(node) {
            Some(NodeCondition::Ready) => continue,
            Some(NodeCondition::Cordoned) if has_all() => continue,
            Some(NodeCondition::Cordoned) => "cordoned".to_owned(),
            Some(NodeCondition::NotReady(message)) if message.is_empty() => "not ready".to_owned(),
            Some(NodeCondition::NotReady(message)) => format!("not ready: {message}"),
            None => "the node no longer exists".to_owned(),
        };
        ineligible.insert(node.to_owned(), reason);
    }
    ineligible
}
