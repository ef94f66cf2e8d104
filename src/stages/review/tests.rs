//! What changes between two snapshots.

use std::collections::BTreeMap;

use super::{EnvironmentChangeKind as Kind, Review, Side, markdown, review, text};
use crate::{
    model::{
        digest::Digest,
        environment::Placement,
        failure::{Category, Failure, Problem},
        manifest::Manifests,
        observation::{NodeTraits, Taint},
        plan::Action,
        resolution::PlatformManifest,
    },
    stages::{
        load::Environments,
        render::{
            Options, render,
            tests::fixture::{World, image, world},
        },
    },
};

fn loaded(world: &World) -> (Environments, Manifests) {
    let World { environments, settings, templates, lock, .. } = world;
    let manifests = render(environments, settings, templates, lock, &Options::default());
    let environments = Environments {
        settings: settings.clone(),
        environments: environments.clone(),
        lock: lock.clone(),
        templates: templates.clone(),
        warnings: Vec::new(),
        strays: Vec::new(),
    };
    (environments, manifests)
}

fn compare(from: Option<&World>, to: &World) -> Review {
    let (from, to) = (from.map(loaded), loaded(to));
    let side = |(environments, manifests)| Side { environments, manifests };
    let from = from.as_ref().map(|(environments, manifests)| side((environments, manifests)));
    review(from, side((&to.0, &to.1)), ("aaaa", "bbbb"))
}

#[test]
fn equal_snapshots_have_an_empty_review() {
    let review = compare(Some(&world()), &world());
    assert!(review.is_empty() && review.is_sound(), "{review:#?}");
    assert_eq!(text::summary(&review), "0 environments, 0 images; objects: 0 to create, 0 to change, 0 to delete");
    let text = markdown::markdown(&review, "<!-- m -->", 65_000);
    assert!(text.contains("`aaaa` → `bbbb`: nothing changes on the nodes."), "{text}");
}

#[test]
fn a_moved_lock_entry_is_an_image_and_an_object() {
    let mut to = world();
    let entry = to.lockfile("research/geo").images.values_mut().next().unwrap();
    entry.digest = Digest::sha256(b"new");
    entry.platforms = vec![PlatformManifest {
        platform: "linux/amd64".parse().unwrap(),
        digest: Digest::sha256(b"new amd64"),
        size: 3 * 1024 * 1024 * 1024,
    }];
    let review = compare(Some(&world()), &to);
    assert!(review.environments.is_empty() && review.is_sound());
    assert_eq!(review.images.len(), 1);
    assert_eq!(review.images[0].pull[0].bytes, 3 * 1024 * 1024 * 1024);
    assert_eq!((review.count(Action::Configure), review.count(Action::Create)), (2, 0), "puller and records");
    let diff = &review.objects.iter().find(|object| object.id.to_string().starts_with("DaemonSet/")).unwrap().diff;
    assert!(diff.starts_with("--- a/DaemonSet/research/") && diff.contains("\n+++ b/DaemonSet/research/"), "{diff}");
    assert!(!diff.contains("larder.dev/manifest"), "{diff}");
    let text = markdown::markdown(&review, "<!-- m -->", 65_000);
    let row = text.lines().find(|line| line.contains("`notebook`")).unwrap();
    assert!(row.contains("up to 3.0 GiB") && row.contains("`quay.io/jupyter/scipy-notebook:2026-11-02`"), "{row}");
    assert!(text.contains("<details><summary>research/geo: change <code>DaemonSet/research/"), "{text}");
}

#[test]
fn holds_are_shown_and_held_images_stay() {
    let mut to = world();
    to.environment("research/geo").images[0] = image("notebook", "quay.io/jupyter/scipy-notebook:2026-11-09");
    let geo = to.lockfile("research/geo");
    geo.images.get_mut(&"notebook".parse().unwrap()).unwrap().hold = Some("exam | `x`".to_owned());
    let review = compare(Some(&world()), &to);
    assert!(review.images.is_empty(), "its other tag does not move it: {:?}", review.images);
    assert!(!review.is_sound() && review.problems.len() == 1, "{:?}", review.problems);
    assert!(
        review.problems[0].message.contains("2026-11-09 is asked for, but the image is held"),
        "{:?}",
        review.problems
    );
    let line = "research/geo notebook: held at quay.io/jupyter/scipy-notebook:2026-11-02 (";
    assert!(text::lines(&review).iter().any(|shown| shown.starts_with(line) && shown.ends_with("): exam | `x`")));
    let text = markdown::markdown(&review, "<!-- m -->", 65_000);
    assert!(text.contains("**Holds**\n\n- ") && text.contains(line), "{text}");
    assert!(text::lines(&compare(Some(&to), &world())).iter().any(|shown| shown.contains("released at")));
}

#[test]
fn a_change_by_a_person_is_locked_after_the_merge() {
    let mut to = world();
    to.environment("research/geo").images[0] = image("notebook", "quay.io/jupyter/scipy-notebook:2026-11-09");
    let added = to.add("teaching/new", &[("a", "quay.io/a:1")]).clone();
    to.lock.remove(&added.id);
    let review = compare(Some(&world()), &to);
    let kinds: Vec<_> = review.environments.iter().map(|change| (change.id.to_string(), change.kind)).collect();
    assert_eq!(kinds, [("research/geo".to_owned(), Kind::Changed), ("teaching/new".to_owned(), Kind::Added)]);
    assert_eq!(review.environments[0].parts, ["images"]);
    assert!(review.images.iter().all(|change| change.new.as_ref().unwrap().digest.is_none()));
    assert!(review.is_sound(), "what is not locked yet is no problem: {:?}", review.problems);
    assert!(text::lines(&review).join("\n").contains("2026-11-09 (locked after the merge)"));
}

#[test]
fn what_breaks_is_told_and_what_it_has_stays() {
    let mut to = world();
    let failure: Failure =
        Problem::new(Category::Schema, "unknown field `imags`").in_file("environments/research/geo.yaml").into();
    to.environments.insert("research/geo".parse().unwrap(), Err(failure));
    let review = compare(Some(&world()), &to);
    assert_eq!(review.environments[0].kind, Kind::Broken);
    assert!(review.images.is_empty(), "{:?}", review.images);
    assert!(review.objects.iter().all(|object| object.action != Action::Delete), "{:?}", review.objects);
    assert!(!review.is_sound());
    // A problem of before is not this change's.
    let review = compare(Some(&to), &to);
    assert_eq!((review.is_sound(), review.former_problems), (true, 1));
}

#[test]
fn removals_are_shown_and_the_budget_speaks_up() {
    let mut from = world();
    from.add("research/b", &[("a", "quay.io/a:1")]);
    let review = compare(Some(&from), &world());
    assert_eq!(review.environments[0].kind, Kind::Removed);
    assert!(review.count(Action::Delete) >= 1 && review.is_sound(), "{:?}", review.objects);
    let mut to = world();
    to.environments.clear();
    let review = compare(Some(&world()), &to);
    assert!(review.blocked.is_some() && !review.is_sound(), "a tenant's last environment");
    assert_eq!(review.count(Action::Delete), 0);
    let text = markdown::markdown(&review, "<!-- m -->", 65_000);
    assert!(text.contains("confirmed"), "{text}");
}

#[test]
fn the_first_environment_repository_is_all_new() {
    let review = compare(None, &world());
    assert_eq!(review.environments[0].kind, Kind::Added);
    assert!(review.count(Action::Create) >= 2 && review.count(Action::Delete) == 0);
}

#[test]
fn nodes_are_counted_as_the_daemonset_controller_would() {
    let mut to = world();
    to.environment("research/geo").placement = Placement {
        node_selector: BTreeMap::from([("pool".into(), "gpu".into())]),
        tolerations: vec![crate::model::environment::Toleration {
            key: Some("gpu".into()),
            operator: Some("Exists".into()),
            ..Default::default()
        }],
        affinity: Some(serde_json::json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [
                {"key": "zone", "operator": "NotIn", "values": ["c"]}, {"key": "cores", "operator": "Gt", "values": ["8"]},
            ]}],
        }}})),
    };
    let node = |labels: &[(&str, &str)], taint: Option<(&str, &str)>| NodeTraits {
        labels: labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .chain([("kubernetes.io/os".into(), "linux".into())])
            .collect(),
        taints: taint
            .map(|(key, effect)| Taint { key: key.into(), value: "x".into(), effect: effect.into() })
            .into_iter()
            .collect(),
    };
    let good = [("pool", "gpu"), ("zone", "a"), ("cores", "16")];
    let nodes = BTreeMap::from([
        ("plain".to_owned(), node(&good, None)),
        ("tolerated".to_owned(), node(&good, Some(("gpu", "NoSchedule")))),
        ("preferred".to_owned(), node(&good, Some(("other", "PreferNoSchedule")))),
        ("cordoned".to_owned(), node(&good, Some(("node.kubernetes.io/unschedulable", "NoSchedule")))),
        ("other-taint".to_owned(), node(&good, Some(("other", "NoExecute")))),
        ("other-pool".to_owned(), node(&[("pool", "cpu"), ("cores", "16")], None)),
        ("other-zone".to_owned(), node(&[("pool", "gpu"), ("zone", "c"), ("cores", "16")], None)),
        ("small".to_owned(), node(&[("pool", "gpu"), ("cores", "8")], None)),
    ]);
    let (environments, manifests) = loaded(&to);
    let mut review = Review::default();
    review.count_nodes(Side { environments: &environments, manifests: &manifests }, &nodes);
    assert_eq!(review.nodes[&"research/geo".parse().unwrap()], 4);
}
