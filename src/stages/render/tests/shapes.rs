//! The shape of each object, and who gets which.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::fixture::{World, image, locked, previous, world};
use crate::{
    model::{
        environment::Strategy,
        failure::{Category, Failure, Problem},
        lock::Lockfile,
        manifest::{Kind, Manifest, Owner},
        name::EnvironmentId,
        yaml::to_yaml,
    },
    stages::render::{names, needs_server},
};

fn owners(world: &World) -> Vec<String> {
    world.render().keys().map(ToString::to_string).collect()
}

fn images_of(pod: &Value, list: &str) -> Vec<String> {
    let items = pod[list].as_array().cloned().unwrap_or_default();
    items
        .iter()
        .map(|item| item["image"].as_str().or(item["image"]["reference"].as_str()).unwrap_or("-").into())
        .collect()
}

fn pinned(reference: &str) -> String {
    let image = locked(reference);
    image.reference.pinned(&image.digest)
}

#[test]
fn each_strategy_holds_each_image_once() {
    for strategy in [Strategy::Containers, Strategy::InitContainers, Strategy::ImageVolumes] {
        let mut world = world();
        // The third has the same content under the same reference: it is pulled once.
        world.add("research/geo", &[("b", "quay.io/t/b:1"), ("A_x", "quay.io/t/a:1"), ("again", "quay.io/t/b:1")]);
        world.environment("research/geo").puller.strategy = strategy;
        let puller = world.puller();
        let pod = &puller["spec"]["template"]["spec"];
        let all = [pinned("quay.io/t/b:1"), pinned("quay.io/t/a:1")];
        let (init, main, volumes) =
            (images_of(pod, "initContainers"), images_of(pod, "containers"), images_of(pod, "volumes"));
        match strategy {
            Strategy::Containers => {
                assert_eq!((init, main), (vec!["docker.io/library/busybox:1.37".to_owned()], all.to_vec()));
                assert_eq!(pod["containers"][1]["name"], format!("image-{}", names::image(&"A_x".parse().unwrap())));
                assert_eq!(pod["containers"][0]["command"], json!(["/larder/busybox", "sleep", "2147483647"]));
            }
            Strategy::InitContainers => {
                assert_eq!((init, main), (all.to_vec(), vec!["registry.k8s.io/pause:3.10.2".to_owned()]));
                assert_eq!(pod["initContainers"][0]["name"], "image-pull-b");
                assert_eq!(pod["initContainers"][0]["command"], json!(["/bin/sh", "-c", "echo \"Pulling complete\""]));
            }
            Strategy::ImageVolumes => {
                assert_eq!((init.len(), main.len(), volumes), (0, 1, all.to_vec()));
                assert_eq!(
                    pod["containers"][0]["volumeMounts"][0],
                    json!({"name": "image-b", "mountPath": "/images/b", "readOnly": true})
                );
            }
        }
        for container in ["initContainers", "containers"].iter().flat_map(|list| pod[*list].as_array()).flatten() {
            assert_eq!(container["imagePullPolicy"], "IfNotPresent");
            assert_eq!(container["securityContext"]["capabilities"], json!({"drop": ["ALL"]}));
            assert_eq!(container["securityContext"]["runAsNonRoot"], true);
            assert!(container["resources"]["limits"]["memory"].is_string());
        }
        assert_eq!(pod["automountServiceAccountToken"], false);
        let version = (strategy == Strategy::ImageVolumes).then_some((1, 35));
        let manifests = world.manifests("research/geo").unwrap();
        assert_eq!(manifests.iter().filter_map(needs_server).next(), version);
    }
}

#[test]
fn former_digests_are_held_as_long_as_they_are_retained() {
    let mut world = world();
    let notebook = world.lockfile("research/geo").images.values_mut().next().unwrap();
    notebook.previous = vec![previous("quay.io/j/n:1", "new"), previous("quay.io/j/n:1", "old")];
    for (retain, count) in [(0, 1), (1, 2), (2, 3), (9, 3)] {
        world.environment("research/geo").puller.retain = retain;
        let names: Vec<Value> = world.puller()["spec"]["template"]["spec"]["containers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|container| container["name"].clone())
            .collect();
        assert_eq!((names.len(), &names[0]), (count, &json!("image-notebook")));
    }
}

#[test]
fn secrets_are_named_by_the_pod_and_its_service_account() {
    let mut world = world();
    let account = |world: &World| world.object("research/geo", Kind::ServiceAccount);
    assert!(account(&world).get("imagePullSecrets").is_none());
    let environment = world.environment("research/geo");
    for (name, secret) in [("b", "zoo"), ("c", "quay"), ("d", "zoo")] {
        let mut image = image(name, "quay.io/t/x:1");
        image.pull_secret = Some(secret.into());
        environment.images.push(image);
    }
    let secrets = json!([{"name": "quay"}, {"name": "zoo"}]);
    assert_eq!(account(&world)["imagePullSecrets"], secrets);
    assert_eq!(account(&world)["automountServiceAccountToken"], false);
    let pod = &world.puller()["spec"]["template"]["spec"];
    assert_eq!(pod["imagePullSecrets"], secrets);
    assert_eq!(pod["serviceAccountName"], account(&world)["metadata"]["name"]);
}

#[test]
fn pullers_keep_to_linux_unless_told_otherwise() {
    let mut world = world();
    let selector = |world: &World| world.puller()["spec"]["template"]["spec"]["nodeSelector"].clone();
    assert_eq!(selector(&world), json!({"kubernetes.io/os": "linux"}));
    world.environment("research/geo").placement.node_selector.insert("kubernetes.io/os".into(), "windows".into());
    assert_eq!(selector(&world), json!({"kubernetes.io/os": "windows"}));
    let placement = &mut world.environment("research/geo").placement;
    placement.node_selector.clear();
    placement.affinity = Some(json!({"nodeAffinity": {"key": "kubernetes.io/os"}}));
    assert_eq!(selector(&world), Value::Null);
}

#[test]
fn the_rollout_is_bounded_as_the_environment_says() {
    let mut world = world();
    for (written, rendered) in [("10%", json!("10%")), ("1", json!(1)), ("100%", json!("100%"))] {
        world.environment("research/geo").puller.max_unavailable = written.into();
        assert_eq!(world.puller()["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"], rendered);
    }
}

// texts, images, pools and strategies come and go; name and selector stay.
#[test]
fn name_and_selector_never_change() {
    let identity = |world: &World| {
        let puller = world.puller();
        (
            puller["metadata"]["name"].clone(),
            puller["spec"]["selector"].clone(),
            puller["spec"]["template"]["metadata"].clone(),
        )
    };
    let mut world = world();
    let before = identity(&world);
    let environment = world.environment("research/geo");
    environment.display_name = Some("Other".into());
    environment.placement.node_selector.insert("gpu".into(), "yes".into());
    environment.puller.strategy = Strategy::InitContainers;
    world.lockfile("research/geo").images.values_mut().for_each(|image| *image = locked("quay.io/t/other:2"));
    assert_eq!(identity(&world), before);
}

// The keel case: texts for people roll no pods, and nothing depends on when or where it is rendered.
#[test]
fn texts_for_people_do_not_roll_pods() {
    let mut world = world();
    let template = world.puller()["spec"]["template"].clone();
    let digest = |world: &World| world.manifests("research/geo").unwrap()[1].digest().to_owned();
    let before = digest(&world);
    assert_eq!(digest(&world), before);
    world.environment("research/geo").description = Some("Rasters".into());
    assert_eq!(world.puller()["spec"]["template"], template);
    assert_ne!(digest(&world), before);
}

#[test]
fn every_object_carries_its_identity() {
    let world = world();
    for (owner, manifests) in world.render() {
        for Manifest { id, owner: of, object, .. } in manifests.unwrap() {
            let metadata = &object["metadata"];
            assert_eq!(of, owner);
            assert_eq!(metadata["labels"]["larder.dev/instance"], "default");
            assert_eq!(metadata["annotations"]["larder.dev/object"], id.to_string());
            assert_eq!(
                Owner::parse(metadata["annotations"]["larder.dev/owner"].as_str().unwrap()),
                Some(owner.clone())
            );
            assert!(metadata["annotations"]["larder.dev/manifest"].as_str().unwrap().starts_with("sha256:"));
        }
    }
}

// Another instance in the same namespace has other names, and another selector.
#[test]
fn instances_do_not_share_names() {
    let mut world = world();
    let before = world.manifests("research/geo").unwrap();
    world.options.instance = "staging".into();
    let after = world.manifests("research/geo").unwrap();
    for (a, b) in before.iter().zip(&after) {
        assert_ne!(a.id, b.id);
    }
    assert_ne!(before[1].object["spec"]["selector"], after[1].object["spec"]["selector"]);
    world.options.instance = "no label value".into();
    assert_eq!(world.failure("research/geo").category(), Category::Name);
    assert_eq!(world.failure("research").category(), Category::Name);
}

#[test]
fn many_images_are_split_into_several_pullers() {
    let mut world = world();
    let all: Vec<(String, String)> = (0..50).map(|n| (format!("i{n}"), format!("quay.io/t/i{n}:1"))).collect();
    let pullers = |world: &mut World, count: usize| -> Vec<Manifest> {
        let images: Vec<(&str, &str)> =
            all[..count].iter().map(|(name, reference)| (name.as_str(), reference.as_str())).collect();
        world.add("research/geo", &images);
        world.manifests("research/geo").unwrap().split_off(1)
    };
    let one = pullers(&mut world, 20);
    let three = pullers(&mut world, 50);
    assert_eq!((one.len(), three.len()), (1, 3));
    assert_eq!(one[0].id, three[0].id, "the first keeps its name");
    let held: BTreeSet<String> =
        three.iter().flat_map(|puller| images_of(&puller.object["spec"]["template"]["spec"], "containers")).collect();
    assert_eq!(held.len(), 50);
    let selectors: BTreeSet<String> =
        three.iter().map(|puller| puller.object["spec"]["selector"].to_string()).collect();
    assert_eq!(selectors.len(), 3);
}

#[test]
fn only_what_is_locked_is_rendered() {
    let mut world = world();
    world.environment("research/geo").images.push(image("new", "quay.io/t/new:1"));
    assert_eq!(images_of(&world.puller()["spec"]["template"]["spec"], "containers").len(), 1);
    // Of what was resolved before, the previous reference stays.
    world.environment("research/geo").images[0].reference = "quay.io/t/moved:1".parse().unwrap();
    assert!(world.puller().to_string().contains("scipy-notebook:2026-11-02@sha256"));

    world.lockfile("research/geo").images.clear();
    let failure = world.failure("research/geo");
    assert_eq!(failure.category(), Category::Lock);
    assert!(failure.to_string().starts_with("lock/research/geo.yaml: none of the environment's images is locked yet"));
    assert_eq!(owners(&world), ["research", "research/geo"], "its namespace is there for pull secrets, and no records");
}

// Invariant 7: the nodes keep what the lock keeps, whatever the file names by now.
#[test]
fn entries_that_only_the_lockfile_has_are_held_after_the_files_own() {
    let mut world = world();
    world.add("research/geo", &[("a", "quay.io/t/a:1"), ("z", "quay.io/t/z:1")]);
    let pod = |world: &World| images_of(&world.puller()["spec"]["template"]["spec"], "containers");
    world.environment("research/geo").images.remove(0);
    assert_eq!(pod(&world), [pinned("quay.io/t/z:1"), pinned("quay.io/t/a:1")]);
    world.environment("research/geo").images = vec![image("new", "quay.io/t/new:1")];
    assert_eq!(pod(&world), [pinned("quay.io/t/a:1"), pinned("quay.io/t/z:1")]);
}

#[test]
fn failed_and_suspended_environments_have_no_entry_but_stay_in_the_records() {
    let mut world = world();
    world.add("research/broken", &[("a", "quay.io/t/a:1")]);
    world.add("research/asleep", &[("b", "docker.io/library/debian:13")]).suspend = true;
    let id: EnvironmentId = "research/broken".parse().unwrap();
    world.environments.insert(id, Err(Problem::new(Category::Schema, "broken").into()));
    assert_eq!(owners(&world), ["research", "research/geo"]);
    let expected = [
        pinned("docker.io/library/debian:13"),
        pinned("quay.io/jupyter/scipy-notebook:2026-11-02"),
        pinned("quay.io/t/a:1"),
    ];
    assert_eq!(world.object("research", Kind::ConfigMap)["data"]["images.list"], expected.join("\n"));
}

// Bytes are counted before anything is sent.
#[test]
fn records_that_no_config_map_holds_are_a_failure() {
    let mut world = world();
    let long = "ü".repeat(60);
    for n in 0..9000 {
        let name = format!("{long}{n}").parse().unwrap();
        world
            .lockfile("research/geo")
            .images
            .insert(name, locked(&format!("registry.example.com/{}/{n}:1", "p".repeat(40))));
    }
    let failure = world.failure("research").to_string();
    assert!(failure.contains("`data` has 1268003 bytes, at most 1048576 are allowed"), "{failure}");
    assert!(world.manifests("research/geo").is_ok());
}

#[test]
fn namespaces_are_made_only_where_it_is_asked_for() {
    let mut world = world();
    world.add("teaching/x", &[("a", "quay.io/t/a:1")]);
    let kinds = |owner: &str| -> Vec<Kind> { world.manifests(owner).unwrap().iter().map(|m| m.id.kind).collect() };
    assert_eq!(kinds("research"), [Kind::Namespace, Kind::ConfigMap]);
    assert_eq!(kinds("teaching"), [Kind::ConfigMap]);
    assert_eq!(kinds("teaching/x"), [Kind::ServiceAccount, Kind::DaemonSet]);
}

#[test]
fn undeclared_tenants_and_unreadable_lockfiles_fail_alone() {
    let mut world = world();
    world.add("elsewhere/x", &[("a", "quay.io/t/a:1")]);
    world.add("teaching/x", &[("a", "quay.io/t/a:1")]);
    world.lock.insert("teaching/x".parse().unwrap(), Err(Failure::from(Problem::new(Category::Lock, "unreadable"))));
    for owner in ["elsewhere", "elsewhere/x"] {
        assert!(world.failure(owner).to_string().contains("the tenant elsewhere is not declared in larder.yaml"));
    }
    for owner in ["teaching", "teaching/x"] {
        assert!(world.failure(owner).to_string().contains("unreadable"));
    }
    assert!(world.manifests("research").is_ok() && world.manifests("research/geo").is_ok());
}

// Two owners that claim one object: both fail, before anything is applied.
#[test]
fn owners_never_share_an_object() {
    let mut world = world();
    world.settings.tenants.get_mut(&"teaching".parse().unwrap()).unwrap().namespace = "research".into();
    world.add("teaching/geo", &[("a", "quay.io/t/a:1")]);
    world.add("teaching/other", &[("a", "quay.io/t/a:1")]);
    for owner in ["research/geo", "teaching/geo"] {
        let failure = world.failure(owner);
        assert_eq!(failure.category(), Category::Name);
        assert!(
            failure
                .to_string()
                .contains("DaemonSet/research/larder-geo would be made for several: research/geo, teaching/geo")
        );
    }
    assert!(world.failure("research").to_string().contains("ConfigMap/research/submarine-image-pull-operator-records"));
    assert!(world.manifests("teaching/other").is_ok());
}

#[test]
fn a_failure_changes_nothing_for_others() {
    let mut world = world();
    world.add("teaching/x", &[("a", "quay.io/t/a:1")]);
    let before = world.manifests("teaching/x").unwrap();
    world.lock.insert("research/geo".parse().unwrap(), Ok(Lockfile::default()));
    world.environment("research/geo").description = Some("x".repeat(1 << 20));
    assert_eq!(world.manifests("teaching/x").unwrap(), before);
}

/// The whole of what one environment becomes, so that every change of a shape shows in review.
#[test]
fn manifests_are_as_reviewed() {
    for strategy in [Strategy::Containers, Strategy::InitContainers, Strategy::ImageVolumes] {
        let mut world = world();
        world.add(
            "research/geo",
            &[("notebook", "quay.io/jupyter/scipy-notebook:2026-11-02"), ("ML_x", "ghcr.io/t/ml:1")],
        );
        let environment = world.environment("research/geo");
        environment.display_name = Some("Geospatial".into());
        environment.puller.strategy = strategy;
        environment.images[1].pull_secret = Some("quay-pull".into());
        let ml = world.lockfile("research/geo").images.get_mut(&"ML_x".parse().unwrap()).unwrap();
        ml.previous.push(previous("ghcr.io/t/ml:0", "old"));
        let manifests = ["research", "research/geo"].into_iter().flat_map(|owner| world.manifests(owner).unwrap());
        let text: Vec<String> = manifests.map(|manifest| to_yaml(&manifest.object)).collect();
        insta::assert_snapshot!(strategy.to_string(), text.join("---\n"));
    }
}
