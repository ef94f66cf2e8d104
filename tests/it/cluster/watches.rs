//! A watched cluster: no request while nothing happens, and word of what others do.

use std::time::Duration;

use larder::{io::cluster::Cluster as _, model::plan::Action};
use tokio_util::sync::CancellationToken;

use super::world::{World, manifests, pass};

/// How long word of a change may take before a test fails.
const PATIENCE: Duration = Duration::from_secs(60);

async fn told(world: &World) {
    tokio::time::timeout(PATIENCE, world.cluster.drifted()).await.expect("word of a change");
}

#[tokio::test]
async fn a_watched_cluster_costs_nothing_until_somebody_changes_it() {
    let world = World::new("watch").await;
    let shutdown = CancellationToken::new();
    let _guard = shutdown.clone().drop_guard();
    world.cluster.watch(&shutdown).await;
    let wanted = manifests(vec![
        world.config_map("team", "records", "a\n"),
        world.config_map("team/env", "one", "a\n"),
        world.daemon_set("team/env", "puller", "hold", "busybox:1"),
    ]);
    world.good_pass(&wanted).await;
    assert_eq!(world.cluster.requests(), 2 * 3, "a dry run and a write for each object");
    let (plan, _) = world.pass(&wanted).await;
    assert!(plan.is_empty(), "{plan:?}");
    assert_eq!(world.cluster.requests(), 2 * 3, "nothing changed, nothing asked");
    assert!(!world.cluster.has_drifted(), "our own writes are no drift");

    let meddle: [(&[&str], Action); 2] = [
        (&["set", "image", "daemonset/puller", "image-a=busybox:2"], Action::Configure),
        (&["delete", "configmap", "records"], Action::Create),
    ];
    for (command, action) in meddle {
        world.kubectl(command);
        told(&world).await;
        let done = world.good_pass(&wanted).await;
        let changed: Vec<Action> = done.iter().map(|(action, _)| *action).filter(|a| *a != Action::Unchanged).collect();
        assert_eq!(changed, [action]);
        let before = world.cluster.requests();
        assert!(world.pass(&wanted).await.0.is_empty());
        assert_eq!(world.cluster.requests(), before, "it has settled");
    }

    // Without our label it is not ours any more, and so it is left alone.
    world.kubectl(&["label", "configmap", "one", "larder.dev/instance-"]);
    told(&world).await;
    let text = world.problem(&wanted).await;
    assert!(text.contains("was not made by larder"), "{text}");
}

#[tokio::test]
async fn deletes_of_ours_are_no_drift() {
    let world = World::new("deletes").await;
    let shutdown = CancellationToken::new();
    let _guard = shutdown.clone().drop_guard();
    world.cluster.watch(&shutdown).await;
    world.good_pass(&manifests(vec![world.config_map("team/env", "one", "a\n")])).await;
    let none = manifests(vec![]);
    assert_eq!(world.good_pass(&none).await.len(), 1);
    tokio::time::timeout(PATIENCE, async {
        while !world.cluster.inventory().await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .unwrap();
    assert!(!world.cluster.has_drifted());
    assert_eq!(world.cluster.requests(), 2 + 1);
}

#[tokio::test]
async fn without_watches_passes_ask_for_lists() {
    let world = World::new("lists").await;
    let wanted = manifests(vec![world.config_map("team", "records", "a\n")]);
    let shutdown = CancellationToken::new();
    world.cluster.watch(&shutdown).await;
    shutdown.cancel();
    world.good_pass(&wanted).await;
    let restarted = world.restarted().await;
    assert!(pass(&restarted, &wanted).await.0.is_empty());
    assert_eq!(restarted.requests(), 4);
}
