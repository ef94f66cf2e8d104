//! First sync, moving tags, merged changes, and what is broken beside what is not.

use super::{
    NODES, environment,
    world::{World, state, wait_for},
};

fn coverage(status: &serde_json::Value, environment: &str, image: &str) -> (u64, u64) {
    let images = status["environments"][environment]["images"].as_array().unwrap();
    let image = images.iter().find(|found| found["name"] == image).unwrap_or_else(|| panic!("{image} in {status:#}"));
    let coverage = &image["coverage"];
    (coverage["ready"].as_u64().unwrap(), coverage["eligible"].as_u64().unwrap())
}

/// The nodes hold the digest, by the kubelet's own word.
fn nodes_hold(world: &World, image: &str, digest: &str) {
    for node in NODES {
        wait_for(&format!("{node} to hold {image}@{digest}"), || world.holds(node, image, digest).then_some(()));
    }
}

fn first_sync(name: &str, strategy: &str) {
    let world = World::new(name, &["research"]);
    let (a, b) = (world.image("a"), world.image("b"));
    let digests = world.push_images(&[], &[&format!("{a}:1"), &format!("{b}:1")]);
    let more = format!("  puller: {{strategy: {strategy}}}\n");
    let text = environment(&[("a", &format!("{a}:1")), ("b", &format!("{b}:1"))], &more);
    let before = world.commit(&[("environments/research/first.yaml", &text)], "Add an environment");

    let pass = world.pass(&[]);
    assert!(pass.well, "{:#}\n{}", pass.report, pass.log);
    assert_eq!(pass.state("research/first"), "Applied");
    assert_eq!(world.git(&["rev-parse", "main~1"]), before, "the lock commit's parent is the fetched tip");
    assert_eq!(world.git(&["diff", "--name-only", "main~1", "main"]), "lock/research/first.yaml");

    let status = world.wait_until_warm();
    assert_eq!(coverage(&status, "research/first", "a"), (2, 2));
    for image in [&a, &b] {
        nodes_hold(&world, image, &digests[&format!("{image}:1")]);
    }
    // The records name what is locked, by digest.
    let records = world.object("configmap", &world.namespace("research"), "submarine-image-pull-operator-records");
    let list = records["data"]["images.list"].as_str().unwrap();
    assert!(list.contains(&format!("{a}:1@{}", digests[&format!("{a}:1")])), "{list}");

    // Nothing has changed: no commit, no write.
    let (tip, versions) = (world.tip(), world.versions());
    let again = world.pass(&[]);
    assert!(again.well, "{}", again.log);
    assert_eq!((world.tip(), world.versions()), (tip, versions));
    assert_eq!(again.report["lastPass"]["lockCommit"], serde_json::Value::Null);
}

#[test]
fn first_sync_to_warm_with_containers() {
    first_sync("containers", "containers");
}

#[test]
fn first_sync_to_warm_with_init_containers() {
    first_sync("init-containers", "initContainers");
}

#[test]
fn a_moved_tag_is_one_commit_and_both_nodes_follow() {
    let world = World::new("retag", &["research"]);
    let image = world.image("notebook");
    let reference = format!("{image}:latest");
    let old = world.push_images(&["--seed", "1"], &[&reference])[&reference].clone();
    world.commit(&[("environments/research/moving.yaml", &environment(&[("notebook", &reference)], ""))], "Add");
    world.pass(&[]);
    world.wait_until_warm();
    let tip = world.tip();

    let new = world.push_images(&["--seed", "2"], &[&reference])[&reference].clone();
    assert_ne!(old, new);
    assert!(world.pass(&[]).well);
    assert_eq!(world.git(&["rev-parse", "main~1"]), tip, "one commit, on the tip");
    let trailer = |key: &str| world.git(&["log", "-1", &format!("--format=%(trailers:key={key},valueonly)"), "main"]);
    assert_eq!(trailer("Larder-Environment").trim(), "research/moving");
    assert_eq!(trailer("Larder-Old-Digest").trim(), old);
    assert_eq!(trailer("Larder-New-Digest").trim(), new);
    world.wait_until_warm();
    nodes_hold(&world, &image, &new);
}

#[test]
fn a_merged_change_adds_changes_and_removes_environments() {
    let world = World::new("merge", &["research"]);
    let names = ["keep", "change", "remove", "add"].map(|name| world.image(name));
    let references: Vec<String> = names.iter().flat_map(|name| [format!("{name}:1"), format!("{name}:2")]).collect();
    world.push_images(&[], &references.iter().map(String::as_str).collect::<Vec<_>>());
    let file = |name: &str| format!("environments/research/{name}.yaml");
    let text = |name: &str, tag: &str| environment(&[("notebook", &format!("{}:{tag}", world.image(name)))], "");
    let first = [("keep", "1"), ("change", "1"), ("remove", "1")].map(|(name, tag)| (file(name), text(name, tag)));
    world.commit(&first.each_ref().map(|(path, text)| (path.as_str(), text.as_str())), "Three environments");
    assert!(world.pass(&[]).well);
    world.wait_until_warm();
    let kept = world.puller("research/keep").unwrap();

    let second = [("change", "2"), ("add", "1")].map(|(name, tag)| (file(name), text(name, tag)));
    std::fs::remove_file(world.path("clone").join(file("remove"))).unwrap();
    world.commit(&second.each_ref().map(|(path, text)| (path.as_str(), text.as_str())), "Merge a change");
    let pass = world.pass(&[]);
    assert!(pass.well, "{:#}", pass.report);
    world.wait_until_warm();
    let there = |name: &str| world.puller(&format!("research/{name}")).is_some();
    assert_eq!(["keep", "change", "remove", "add"].map(there), [true, true, false, true]);
    assert_eq!(world.git(&["ls-tree", "--name-only", "main", "lock/research/"]).lines().count(), 3);
    let still = world.puller("research/keep").unwrap();
    assert_eq!(still["metadata"]["generation"], kept["metadata"]["generation"]);
    assert_eq!(still["metadata"]["uid"], kept["metadata"]["uid"]);
}

#[test]
fn the_good_go_on_beside_a_missing_image_a_broken_file_and_a_scratch_image() {
    let world = World::new("mixed", &["research"]);
    let (good, scratch, missing) = (world.image("good"), world.image("scratch"), world.image("missing"));
    world.push_images(&[], &[&format!("{good}:1")]);
    world.push_images(&["--scratch"], &[&format!("{scratch}:1")]);
    let good_text = environment(&[("notebook", &format!("{good}:1"))], "");
    let scratch_text = environment(&[("notebook", &format!("{scratch}:1"))], "");
    let mixed = environment(&[("there", &format!("{good}:1")), ("gone", &format!("{missing}:1"))], "");
    world.commit(
        &[
            ("environments/research/good.yaml", &good_text),
            ("environments/research/scratch.yaml", &scratch_text),
            ("environments/research/missing.yaml", &mixed),
            (
                "environments/research/broken.yaml",
                "apiVersion: larder.dev/v1alpha1\nkind: Environment\nspec:\n  imags: []\n",
            ),
        ],
        "Four at once",
    );
    let pass = world.pass(&[]);
    assert!(!pass.well, "two are broken");
    assert_eq!(pass.state("research/good"), "Applied");
    assert_eq!(pass.state("research/scratch"), "Applied");
    assert_eq!(pass.state("research/missing"), "Degraded");
    assert_eq!(pass.state("research/broken"), "Failed");
    let (missing_problems, broken_problems) = (pass.problems("research/missing"), pass.problems("research/broken"));
    assert!(missing_problems.contains("missing:1"), "{missing_problems}");
    assert!(broken_problems.contains("imags") && broken_problems.contains("images"), "{broken_problems}");
    assert!(broken_problems.contains("environments/research/broken.yaml"), "{broken_problems}");

    // All that is there becomes warm, the image without a shell too, and `status` names what is not.
    let status = wait_for("what is there to be warm", || {
        let (_, status) = world.status(&[]);
        let warm = |name: &str, image: &str| coverage(&status, name, image) == (2, 2);
        let all = warm("research/good", "notebook")
            && warm("research/scratch", "notebook")
            && warm("research/missing", "there");
        all.then_some(status)
    });
    assert_eq!(state(&status, "research/good"), "Warm");
    assert_eq!(state(&status, "research/missing"), "Degraded");
    assert_eq!(state(&status, "research/broken"), "Failed");
    let (warm, _) = world.status(&["--wait", "--timeout", "1m"]);
    assert!(!warm, "--wait says that not all is warm, without waiting for what no node can mend");
}

/// An image that the registry has, but whose layers are gone: only the kubelet can find out, and its own words are shown.
#[test]
fn the_kubelets_own_message_is_shown() {
    let world = World::new("unpullable", &["research"]);
    let image = world.image("notebook");
    let reference = format!("{image}:1");
    let digest = world.push_images(&[], &[&reference])[&reference].clone();
    // Locked by hand under a digest that no registry has.
    let absent = format!("sha256:{}", "0".repeat(64));
    world.commit(&[("environments/research/x.yaml", &environment(&[("notebook", &reference)], ""))], "Add");
    world.pass(&[]);
    let lock = world.git(&["show", "main:lock/research/x.yaml"]) + "\n";
    world.commit(&[("lock/research/x.yaml", &lock.replace(&digest, &absent))], "Lock what is not there");
    world.pass(&["--follow"]);
    let message = wait_for("the kubelet's message", || {
        let (_, status) = world.status(&[]);
        let nodes = &status["environments"]["research/x"]["images"][0]["coverage"]["nodes"];
        let failed = nodes.as_array()?.iter().find(|node| node["state"] == "failure")?;
        Some(failed["message"].as_str()?.to_owned())
    });
    assert!(message.contains("not found") || message.contains("Back-off"), "{message}");
}

#[test]
fn removing_most_environments_needs_a_commit_that_says_so() {
    let world = World::new("budget", &["research", "teaching"]);
    let image = format!("{}:1", world.image("notebook"));
    world.push_images(&[], &[&image]);
    let text = environment(&[("notebook", &image)], "");
    let paths =
        ["research/a", "research/b", "research/c", "teaching/d"].map(|name| format!("environments/{name}.yaml"));
    world.commit(&paths.each_ref().map(|path| (path.as_str(), text.as_str())), "Four environments");
    assert!(world.pass(&[]).well);
    let (lock, versions) = (world.git(&["rev-parse", "main:lock"]), world.versions());

    world.remove(&paths[..3].iter().map(String::as_str).collect::<Vec<_>>(), "Remove a whole tenant");
    let pass = world.pass(&[]);
    assert!(!pass.well);
    assert_eq!(pass.state("research/a"), "Blocked");
    assert!(pass.problems("research/a").contains("confirmed"), "{}", pass.problems("research/a"));
    assert_eq!((world.git(&["rev-parse", "main:lock"]), world.versions()), (lock, versions), "nothing is deleted");

    let settings = world.settings(&["research", "teaching"], "  prune: {confirmed: [research/*]}\n");
    world.commit(&[("larder.yaml", &settings)], "Yes, all of research");
    let pass = world.pass(&[]);
    assert!(pass.well, "{:#}", pass.report);
    let daemonsets = world.kubectl(&["get", "daemonsets", "-n", &world.namespace("research"), "-o", "name"]);
    assert_eq!(daemonsets, "");
    assert_eq!(world.git(&["ls-tree", "-r", "--name-only", "main", "lock/"]), "lock/teaching/d.yaml");
}
