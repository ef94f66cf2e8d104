//! SIGKILL between each two steps, SIGTERM in the middle, and a controller that idles.

use super::{
    environment,
    world::{World, wait_for},
};

#[test]
fn killed_at_any_step_it_converges_with_at_most_one_more_commit() {
    for step in ["fetch", "resolve", "lock", "plan", "apply", "report"] {
        let world = World::new(&format!("kill-{step}"), &["research"]);
        let reference = format!("{}:1", world.image("notebook"));
        world.push_images(&[], &[&reference]);
        world.commit(&[("environments/research/x.yaml", &environment(&[("notebook", &reference)], ""))], "Add");
        let commits = || world.git(&["rev-list", "--count", "main"]).parse::<u32>().unwrap();
        let before = commits();

        let controller = world.controller(&["--halt-before", step]);
        controller.wait_for_log("halted");
        controller.kill();
        let pass = world.pass(&[]);
        assert!(pass.well, "after a kill before {step}: {:#}\n{}", pass.report, pass.log);
        assert_eq!(commits(), before + 1, "killed before {step}");
        let (tip, versions) = (world.tip(), world.versions());
        assert!(versions.contains("DaemonSet"), "{versions}");
        assert!(world.pass(&[]).well);
        assert_eq!((world.tip(), world.versions()), (tip, versions), "after a kill before {step} it has settled");
    }
}

#[test]
fn a_controller_follows_commits_idles_and_ends_at_sigterm() {
    let world = World::new("controller", &["research"]);
    let reference = format!("{}:1", world.image("notebook"));
    world.push_images(&[], &[&reference]);
    let controller = world.controller(&["--listen", "127.0.0.1:0"]);
    world.commit(&[("environments/research/x.yaml", &environment(&[("notebook", &reference)], ""))], "Add");
    wait_for("the puller", || world.puller("research/x"));
    world.wait_until_warm();
    assert_eq!(controller.get("/healthz"), "ok\n");
    wait_for("readiness", || (controller.get("/readyz") == "ok\n").then_some(()));

    controller.wait_until_idle();
    let log = controller.log();
    let first = log.lines().next().unwrap();
    let version = format!("larder started version=\"{}\"", env!("CARGO_PKG_VERSION"));
    for part in [version.as_str(), "repository=", "branch=", "target=\"cluster\"", "instance="] {
        assert!(first.contains(part), "{part}: {first}");
    }
    let locked = log.lines().find(|line| line.contains("image locked")).unwrap_or_else(|| panic!("{log}"));
    assert!(locked.contains("image=notebook") && locked.contains(&format!("to=\"{reference}@sha256:")), "{locked}");
    assert!(log.contains("pass finished") && log.contains("duration_ms="), "{log}");
    assert!(controller.get("/metrics").contains("larder_environments{state=\"Applied\",reason=\"NotObserved\"} 1"));

    // Drift is put right.
    let namespace = world.namespace("research");
    let puller = world.puller("research/x").unwrap()["metadata"].clone();
    world.kubectl(&["delete", "daemonset", puller["name"].as_str().unwrap(), "-n", &namespace]);
    wait_for("the puller to be back", || {
        world.puller("research/x").filter(|back| back["metadata"]["uid"] != puller["uid"])
    });
    let account = world.service_account("research/x").unwrap()["metadata"]["name"].as_str().unwrap().to_owned();
    world.kubectl(&[
        "patch",
        "serviceaccount",
        &account,
        "-n",
        &namespace,
        "--type=merge",
        "-p",
        r#"{"automountServiceAccountToken":true}"#,
    ]);
    wait_for("the drift to be put right", || {
        world.service_account("research/x").filter(|account| account["automountServiceAccountToken"] == false)
    });
    assert!(controller.terminate(), "SIGTERM ends it well");
}
