//! The controller itself as a pod, from `deploy/`: least privilege, not root, a read-only root.

use std::process::Command;

use super::{
    environment,
    world::{World, kubectl, run, script, wait_for},
};

/// Removes the controller again, whatever becomes of the test.
struct Deployed;

impl Drop for Deployed {
    fn drop(&mut self) {
        let _ = Command::new(script("deploy")).arg("down").output();
    }
}

#[test]
fn the_controller_runs_as_a_pod_with_least_privilege() {
    let output = run(Command::new(script("git-server")).arg("up"));
    let folder = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    let mut world = World::new("pod", &["research"]);
    world.serve_from(&folder);
    let reference = format!("{}:1", world.image("notebook"));
    world.push_images(&[], &[&reference]);
    let before =
        world.commit(&[("environments/research/x.yaml", &environment(&[("notebook", &reference)], ""))], "Add");

    let image = run(Command::new(script("build-image")).arg(env!("CARGO_BIN_EXE_larder")));
    let image = String::from_utf8(image.stdout).unwrap().lines().last().unwrap().trim().to_owned();
    let _deployed = Deployed;
    run(Command::new(script("deploy")).args([&world.id, &image]));

    let lock = wait_for("the lock commit", || (world.tip() != before).then(|| world.tip()));
    assert_eq!(world.git(&["rev-parse", &format!("{lock}~1")]), before);
    let namespace = world.namespace("research");
    wait_for("the puller to be warm", || {
        let text = kubectl(&["get", "daemonset", "-n", &namespace, "larder-x", "--ignore-not-found", "-o", "json"]);
        let puller: serde_json::Value = serde_json::from_str(&text).ok()?;
        (puller["status"]["numberReady"] == 2).then_some(())
    });

    // Webhooks have a port of their own, and the pod can read their secret: without it the answer would be 503.
    let mut knock = Command::new("curl");
    knock.args(["-s", "-o", "/dev/null", "-w", "%{http_code}", "-d", "{}", "http://127.0.0.1:8081/hooks/github"]);
    assert_eq!(String::from_utf8(run(&mut knock).stdout).unwrap(), "401");

    // It is the pod that did it, and it may do no more than it needs.
    let pod = kubectl(&["get", "pods", "-n", "larder-system", "-l", "app.kubernetes.io/name=larder", "-o", "json"]);
    let pod: serde_json::Value = serde_json::from_str(&pod).unwrap();
    let spec = &pod["items"][0]["spec"];
    let context = &spec["containers"][0]["securityContext"];
    assert_eq!(context["readOnlyRootFilesystem"], true);
    assert_eq!(context["allowPrivilegeEscalation"], false);
    assert!(spec["securityContext"]["runAsNonRoot"] == true || context["runAsNonRoot"] == true);
    for (verb, what, may) in [
        ("patch", "daemonsets.apps", "yes"),
        ("get", "secrets", "yes"),
        ("list", "secrets", "no"),
        ("create", "pods", "no"),
        ("create", "clusterroles.rbac.authorization.k8s.io", "no"),
        ("delete", "namespaces", "no"),
    ] {
        let mut command = Command::new(super::world::kubectl_path());
        command.arg(super::world::config()).args([
            "auth",
            "can-i",
            verb,
            what,
            "-A",
            "--as=system:serviceaccount:larder-system:larder",
        ]);
        let answer = String::from_utf8(command.output().unwrap().stdout).unwrap();
        assert_eq!(answer.trim(), may, "{verb} {what}");
    }
}
