//! What passes change, and what they leave.

use larder::{
    io::cluster::Cluster as _,
    model::{
        manifest::Kind,
        plan::{Action, Outcome},
    },
};
use serde_json::json;

use super::world::{World, manifests, pass, planned};

#[tokio::test]
async fn the_second_pass_writes_nothing() {
    // Cpu 1000m, memory 1024Mi and 0.5G, `env: []`, `tolerations: null`; also after a restart.
    let world = World::new("second").await;
    let wanted = manifests(vec![
        world.config_map("team", "records", "a\nb\n"),
        world.manifest("team/env", Kind::ServiceAccount, "puller", json!({"imagePullSecrets": [{"name": "pull"}]})),
        world.daemon_set("team/env", "puller", "hold", "busybox:1"),
    ]);
    let first = world.good_pass(&wanted).await;
    assert!(first.iter().all(|(action, _)| *action == Action::Create), "{first:?}");
    // Four lists, then a dry run and a write for each object.
    assert_eq!(world.cluster.requests(), 4 + 2 * 3);

    // The DaemonSet's controller writes a status, so that its version is not ours alone.
    let versions = || {
        let generation = world.field("daemonset/puller", ".metadata.generation");
        [world.version("configmap/records"), world.version("serviceaccount/puller"), generation]
    };
    let before = versions();
    let restarted = world.restarted().await;
    let (plan, applied) = pass(&restarted, &wanted).await;
    assert!(plan.is_empty(), "{plan:?}");
    assert!(applied.outcomes.iter().all(|(_, outcome)| *outcome == Outcome::Unchanged));
    assert_eq!(restarted.requests(), 4, "nothing but the lists");

    // A comparison finds nothing either, whatever the inventory says.
    for manifest in wanted.values().flatten().flatten() {
        let comparison = world.cluster.compare(manifest).await.unwrap();
        let verdict = larder::stages::plan::judge(manifest, &comparison, "commit 1");
        assert_eq!(verdict.action, Action::Unchanged, "{}", verdict.diff);
    }
    assert_eq!(versions(), before);
}

#[tokio::test]
async fn an_init_container_is_renamed() {
    let world = World::new("rename").await;
    world.good_pass(&manifests(vec![world.daemon_set("team/env", "puller", "old", "busybox:1")])).await;
    let wanted = manifests(vec![world.daemon_set("team/env", "puller", "new", "busybox:1")]);
    let plan = planned(&world.cluster, &wanted).await.unwrap();
    let diff = &plan.changes[0].diff;
    let header = format!("--- live DaemonSet/{id}/puller\n+++ commit 1234567 DaemonSet/{id}/puller\n", id = world.id);
    assert!(diff.starts_with(&header), "{diff}");
    assert!(diff.contains("\n-") && diff.contains("name: old") && diff.contains("name: new"), "{diff}");
    world.good_pass(&wanted).await;
    assert_eq!(world.field("daemonset/puller", ".spec.template.spec.initContainers[*].name"), "new");
}

#[tokio::test]
async fn drift_is_put_right_and_shown() {
    let world = World::new("drift").await;
    let wanted = manifests(vec![
        world.daemon_set("team/env", "puller", "hold", "busybox:1"),
        world.config_map("team", "records", "a\n"),
    ]);
    world.good_pass(&wanted).await;

    // A value that someone changed.
    world.kubectl(&["set", "image", "daemonset/puller", "image-a=busybox:2"]);
    let plan = planned(&world.restarted().await, &wanted).await.unwrap();
    let change = plan.changes.iter().find(|change| change.id.kind == Kind::DaemonSet).unwrap();
    assert_eq!(change.action, Action::Configure);
    assert!(change.diff.contains("busybox:2") && change.diff.contains("busybox:1"), "{}", change.diff);
    assert!(!change.diff.contains("managedFields") && !change.diff.contains("status:"), "{}", change.diff);
    world.good_pass(&wanted).await;
    assert_eq!(world.field("daemonset/puller", ".spec.template.spec.containers[0].image"), "busybox:1");
    assert!(planned(&world.restarted().await, &wanted).await.unwrap().is_empty());

    // A field that someone removed leaves no trace of who it was.
    world.kubectl(&[
        "patch",
        "configmap",
        "records",
        "--type=json",
        "-p",
        r#"[{"op": "remove", "path": "/data/images.list"}]"#,
    ]);
    let plan = planned(&world.restarted().await, &wanted).await.unwrap();
    assert_eq!(plan.count(Action::Configure), 1);
    world.good_pass(&wanted).await;
    assert_eq!(world.field("configmap/records", ".data.images\\.list"), "a\n");

    // One that was changed and changed back is equal, and yet someone else's until it is written again.
    for value in ["b\n", "a\n"] {
        let patch = json!({"data": {"images.list": value}}).to_string();
        world.kubectl(&["patch", "configmap", "records", "--type=merge", "-p", &patch]);
    }
    world.good_pass(&wanted).await;
    let restarted = world.restarted().await;
    assert!(planned(&restarted, &wanted).await.unwrap().is_empty());
    assert_eq!(restarted.requests(), 4);
}

#[tokio::test]
async fn what_nothing_wants_is_deleted() {
    let world = World::new("prune").await;
    let all = manifests(vec![
        world.config_map("team", "records", "a\n"),
        world.config_map("team/a", "one", "a\n"),
        world.config_map("team/b", "two", "a\n"),
        world.daemon_set("team/b", "puller", "hold", "busybox:1"),
    ]);
    world.good_pass(&all).await;
    // A copy under another name has our label, and is none of ours.
    let mut copy = serde_json::Value::clone(&world.config_map("team/b", "two", "a\n").object);
    copy["metadata"]["name"] = "copy".into();
    world.kubectl_with(&["create"], &copy);

    let fewer = manifests(vec![world.config_map("team", "records", "a\n"), world.config_map("team/a", "one", "a\n")]);
    let done = world.good_pass(&fewer).await;
    let deleted: Vec<String> =
        done.iter().filter(|(action, _)| *action == Action::Delete).map(|(_, id)| id.to_string()).collect();
    let names = [format!("DaemonSet/{}/puller", world.id), format!("ConfigMap/{}/two", world.id)];
    assert_eq!(deleted, names);
    let left = world.kubectl(&["get", "configmap,daemonset", "-o", "name"]);
    let mut left: Vec<&str> = left.lines().filter(|name| !name.ends_with("kube-root-ca.crt")).collect();
    left.sort_unstable();
    assert_eq!(left, ["configmap/copy", "configmap/one", "configmap/records"]);
}

#[tokio::test]
async fn a_namespace_and_what_goes_into_it_are_made_in_one_pass() {
    let world = World::without_namespace("namespace").await;
    let wanted = manifests(vec![
        world.manifest("team", Kind::Namespace, &world.id, json!({})),
        world.config_map("team", "records", "a\n"),
        world.daemon_set("team/env", "puller", "hold", "busybox:1"),
    ]);
    assert_eq!(world.good_pass(&wanted).await.len(), 3);
    let (plan, _) = world.pass(&wanted).await;
    assert!(plan.is_empty(), "{plan:?}");
    // It is never deleted, with all else.
    let none = manifests(vec![]);
    let done = world.good_pass(&none).await;
    assert_eq!(done.iter().map(|(_, id)| id.kind).collect::<Vec<_>>(), [Kind::DaemonSet, Kind::ConfigMap]);
    world.kubectl(&["get", "namespace", &world.id]);
}

#[tokio::test]
async fn a_status_is_written_when_it_changes() {
    let world = World::new("status").await;
    assert_eq!(world.cluster.read_status(&world.id, "larder-status").await.unwrap(), None);
    world.cluster.write_status(&world.id, "larder-status", "{}").await.unwrap();
    let version = world.version("configmap/larder-status");
    world.cluster.write_status(&world.id, "larder-status", "{}").await.unwrap();
    assert_eq!(world.version("configmap/larder-status"), version);
    world.cluster.write_status(&world.id, "larder-status", "{\"a\":1}").await.unwrap();
    assert_eq!(world.cluster.read_status(&world.id, "larder-status").await.unwrap().as_deref(), Some("{\"a\":1}"));
    assert!(world.cluster.inventory().await.unwrap().is_empty(), "it is not an object of the inventory");
}

#[tokio::test]
async fn the_server_tells_its_version() {
    let world = World::without_namespace("version").await;
    assert!(world.cluster.server_version().await.unwrap() >= (1, 30));
}
