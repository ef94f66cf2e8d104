//! What changes between two snapshots.

use std::collections::BTreeMap;

use super::{EnvironmentChangeKind as Kind, Nodes, Registries, Review, Side, markdown, questions, review, text};
use crate::{
    model::{
        digest::Digest,
        environment::Placement,
        failure::{Category, Failure, Problem},
        lock::{Hold, HoldOrigin, Rename},
        manifest::Kind as ObjectKind,
        observation::{NodeTraits, Taint},
        plan::Action,
        resolution::{ContentKind, Evidence, Lookup, PlatformManifest, Resolution, ResolvedImage},
    },
    stages::{
        load::Environments,
        lock::testing::TODAY,
        render::{
            Options,
            tests::fixture::{World, image, world},
        },
    },
};

fn loaded(world: &World) -> Environments {
    Environments {
        settings: world.settings.clone(),
        environments: world.environments.clone(),
        lock: world.lock.clone(),
        templates: world.templates.clone(),
        strays: Vec::new(),
        unread: Default::default(),
        ignored: 0,
    }
}

fn side(world: &World, registries: &Registries) -> Side {
    Side::new(loaded(world), registries, &Options::default(), TODAY, Vec::new())
}

fn compare(from: Option<&World>, to: &World) -> Review {
    let from = from.map(|from| side(from, &Registries::NotAsked));
    review(from.as_ref(), &side(to, &Registries::NotAsked), ("aaaa", "bbbb"))
}

/// With the registries' answers to what the change asks.
fn resolved(from: &World, to: &World, answer: impl Fn(&Lookup) -> Result<ResolvedImage, Failure>) -> Review {
    let asked = questions(Some(&loaded(from)), &loaded(to));
    let resolution: Resolution = asked.iter().map(|due| (due.lookup.clone(), answer(&due.lookup))).collect();
    let from = side(from, &Registries::Asked(Resolution::new()));
    review(Some(&from), &side(to, &Registries::Asked(resolution)), ("aaaa", "bbbb"))
}

#[test]
fn a_renamed_environment_is_neither_removed_nor_added() {
    let from = world();
    let mut to = world();
    let old = "research/geo".parse().unwrap();
    let mut renamed = to.environment("research/geo").clone();
    renamed.id = "research/maps".parse().unwrap();
    to.environments.remove(&old);
    to.environments.insert(renamed.id.clone(), Ok(renamed.clone()));
    let renames = vec![Rename { from: old.clone(), to: renamed.id.clone() }];
    let to = Side::new(loaded(&to), &Registries::NotAsked, &Options::default(), TODAY, renames);
    let review = review(Some(&side(&from, &Registries::NotAsked)), &to, ("aaaa", "bbbb"));
    assert_eq!(review.environments.len(), 1, "{review:#?}");
    assert_eq!(review.environments[0].kind, Kind::Renamed(old));
    assert!(review.images.is_empty() && review.is_sound(), "{review:#?}");
    assert!(text::lines(&review)[0].starts_with("research/maps renamed from research/geo"));
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
        size: Some(3 * 1024 * 1024 * 1024),
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
    geo.images.get_mut(&"notebook".parse().unwrap()).unwrap().hold = Some(Hold::of_person("exam | `x`"));
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
fn a_reference_that_lifts_a_hold_is_shown() {
    let reference = "quay.io/jupyter/scipy-notebook:2026-11-02";
    let (mut from, mut to) = (world(), world());
    let origin = HoldOrigin::Revert { instead_of: reference.parse().unwrap() };
    let hold = Hold { origin, ..Hold::of_person("Ada went back") };
    for side in [&mut from, &mut to] {
        let geo = side.lockfile("research/geo");
        geo.images.get_mut(&"notebook".parse().unwrap()).unwrap().hold = Some(hold.clone());
    }
    to.environment("research/geo").images[0] = image("notebook", "quay.io/jupyter/scipy-notebook:2026-11-09");
    let review = compare(Some(&from), &to);
    assert!(review.is_sound() && review.images.len() == 1, "{review:?}");
    let line = format!("research/geo notebook: released at {reference} (");
    assert!(text::lines(&review).iter().any(|shown| shown.starts_with(&line)), "{:?}", text::lines(&review));
    assert!(compare(Some(&to), &to).holds.is_empty());
}

#[test]
fn a_change_by_a_person_is_locked_after_the_merge() {
    let mut to = world();
    to.environment("research/geo").images[0] = image("notebook", "quay.io/jupyter/scipy-notebook:2026-11-09");
    let added = to.add("teaching/new", &[("a", "quay.io/a:1")]).clone();
    to.lock.remove(&added.id);
    let review = compare(Some(&world()), &to);
    let kinds: Vec<_> = review.environments.iter().map(|change| (change.id.to_string(), change.kind.clone())).collect();
    assert_eq!(kinds, [("research/geo".to_owned(), Kind::Changed), ("teaching/new".to_owned(), Kind::Added)]);
    assert_eq!(review.environments[0].parts, ["images"]);
    assert!(review.images.iter().all(|change| change.new.as_ref().unwrap().digest.is_none()));
    assert!(review.is_sound(), "what is not locked yet is not a problem: {:?}", review.problems);
    assert!(text::lines(&review).join("\n").contains("2026-11-09 (locked after the merge)"));
    let unknown = "objects change once 2 new digests are known";
    let markdown = markdown::markdown(&review, "<!-- m -->", 65_000);
    for shown in [text::summary(&review), markdown] {
        assert!(shown.contains(unknown) && !shown.contains("0 to change"), "{shown}");
    }
}

/// The next tag of research/geo's image.
fn bumped() -> World {
    let mut to = world();
    to.environment("research/geo").images[0] = image("notebook", "quay.io/jupyter/scipy-notebook:2026-11-09");
    to
}

#[test]
fn a_resolved_tag_shows_its_digest_its_size_and_its_objects() {
    let amd64 = PlatformManifest {
        platform: "linux/amd64".parse().unwrap(),
        digest: Digest::sha256(b"new amd64"),
        size: Some(3 * 1024 * 1024 * 1024),
    };
    let review = resolved(&world(), &bumped(), |_| {
        Ok(ResolvedImage {
            digest: Digest::sha256(b"new"),
            evidence: Some(Evidence {
                media_type: "application/vnd.oci.image.index.v1+json".into(),
                kind: ContentKind::Image,
                platforms: vec![amd64.clone()],
            }),
            warnings: Vec::new(),
        })
    });
    assert!(review.is_sound() && review.unknown_digests() == 0, "{:?}", review.problems);
    assert_eq!(review.images[0].new.as_ref().unwrap().digest, Some(Digest::sha256(b"new")));
    assert_eq!(Some(review.images[0].pull[0].bytes), amd64.size);
    let changed: Vec<_> = review.objects.iter().map(|object| (object.action, object.id.kind)).collect();
    let expected = [(Action::Configure, ObjectKind::DaemonSet), (Action::Configure, ObjectKind::ConfigMap)];
    assert_eq!(changed, expected, "the puller before the records");
    assert_eq!(text::summary(&review), "1 environment, 1 image; objects: 0 to create, 2 to change, 0 to delete");
}

#[test]
fn a_tag_that_does_not_exist_is_a_problem_of_the_change() {
    let review = resolved(&world(), &bumped(), |_| Err(Problem::new(Category::Registry, "no such tag").into()));
    assert!(!review.is_sound() && review.objects.is_empty(), "{review:#?}");
    assert!(review.problems[0].message.contains("no such tag"), "{:?}", review.problems);
    assert!(text::summary(&review).ends_with("1 image not resolved"), "{}", text::summary(&review));
}

#[test]
fn only_references_that_the_change_brings_are_asked_for() {
    let asked = |from: &World, to: &World| -> Vec<String> {
        let questions = questions(Some(&loaded(from)), &loaded(to));
        questions.iter().map(|due| due.lookup.reference.to_string()).collect()
    };
    let mut unlocked = world();
    unlocked.add("teaching/waiting", &[("a", "quay.io/a:1")]);
    unlocked.lock.remove(&"teaching/waiting".parse().unwrap());
    let mut bumped_too = bumped();
    bumped_too.environments.insert(
        "teaching/waiting".parse().unwrap(),
        unlocked.environments[&"teaching/waiting".parse().unwrap()].clone(),
    );
    assert_eq!(asked(&world(), &world()), Vec::<String>::new());
    assert_eq!(asked(&world(), &bumped()), ["quay.io/jupyter/scipy-notebook:2026-11-09"]);
    assert_eq!(asked(&unlocked, &bumped_too), ["quay.io/jupyter/scipy-notebook:2026-11-09"], "it waited before");
    assert_eq!(asked(&world(), &unlocked), ["quay.io/a:1"], "a new environment");
    let mut suspended = unlocked;
    suspended.environment("teaching/waiting").suspend = true;
    assert_eq!(asked(&world(), &suspended), Vec::<String>::new());
    assert_eq!(asked(&suspended, &bumped_too).len(), 2, "it is resumed");
    let mut locked = bumped();
    locked.lockfile("research/geo").images.values_mut().next().unwrap().reference =
        "quay.io/jupyter/scipy-notebook:2026-11-09".parse().unwrap();
    assert_eq!(asked(&world(), &locked), Vec::<String>::new(), "the change locks it itself");
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
    let actions: Vec<_> = review.objects.iter().map(|object| (object.action, object.id.kind)).collect();
    let expected = [
        (Action::Delete, ObjectKind::DaemonSet),
        (Action::Configure, ObjectKind::ConfigMap),
        (Action::Delete, ObjectKind::ServiceAccount),
    ];
    assert_eq!(actions, expected, "the tenant's records change, too");
    assert!(review.is_sound());
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
fn all_nodes_a_pool_and_unknown_nodes_are_told_apart() {
    let selector = |key: &str| Placement {
        node_selector: BTreeMap::from([(key.to_owned(), "x".to_owned())]),
        ..Placement::default()
    };
    let mut to = world();
    to.settings.pools.insert("gpu".to_owned(), selector("gpu"));
    for (id, placement) in [
        ("teaching/all", Placement::every_linux_node()),
        ("teaching/gpu", selector("gpu")),
        ("teaching/own", selector("own")),
    ] {
        to.add(id, &[("a", "quay.io/a:1")]).placement = placement;
    }
    let failure: Failure = Problem::new(Category::Schema, "unknown field `imags`").into();
    to.environments.insert("teaching/broken".parse().unwrap(), Err(failure));
    let review = compare(Some(&world()), &to);
    let nodes: Vec<_> = review.environments.iter().map(|change| change.nodes.clone()).collect();
    assert_eq!(nodes, [Nodes::All, Nodes::Unknown, Nodes::Pool("gpu".into()), Nodes::Selected]);
    let text = markdown::markdown(&review, "<!-- m -->", 65_000);
    for row in [
        "| `teaching/all` | added | all Linux nodes |",
        "| `teaching/broken` | broken: what it has stays | unknown |",
        "| `teaching/gpu` | added | pool `gpu` |",
        "| `teaching/own` | added | its own node selection |",
    ] {
        assert!(text.contains(row), "{row} in {text}");
    }
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
    let mut review = Review::default();
    review.count_nodes(&side(&to, &Registries::NotAsked), &nodes);
    assert_eq!(review.nodes[&"research/geo".parse().unwrap()], 4);
}
