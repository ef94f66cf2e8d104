//! What pullers, their pods and their nodes show, read from a cluster.

mod pod;

use std::collections::BTreeMap;

use k8s_openapi::api::{
    apps::v1::DaemonSet,
    core::v1::{Node, Pod, PodSpec},
};
use kube::{
    api::{ListParams, ObjectList},
    core::Request,
};
use serde::de::DeserializeOwned;

use super::{
    KubeCluster,
    inventory::Shapes,
    problem::{Attempt, problem},
};
use crate::model::{
    failure::Problem,
    manifest::{Kind, PULLER_LABEL},
    observation::{NodeCondition, Observation, PullerState},
};

/// Objects of one page of a list. Pods and nodes are large.
const PAGE: u32 = 200;

impl KubeCluster {
    /// What our pullers, their pods and the nodes show now.
    ///
    /// # Errors
    /// When one of the lists cannot be had.
    pub async fn observe(&self) -> Result<Observation, Problem> {
        let mut observation = Observation::default();
        let mut shapes = Shapes::default();
        self.each_page("/apis/apps/v1", "daemonsets", &self.identity.selector(), |daemon_set: DaemonSet| {
            observation.pullers.extend(self.puller(&daemon_set, &mut shapes));
        })
        .await?;
        let ours = |pod: &Pod| {
            let metadata = &pod.metadata;
            let mut owners = metadata.owner_references.iter().flatten();
            // A pod of another namespace can name any uid.
            let is_beside = |puller: &PullerState| metadata.namespace.as_deref() == Some(puller.id.namespace.as_str());
            owners.any(|owner| observation.pullers.iter().any(|puller| puller.uid == owner.uid && is_beside(puller)))
        };
        let mut pods = Vec::new();
        self.each_page("/api/v1", "pods", PULLER_LABEL, |pod: Pod| {
            // Another larder's pullers have the label as well.
            if ours(&pod) {
                pods.extend(pod::pod(&pod));
            }
        })
        .await?;
        observation.pods = pods;
        self.each_page("/api/v1", "nodes", "", |node: Node| {
            observation.nodes.insert(node.metadata.name.clone().unwrap_or_default(), condition(&node));
        })
        .await?;
        Ok(observation)
    }

    fn puller(&self, daemon_set: &DaemonSet, shapes: &mut Shapes) -> Option<PullerState> {
        let metadata = &daemon_set.metadata;
        let (id, entry) = self.identity.entry(Kind::DaemonSet, metadata, shapes)?;
        let status = daemon_set.status.as_ref();
        let observed = status.and_then(|status| status.observed_generation).unwrap_or_default();
        let spec = daemon_set.spec.template.spec.as_ref();
        Some(PullerState {
            id,
            uid: entry.uid,
            owner: entry.owner,
            manifest: entry.manifest,
            observed: observed >= metadata.generation.unwrap_or_default(),
            desired: status.and_then(|status| status.desired_number_scheduled.try_into().ok()).unwrap_or_default(),
            images: spec.map(images).unwrap_or_default(),
        })
    }

    /// Hands over each object of a list, page by page.
    pub(super) async fn each_page<K: DeserializeOwned + Clone>(
        &self,
        group: &str,
        plural: &'static str,
        labels: &str,
        mut take: impl FnMut(K),
    ) -> Result<(), Problem> {
        let what = format!("the list of {plural}");
        let attempt = Attempt { what: &what, verb: "list", resource: plural, namespace: "" };
        let mut page = ListParams::default().limit(PAGE);
        page.label_selector = (!labels.is_empty()).then(|| labels.to_owned());
        loop {
            let request = Request::new(format!("{group}/{plural}")).list(&page);
            let list: ObjectList<K> = self.send(request).await.map_err(|error| problem(attempt, &error))?;
            list.items.into_iter().for_each(&mut take);
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page.continue_token = Some(token),
                None => return Ok(()),
            }
        }
    }
}

/// The images that a pod of this specification needs.
fn images(spec: &PodSpec) -> Vec<String> {
    let containers = spec.init_containers.iter().flatten().chain(&spec.containers);
    let volumes = spec.volumes.iter().flatten().filter_map(|volume| volume.image.as_ref()?.reference.clone());
    containers.filter_map(|container| container.image.clone()).chain(volumes).collect()
}

fn condition(node: &Node) -> NodeCondition {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let ready: BTreeMap<&str, _> = conditions.map(|condition| (condition.type_.as_str(), condition)).collect();
    match ready.get("Ready") {
        Some(ready) if ready.status == "True" => {
            if node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or_default() {
                NodeCondition::Cordoned
            } else {
                NodeCondition::Ready
            }
        }
        Some(ready) => NodeCondition::NotReady(ready.message.clone().unwrap_or_default()),
        None => NodeCondition::NotReady("its kubelet has not said anything yet".to_owned()),
    }
}
