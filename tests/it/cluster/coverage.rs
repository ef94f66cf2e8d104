//! Real pods on real nodes, and what they say of their images.

use std::{collections::BTreeMap, time::Duration};

use larder::{
    model::{
        digest::Digest,
        lock::{Lock, LockedImage, Lockfile},
        manifest::{Kind, Manifest, Manifests},
        name::EnvironmentId,
        status::{Coverage, ImageCoverage, NodeState},
    },
    stages::coverage::coverage,
};
use serde_json::json;

use super::world::{World, manifests};

/// The helper image, which the local registry always has.
const HELPER: &str = "docker.io/library/busybox:1.37.0-musl";

/// How long pulls may take before a test fails.
const PATIENCE: Duration = Duration::from_secs(180);

fn locked(images: &[(&str, &str, &Digest)]) -> Lock {
    let images = images.iter().map(|(name, reference, digest)| {
        let image = LockedImage {
            reference: reference.parse().unwrap(),
            digest: (*digest).clone(),
            media_type: String::new(),
            platforms: Vec::new(),
            previous: Vec::new(),
            hold: None,
        };
        (name.parse().unwrap(), image)
    });
    Lock::from([(environment(), Ok(Lockfile { images: images.collect() }))])
}

fn environment() -> EnvironmentId {
    "team/env".parse().unwrap()
}

/// A puller that runs these images, pinned as the lock has them.
fn puller(world: &World, lock: &Lock) -> Manifest {
    let lockfile = lock[&environment()].as_ref().unwrap();
    let containers: Vec<_> = lockfile
        .images
        .iter()
        .map(|(name, image)| {
            json!({"name": name, "image": image.reference.pinned(&image.digest), "command": ["/bin/busybox", "sleep", "1000000"]})
        })
        .collect();
    let labels = json!({"larder.dev/puller": "puller"});
    let spec = json!({
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"terminationGracePeriodSeconds": 0, "containers": containers}},
    });
    world.manifest("team/env", Kind::DaemonSet, "puller", json!({"spec": spec}))
}

fn image<'a>(coverage: &'a Coverage, name: &str) -> &'a ImageCoverage {
    &coverage.images[&name.parse().unwrap()]
}

async fn wait(world: &World, lock: &Lock, manifests: &Manifests, done: impl Fn(&Coverage) -> bool) -> Coverage {
    let mut last = None;
    let waited = tokio::time::timeout(PATIENCE, async {
        loop {
            let observation = world.cluster.observe().await.unwrap();
            let mut all: BTreeMap<_, _> = coverage(lock, manifests, &observation);
            let found = all.remove(&environment()).unwrap();
            if done(&found) {
                return found;
            }
            last = Some(found);
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("not within {PATIENCE:?}; last seen: {last:#?}"))
}

/// What the local registry's tag names.
async fn helper_digest() -> Digest {
    let (path, tag) = HELPER.split_once(':').unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("http://127.0.0.1:5000/v2/{path}/manifests/{tag}");
    let request = client.head(url).header("Accept", "application/vnd.oci.image.manifest.v1+json");
    let response = request.send().await.expect("the local registry answers: `make cluster-up` starts it");
    response.headers()["docker-content-digest"].to_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn both_nodes_hold_an_image_and_say_why_they_do_not() {
    let world = World::new("coverage").await;
    let digest = helper_digest().await;
    // One content under two names; the second is known to the nodes under the first one's name.
    let lock = locked(&[("a", HELPER, &digest), ("b", "docker.io/library/busybox:again", &digest)]);
    let wanted = manifests(vec![puller(&world, &lock)]);
    world.good_pass(&wanted).await;
    let warm =
        wait(&world, &lock, &wanted, |coverage| coverage.is_complete() && image(coverage, "a").eligible > 0).await;
    for image in warm.images.values() {
        assert_eq!((image.ready, image.eligible), (2, 2), "{image:?}");
    }

    // An image that is nowhere: the kubelet's words, and the other image continues.
    let absent = Digest::sha256(b"nowhere");
    let lock = locked(&[("a", HELPER, &digest), ("absent", "docker.io/library/busybox:absent", &absent)]);
    let wanted = manifests(vec![puller(&world, &lock)]);
    world.good_pass(&wanted).await;
    let failed = |coverage: &Coverage| {
        coverage.nodes.current && image(coverage, "absent").nodes.iter().any(|node| node.state == NodeState::Failure)
    };
    let found = wait(&world, &lock, &wanted, failed).await;
    let node = image(&found, "absent").nodes.iter().find(|node| node.state == NodeState::Failure).unwrap();
    let message = node.message.as_deref().unwrap();
    assert!(message.contains("ErrImagePull") || message.contains("ImagePullBackOff"), "{message}");
    assert!(message.contains(absent.as_str()), "{message}");
    assert!(!found.is_complete());
}

#[tokio::test]
async fn a_helper_that_cannot_be_pulled_is_named_on_its_nodes() {
    let world = World::new("helper").await;
    let digest = helper_digest().await;
    let lock = locked(&[("a", HELPER, &digest)]);
    let helper = format!("docker.io/library/busybox:absent@{}", Digest::sha256(b"nowhere"));
    let mut puller = puller(&world, &lock);
    let mut object = serde_json::Value::clone(&puller.object);
    let command = json!(["/bin/busybox", "true"]);
    object["spec"]["template"]["spec"]["initContainers"] =
        json!([{"name": "helper", "image": helper, "command": command}]);
    puller.object = object.into();
    let wanted = manifests(vec![puller]);
    world.good_pass(&wanted).await;
    let failed = |coverage: &Coverage| {
        let nodes = &image(coverage, "a").nodes;
        coverage.nodes.current && nodes.len() == 2 && nodes.iter().all(|node| node.state == NodeState::Failure)
    };
    let found = wait(&world, &lock, &wanted, failed).await;
    for node in &image(&found, "a").nodes {
        let message = node.message.as_deref().unwrap();
        let named = message.strip_prefix(&format!("helper {helper}: ")).unwrap_or_else(|| panic!("{message}"));
        assert!(named.starts_with("ErrImagePull") || named.starts_with("ImagePullBackOff"), "{message}");
    }
}
