//! What one pod shows.

use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod, PodSpec, PodStatus};

use crate::model::observation::{PodImage, Progress, PullerPod};

/// Reasons for which a container waits while all is well:
/// <https://github.com/kubernetes/kubernetes/blob/master/pkg/kubelet/kubelet_pods.go>. All others tell of a fault.
const AT_WORK: [&str; 3] = ["ContainerCreating", "PodInitializing", "Pulling"];

/// The pod, if it belongs to a controller and to a node.
pub(super) fn pod(pod: &Pod) -> Option<PullerPod> {
    let owner = pod.metadata.owner_references.iter().flatten().find(|owner| owner.controller.unwrap_or_default())?;
    let spec = pod.spec.as_ref()?;
    let status = pod.status.as_ref();
    Some(PullerPod {
        puller: owner.uid.clone(),
        node: spec.node_name.clone().or_else(|| intended_node(spec))?,
        unschedulable: spec.node_name.is_none().then(|| status.and_then(unschedulable)).flatten(),
        terminating: pod.metadata.deletion_timestamp.is_some(),
        images: images(spec, status),
    })
}

/// The node that the DaemonSet controller has made the pod for: a node affinity to its name.
fn intended_node(spec: &PodSpec) -> Option<String> {
    let affinity = spec.affinity.as_ref()?.node_affinity.as_ref()?;
    let required = affinity.required_during_scheduling_ignored_during_execution.as_ref()?;
    let fields = required.node_selector_terms.iter().flat_map(|term| term.match_fields.iter().flatten());
    let named = fields.into_iter().find(|field| field.key == "metadata.name")?;
    named.values.as_ref()?.first().cloned()
}

fn unschedulable(status: &PodStatus) -> Option<String> {
    let condition = status.conditions.iter().flatten().find(|condition| condition.type_ == "PodScheduled")?;
    let unschedulable = condition.status == "False" && condition.reason.as_deref() == Some("Unschedulable");
    unschedulable.then(|| condition.message.clone().unwrap_or_else(|| "no node takes the pod".to_owned()))
}

fn images(spec: &PodSpec, status: Option<&PodStatus>) -> Vec<PodImage> {
    let none = Vec::new();
    let init = status.and_then(|status| status.init_container_statuses.as_ref()).unwrap_or(&none);
    let main = status.and_then(|status| status.container_statuses.as_ref()).unwrap_or(&none);
    let shown = |container: &Container, statuses: &[ContainerStatus]| {
        let status = statuses.iter().find(|status| status.name == container.name);
        let progress = status.map_or(Progress::Pending, progress);
        PodImage { image: container.image.clone().unwrap_or_default(), progress }
    };
    let init: Vec<PodImage> = spec.init_containers.iter().flatten().map(|container| shown(container, init)).collect();
    let main: Vec<PodImage> = spec.containers.iter().map(|container| shown(container, main)).collect();
    let volumes = volumes(spec, &init, &main);
    // Init containers run one after the other, and before all others: the one that fails stands in the way of the rest.
    let in_the_way = init.iter().find_map(obstacle);
    let mut images: Vec<PodImage> = init.into_iter().chain(main).filter(|image| !image.image.is_empty()).collect();
    if let Some(obstacle) = in_the_way {
        let pending = images.iter_mut().filter(|image| image.progress == Progress::Pending);
        pending.for_each(|image| image.progress = obstacle.clone());
    }
    images.extend(volumes);
    images
}

/// Images of volumes. A container starts only when all of them are there; if one cannot be pulled, the kubelet says so of
/// a container.
fn volumes(spec: &PodSpec, init: &[PodImage], main: &[PodImage]) -> Vec<PodImage> {
    let references: Vec<&String> =
        spec.volumes.iter().flatten().filter_map(|volume| volume.image.as_ref()?.reference.as_ref()).collect();
    let containers = || init.iter().chain(main);
    let names =
        |image: &&PodImage, text: &str| matches!(&image.progress, Progress::Failed(message) if message.contains(text));
    let is_about_a_volume = |image: &&PodImage| references.iter().any(|reference| names(image, reference));
    let progress = |reference: &str| {
        if containers().any(|image| image.progress == Progress::Started) {
            return Progress::Started;
        }
        let named = containers().find(|image| names(image, reference)).map(|image| image.progress.clone());
        let blocked = || containers().filter(|image| !is_about_a_volume(image)).find_map(obstacle);
        named.or_else(blocked).unwrap_or(Progress::Pending)
    };
    references.iter().map(|reference| PodImage { image: (*reference).clone(), progress: progress(reference) }).collect()
}

/// What a container that fails is to those that wait for it.
fn obstacle(image: &PodImage) -> Option<Progress> {
    match &image.progress {
        Progress::Failed(message) => Some(Progress::Blocked { image: image.image.clone(), message: message.clone() }),
        _ => None,
    }
}

/// How far a container has come.
fn progress(status: &ContainerStatus) -> Progress {
    let ended_before = || {
        let last = status.last_state.as_ref()?.terminated.as_ref()?;
        last.message.clone().or_else(|| Some(format!("it ended with exit code {}", last.exit_code)))
    };
    let Some(state) = &status.state else { return Progress::Pending };
    if let Some(waiting) = &state.waiting {
        let reason = waiting.reason.as_deref().unwrap_or_default();
        if reason.is_empty() || AT_WORK.contains(&reason) {
            return Progress::Pending;
        }
        let words = [waiting.message.clone(), (reason == "CrashLoopBackOff").then(ended_before).flatten()];
        let words: Vec<String> = words.into_iter().flatten().filter(|words| !words.is_empty()).collect();
        return Progress::Failed(if words.is_empty() {
            reason.to_owned()
        } else {
            format!("{reason}: {}", words.join("; "))
        });
    }
    if let Some(ended) = &state.terminated {
        if ended.exit_code == 0 {
            return Progress::Started;
        }
        let reason = ended.reason.as_deref().unwrap_or("Error");
        let message = ended.message.as_deref().map(str::trim).filter(|message| !message.is_empty());
        let message = message.map_or_else(|| format!("exit code {}", ended.exit_code), str::to_owned);
        return Progress::Failed(format!("{reason}: {message}"));
    }
    if state.running.is_some() { Progress::Started } else { Progress::Pending }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn status(state: &Value, last: &Value) -> ContainerStatus {
        serde_json::from_value(json!({
            "name": "a", "image": "docker.io/library/busybox:1.37", "imageID": "docker.io/library/busybox@sha256:D",
            "ready": false, "restartCount": 0, "state": state, "lastState": last,
        }))
        .unwrap()
    }

    #[test]
    fn a_container_that_has_started_proves_its_image() {
        let failed = |text: &str| Progress::Failed(text.to_owned());
        let cases = [
            (json!({"running": {}}), json!({}), Progress::Started),
            (json!({"terminated": {"exitCode": 0, "reason": "Completed"}}), json!({}), Progress::Started),
            (json!({"waiting": {"reason": "ContainerCreating"}}), json!({}), Progress::Pending),
            (json!({"waiting": {"reason": "PodInitializing"}}), json!({}), Progress::Pending),
            (json!({}), json!({}), Progress::Pending),
            (
                json!({"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image \"x\": not found"}}),
                json!({}),
                failed("ImagePullBackOff: Back-off pulling image \"x\": not found"),
            ),
            (json!({"waiting": {"reason": "InvalidImageName"}}), json!({}), failed("InvalidImageName")),
            (
                json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}),
                json!({"terminated": {"exitCode": 128, "reason": "StartError", "message": "exec: \"/bin/sh\": no such file"}}),
                failed("CrashLoopBackOff: back-off 10s; exec: \"/bin/sh\": no such file"),
            ),
            (
                json!({"terminated": {"exitCode": 128, "reason": "StartError", "message": "exec: \"/bin/sh\": no such file\n"}}),
                json!({}),
                failed("StartError: exec: \"/bin/sh\": no such file"),
            ),
            (json!({"terminated": {"exitCode": 1}}), json!({}), failed("Error: exit code 1")),
        ];
        for (state, last, expected) in cases {
            assert_eq!(progress(&status(&state, &last)), expected, "{state}");
        }
    }

    fn example(spec: &Value, status: &Value) -> PullerPod {
        let owner =
            json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "U", "controller": true}]);
        let object = json!({"metadata": {"name": "p", "ownerReferences": owner}, "spec": spec, "status": status});
        pod(&serde_json::from_value(object).unwrap()).unwrap()
    }

    #[test]
    fn images_are_named_by_the_specification() {
        // Both statuses name another repository that has the same content.
        let status = |name: &str| {
            json!({"name": name, "image": "docker.io/library/busybox:1.37", "imageID": "docker.io/library/busybox@sha256:D",
                "ready": true, "restartCount": 0, "state": {"running": {}}})
        };
        let spec = json!({"nodeName": "n1", "containers": [
            {"name": "a", "image": "quay.io/team/a:v1@sha256:D"}, {"name": "b", "image": "busybox:1.37"}]});
        let pod = example(&spec, &json!({"containerStatuses": [status("b"), status("a")]}));
        let images: Vec<&str> = pod.images.iter().map(|image| image.image.as_str()).collect();
        assert_eq!(images, ["quay.io/team/a:v1@sha256:D", "busybox:1.37"]);
        assert!(pod.images.iter().all(|image| image.progress == Progress::Started));
    }

    #[test]
    fn a_failing_init_container_stands_in_the_way_of_the_rest() {
        let spec = json!({"nodeName": "n1",
            "initContainers": [{"name": "helper", "image": "docker.io/library/busybox:1.37"}],
            "containers": [{"name": "a", "image": "quay.io/team/a:v1@sha256:D"}]});
        let waits = json!({"name": "a", "image": "quay.io/team/a:v1", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"waiting": {"reason": "PodInitializing"}}});
        let progress = |state: &Value, last: &Value| {
            let helper = json!({"name": "helper", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                "state": state, "lastState": last});
            let status = json!({"initContainerStatuses": [helper], "containerStatuses": [waits]});
            example(&spec, &status).images[1].progress.clone()
        };
        let blocked = |message: &str| Progress::Blocked {
            image: "docker.io/library/busybox:1.37".to_owned(),
            message: message.to_owned(),
        };
        for (state, last, expected) in [
            (
                json!({"waiting": {"reason": "ImagePullBackOff", "message": "toomanyrequests"}}),
                json!({}),
                blocked("ImagePullBackOff: toomanyrequests"),
            ),
            (
                json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}),
                json!({"terminated": {"exitCode": 255, "reason": "Error", "message": "exec format error"}}),
                blocked("CrashLoopBackOff: back-off 10s; exec format error"),
            ),
            (json!({"terminated": {"exitCode": 0}}), json!({}), Progress::Pending),
            (json!({"running": {}}), json!({}), Progress::Pending),
        ] {
            assert_eq!(progress(&state, &last), expected, "{state}");
        }
    }

    #[test]
    fn a_pod_that_no_node_takes_names_the_node_it_is_for() {
        let spec = json!({"containers": [], "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}]}}}});
        let status = json!({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "0/2 nodes are available: 1 Too many pods."}]});
        let pod = example(&spec, &status);
        assert_eq!(pod.node, "n2");
        assert_eq!(pod.unschedulable.as_deref(), Some("0/2 nodes are available: 1 Too many pods."));
    }

    #[test]
    fn a_volume_is_there_when_a_container_runs() {
        let spec = json!({"nodeName": "n1", "containers": [{"name": "pause", "image": "pause"}],
            "volumes": [{"name": "a", "image": {"reference": "quay.io/a@sha256:D"}}, {"name": "b", "image": {"reference": "quay.io/b@sha256:D"}}]});
        let states = |state: &Value| {
            let status = json!({"containerStatuses": [{"name": "pause", "image": "", "imageID": "", "ready": false,
                "restartCount": 0, "state": state}]});
            let images = example(&spec, &status).images;
            images[1..].iter().map(|image| image.progress.clone()).collect::<Vec<_>>()
        };
        assert_eq!(states(&json!({"running": {}})), [Progress::Started, Progress::Started]);
        let message = "failed to pull image volume \"quay.io/b@sha256:D\": not found";
        assert_eq!(
            states(&json!({"waiting": {"reason": "ImagePullBackOff", "message": message}})),
            [Progress::Pending, Progress::Failed(format!("ImagePullBackOff: {message}"))]
        );
        let blocked =
            Progress::Blocked { image: "pause".to_owned(), message: "ErrImagePull: toomanyrequests".to_owned() };
        assert_eq!(
            states(&json!({"waiting": {"reason": "ErrImagePull", "message": "toomanyrequests"}})),
            [blocked.clone(), blocked]
        );
    }
}
