//! What the account of `deploy/` may do: the narrow rights are enough for a pass, and the API server refuses the rest.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::world::World;

/// How long the API server may take to put a policy into force.
const PATIENCE: Duration = Duration::from_secs(60);

/// A file of `deploy/kustomize` for this world's own service account and names.
fn deployed(world: &World, file: &str) -> String {
    let path = format!("{}/deploy/kustomize/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    text.replace("larder-system", &world.id)
        .replace("{name: larder-objects}", &format!("{{name: {}-objects}}", world.id))
        .replace("{name: larder-pullers}", &format!("{{name: {}-pullers}}", world.id))
        .replace("policyName: larder-", &format!("policyName: {}-", world.id))
}

fn apply(world: &World, text: &str) {
    let file = tempfile::NamedTempFile::with_suffix(".yaml").unwrap();
    std::fs::write(file.path(), text).unwrap();
    world.kubectl(&["apply", "-f", file.path().to_str().unwrap()]);
}

/// Removes policies, which belong to no namespace.
struct Policies<'a>(&'a World);

impl Drop for Policies<'_> {
    fn drop(&mut self) {
        for kind in ["validatingadmissionpolicybinding", "validatingadmissionpolicy"] {
            let names = ["objects", "pullers"].map(|name| format!("{}-{name}", self.0.id));
            self.0.try_kubectl(&["delete", kind, "--ignore-not-found", &names[0], &names[1]]);
        }
    }
}

/// Why a dry run as larder's account is refused; none when it is not.
fn refusal(world: &World, object: &Value) -> Option<String> {
    let file = tempfile::NamedTempFile::with_suffix(".json").unwrap();
    std::fs::write(file.path(), object.to_string()).unwrap();
    let account = format!("--as=system:serviceaccount:{}:larder", world.id);
    let path = file.path().to_str().unwrap();
    let output = world.try_kubectl(&["apply", "--server-side", "--dry-run=server", &account, "-f", path]);
    (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

#[tokio::test]
async fn the_api_server_limits_what_larder_may_write() {
    let world = World::new("rights").await;
    world.kubectl(&["create", "serviceaccount", "larder"]);
    let account = format!("--serviceaccount={}:larder", world.id);
    // Even if larder's account may do anything in a namespace, as a mistake in its Roles would allow.
    world.kubectl(&["create", "rolebinding", "larder-admin", "--clusterrole=cluster-admin", &account]);
    let _policies = Policies(&world);
    apply(&world, &deployed(&world, "components/admission/policy.yaml"));

    let body = |object: &larder::model::manifest::Manifest| Value::clone(&object.object);
    let puller = body(&world.daemon_set("team/env", "puller", "hold", "busybox:1"));
    let changed = |pointer: &str, value: Value| {
        let mut object = puller.clone();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        object.pointer_mut(parent).unwrap()[key] = value;
        object
    };
    let pod = "/spec/template/spec";
    let privileged = changed(&format!("{pod}/containers/0/securityContext/privileged"), json!(true));
    let start = Instant::now();
    while refusal(&world, &privileged).is_none() {
        assert!(start.elapsed() < PATIENCE, "the policy is not in force");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }

    for allowed in [&puller, &body(&world.config_map("team", "records", "a\n"))] {
        assert_eq!(refusal(&world, allowed), None);
    }
    let host_path = json!([{"name": "hold", "hostPath": {"path": "/"}}]);
    let secret = json!([{"name": "hold", "secret": {"secretName": "other"}}]);
    let from_secret = json!([{"name": "X", "valueFrom": {"secretKeyRef": {"name": "other", "key": "x"}}}]);
    let mut unlabeled = body(&world.config_map("team", "other", "a\n"));
    unlabeled["metadata"]["labels"] = json!({});
    let pod_alone = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "labels": {"larder.dev/instance": "x"}},
        "spec": {"containers": [{"name": "x", "image": "x"}]}});
    for (object, why) in [
        (privileged, "not privileged"),
        (changed(&format!("{pod}/initContainers/0/securityContext"), json!({"privileged": true})), "not privileged"),
        (
            changed(&format!("{pod}/containers/0/securityContext/capabilities"), json!({"add": ["SYS_ADMIN"]})),
            "no added capabilities",
        ),
        (changed(&format!("{pod}/hostNetwork"), json!(true)), "no namespace of the host"),
        (changed(&format!("{pod}/hostPID"), json!(true)), "no namespace of the host"),
        (changed(&format!("{pod}/volumes"), host_path), "emptyDir or image"),
        (changed(&format!("{pod}/volumes"), secret), "emptyDir or image"),
        (changed(&format!("{pod}/automountServiceAccountToken"), json!(true)), "no service account token"),
        (changed(&format!("{pod}/containers/0/env"), from_secret), "reads no Secret"),
        (changed("/metadata/labels", json!({})), "with the label"),
        (unlabeled, "with the label"),
        (pod_alone, "ServiceAccounts, ConfigMaps and DaemonSets only"),
    ] {
        let refused = refusal(&world, &object).unwrap_or_else(|| panic!("{why}: allowed: {object:#}"));
        assert!(refused.contains(why), "{why}: {refused}");
    }
    // An object of someone else does not become larder's by a label.
    world.kubectl(&["create", "configmap", "theirs"]);
    let theirs = body(&world.config_map("team", "theirs", "a\n"));
    assert!(refusal(&world, &theirs).is_some_and(|refused| refused.contains("have the label")));
    // The policies are about larder's account alone.
    world.kubectl(&["run", "x", "--image=x", "--dry-run=server"]);
}

#[tokio::test]
async fn with_the_narrow_rights_larder_writes_in_tenants_namespaces_only() {
    let world = World::new("narrow").await;
    world.kubectl(&["create", "serviceaccount", "larder"]);
    apply(&world, &deployed(&world, "tenant/role.yaml"));
    for (verb, what, namespace, may) in [
        ("create", "daemonsets.apps", world.id.as_str(), "yes"),
        ("patch", "configmaps", &world.id, "yes"),
        ("get", "secrets", &world.id, "yes"),
        ("list", "secrets", &world.id, "no"),
        ("create", "pods", &world.id, "no"),
        ("create", "daemonsets.apps", "default", "no"),
        ("patch", "configmaps", "default", "no"),
        ("get", "secrets", "kube-system", "no"),
    ] {
        let account = format!("--as=system:serviceaccount:{}:larder", world.id);
        let output = world.try_kubectl(&["auth", "can-i", verb, what, "-n", namespace, &account]);
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), may, "{verb} {what} in {namespace}");
    }
    // The component leaves no right to write in the whole cluster.
    let narrow = format!("{}/deploy/kustomize/components/narrow/kustomization.yaml", env!("CARGO_MANIFEST_DIR"));
    let rules = std::fs::read_to_string(narrow).unwrap();
    let (_, rules) = rules.split_once("path: /rules").unwrap();
    for word in ["create", "patch", "update", "delete", "secrets", "*"] {
        assert!(!rules.contains(word), "{word}");
    }
}
