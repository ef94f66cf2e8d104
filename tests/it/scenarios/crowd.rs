//! As many images as real JupyterHub deployments have: 167 distinct references, a tenant for each registry organization.
//!
//! `LARDER_IMAGES=FILE` takes the references from a file, one a line, instead of making them up.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
    time::Instant,
};

use larder::model::reference::ImageReference;

use super::{
    NODES, environment,
    world::{World, kubectl, run, script, wait_for},
};

/// References in the shapes that real deployments use: hosts, depths, upper-case tags, commit ids, dates, `latest`.
fn made_up(count: usize) -> Vec<String> {
    let hosts = [
        "quay.io/org{o}",
        "ghcr.io/org{o}/images",
        "org{o}",
        "docker.io/org{o}",
        "us-docker.pkg.dev/org{o}/hub/images",
        "public.ecr.aws/org{o}",
    ];
    let tags = ["latest", "2026.11.2", "v1.10", "0e1234", "RC1", "89655e1", "2026-11-02", "1.10"];
    (0..count)
        .map(|number| {
            let organisation = hosts[number % hosts.len()].replace("{o}", &(number % 7).to_string());
            format!("{organisation}/image-{number}:{}", tags[number % tags.len()])
        })
        .collect()
}

fn references() -> Vec<ImageReference> {
    let texts = match std::env::var("LARDER_IMAGES") {
        Ok(file) => std::fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect(),
        Err(_) => made_up(167),
    };
    texts.iter().map(|text| text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))).collect()
}

/// The organization of a reference as a tenant's name: host and first part of the path.
fn tenant(reference: &ImageReference) -> String {
    let first = reference.path().split('/').next().unwrap_or_default();
    format!("{}-{first}", reference.host()).replace(['.', ':', '_'], "-")
}

#[test]
fn as_many_images_as_real_hubs_have_are_locked_and_warm() {
    let mut world = World::new("crowd", &[]);
    let references = references();
    let hosts: BTreeSet<&str> = references.iter().map(ImageReference::host).collect();
    run(Command::new(script("mirror")).args(&hosts));
    let names: BTreeSet<String> = references.iter().map(ToString::to_string).collect();
    let pushed =
        world.push_images(&["--seed", &world.id.clone()], &names.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(pushed.len(), names.len());

    // An environment repository: a tenant for each organization, one environment each.
    let mut tenants: BTreeMap<String, Vec<&ImageReference>> = BTreeMap::new();
    for reference in &references {
        tenants.entry(tenant(reference)).or_default().push(reference);
    }
    world.mirror(hosts.iter().copied());
    let settings = world.settings(&tenants.keys().map(String::as_str).collect::<Vec<_>>(), "");
    let mut files = vec![("larder.yaml".to_owned(), settings)];
    for (tenant, references) in &tenants {
        // Two spellings of one reference (`a/b:1`, `docker.io/a/b:1`) are one image, and go into two environments.
        let mut seen = BTreeSet::new();
        let (all, again): (Vec<&ImageReference>, _) = references.iter().partition(|reference| seen.insert(**reference));
        for (name, references) in
            [("all", all), ("again", again)].iter().filter(|(_, references)| !references.is_empty())
        {
            let texts: Vec<(String, String)> = references
                .iter()
                .enumerate()
                .map(|(number, reference)| (format!("image-{number}"), reference.to_string()))
                .collect();
            let images: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
            files.push((format!("environments/{tenant}/{name}.yaml"), environment(&images, "")));
        }
    }
    let tip =
        world.commit(&files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect::<Vec<_>>(), "All hubs");

    let start = Instant::now();
    let pass = world.pass(&[]);
    eprintln!("pass of {} images in {} environments: {:?}", references.len(), tenants.len(), start.elapsed());
    assert!(pass.well, "{:#}\n{}", pass.report, pass.log);
    assert_eq!(world.git(&["rev-parse", "main~1"]), tip, "one lock commit");
    let lock = world.git(&["grep", "-h", "digest", "main", "--", "lock/"]);
    let locked = world.git(&["grep", "-h", "reference", "main", "--", "lock/"]);
    assert_eq!(locked.lines().count(), references.len(), "all of them are locked");
    for (reference, digest) in &pushed {
        assert!(lock.contains(digest), "{reference} is locked as {digest}");
    }

    world.wait_until_warm_within("8m");
    eprintln!("warm after {:?}", start.elapsed());
    for node in NODES {
        wait_for(&format!("{node} to hold all digests"), || {
            let held = world.all_digests_on(node);
            pushed.values().all(|digest| held.contains(digest)).then_some(())
        });
    }
    let namespaces =
        kubectl(&["get", "daemonsets", "-A", "-l", &format!("larder.dev/instance={}", world.id), "-o", "name"]);
    assert!(namespaces.lines().count() >= tenants.len());
}
