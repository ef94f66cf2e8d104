//! What a puller's pods may be.

use std::collections::BTreeSet;

use serde_json::json;

use super::{At, Expected, Violation};

const POD: [&str; 20] = [
    "affinity",
    "automountServiceAccountToken",
    "containers",
    "dnsPolicy",
    "enableServiceLinks",
    "hostUsers",
    "imagePullSecrets",
    "initContainers",
    "nodeSelector",
    "preemptionPolicy",
    "priorityClassName",
    "restartPolicy",
    "runtimeClassName",
    "schedulerName",
    "securityContext",
    "serviceAccountName",
    "terminationGracePeriodSeconds",
    "tolerations",
    "topologySpreadConstraints",
    "volumes",
];

const CONTAINER: [&str; 12] = [
    "args",
    "command",
    "env",
    "image",
    "imagePullPolicy",
    "name",
    "resources",
    "securityContext",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "volumeMounts",
    "workingDir",
];

/// Of a pod and of a container together: a field that only one of them has is refused by the server in the other.
const SECURITY_CONTEXT: [&str; 10] = [
    "allowPrivilegeEscalation",
    "capabilities",
    "fsGroup",
    "privileged",
    "readOnlyRootFilesystem",
    "runAsGroup",
    "runAsNonRoot",
    "runAsUser",
    "seccompProfile",
    "supplementalGroups",
];

/// Compares the pods of a puller with what they may be.
pub fn check(pod: &At, expected: &Expected) -> Result<(), Violation> {
    pod.only(&POD)?;
    pod.require("serviceAccountName")?.is(&json!(expected.service_account))?;
    for key in ["automountServiceAccountToken", "hostUsers"] {
        pod.get(key).map_or(Ok(()), |value| value.is(&json!(false)))?;
    }
    pod.get("securityContext").map_or(Ok(()), |context| check_security_context(&context))?;

    let (mut names, mut held) = (BTreeSet::new(), BTreeSet::new());
    for key in ["initContainers", "containers"] {
        for container in pod.items_of(key)? {
            check_container(&container)?;
            let name = container.require("name")?;
            if !names.insert(name.text()?) {
                return Err(name.wrong("unlike the name of another container".into()));
            }
            held.insert(allowed_image(&container.require("image")?, expected)?);
        }
    }
    for volume in pod.items_of("volumes")? {
        volume.only(&["name", "emptyDir", "image"])?;
        if let Some(image) = volume.get("image") {
            image.only(&["reference", "pullPolicy"])?;
            held.insert(allowed_image(&image.require("reference")?, expected)?);
        }
    }
    match expected.images.iter().find(|image| !held.contains(image.as_str())) {
        Some(image) => Err(Violation::NotHeld { image: image.clone() }),
        None => Ok(()),
    }
}

fn check_container(container: &At) -> Result<(), Violation> {
    container.only(&CONTAINER)?;
    for variable in container.items_of("env")? {
        variable.only(&["name", "value"])?;
    }
    for mount in container.items_of("volumeMounts")? {
        mount.only(&["name", "mountPath", "readOnly", "subPath"])?;
    }
    container.get("securityContext").map_or(Ok(()), |context| check_security_context(&context))
}

fn check_security_context(context: &At) -> Result<(), Violation> {
    context.only(&SECURITY_CONTEXT)?;
    for key in ["allowPrivilegeEscalation", "privileged"] {
        context.get(key).map_or(Ok(()), |value| value.is(&json!(false)))?;
    }
    context.get("capabilities").map_or(Ok(()), |capabilities| capabilities.only(&["drop"]))?;
    match context.get("seccompProfile").and_then(|profile| profile.get("type")) {
        Some(kind) if kind.value == "Unconfined" => Err(kind.wrong("RuntimeDefault or Localhost".into())),
        _ => Ok(()),
    }
}

/// Nothing runs on a node that Git does not name by its digest, or `larder.yaml` as a helper.
fn allowed_image<'a>(at: &At<'a>, expected: &Expected) -> Result<&'a str, Violation> {
    let image = at.text()?;
    if expected.images.contains(image) || expected.helpers.contains(image) {
        return Ok(image);
    }
    Err(Violation::Unlocked { path: at.path.clone(), image: image.chars().take(300).collect() })
}
