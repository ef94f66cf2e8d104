//! What a tenant is allowed holds for the lock too, and nothing gets out of a tenant's namespace.

use super::fixture::{World, locked, previous, world};
use crate::model::{
    digest::Digest,
    failure::Category,
    manifest::Kind,
    resolution::PlatformManifest,
    settings::{Bounds, Tenant},
};

fn tenant<'a>(world: &'a mut World, name: &str) -> &'a mut Tenant {
    world.settings.tenants.get_mut(&name.parse().unwrap()).unwrap()
}

fn sized(world: &mut World, id: &str, image: &str, sizes: &[u64]) {
    let image = world.lockfile(id).images.get_mut(&image.parse().unwrap()).unwrap();
    let platform = |(index, &size): (usize, &u64)| PlatformManifest {
        platform: format!("linux/arch{index}").parse().unwrap(),
        digest: image.digest.clone(),
        size: Some(size),
    };
    image.platforms = sizes.iter().enumerate().map(platform).collect();
}

#[test]
fn a_lockfile_cannot_bring_in_another_registry() {
    let mut world = world();
    tenant(&mut world, "research").bounds.registries = Some(vec!["quay.io/jupyter/*".parse().unwrap()]);
    assert!(world.manifests("research/geo").is_ok());
    let lockfile = world.lockfile("research/geo");
    lockfile.images.insert("notebook".parse().unwrap(), locked("evil.example/jupyter/scipy-notebook:2026-11-02"));
    let failure = world.failure("research/geo");
    assert_eq!(failure.category(), Category::Policy);
    let text = failure.to_string();
    assert!(
        text.starts_with("lock/research/geo.yaml: ") && text.contains("`evil.example/jupyter/scipy-notebook`"),
        "{text}"
    );
}

#[test]
fn a_former_digest_that_is_not_allowed_any_more_is_let_go() {
    let mut world = world();
    let image = world.lockfile("research/geo").images.get_mut(&"notebook".parse().unwrap()).unwrap();
    image.previous = vec![previous("evil.example/a:1", "a")];
    assert!(world.puller().to_string().contains("evil.example"));
    tenant(&mut world, "research").bounds.registries = Some(vec!["quay.io".parse().unwrap()]);
    assert!(!world.puller().to_string().contains("evil.example"));
}

#[test]
fn sizes_are_added_up_for_a_tenant() {
    let mut world = world();
    world.add("research/a", &[("x", "quay.io/a:1"), ("same", "quay.io/a:1")]);
    world.add("research/z", &[("x", "quay.io/z:1"), ("shared", "quay.io/a:1")]);
    world.add("teaching/z", &[("x", "quay.io/z:1")]);
    sized(&mut world, "research/a", "x", &[10, 40]);
    sized(&mut world, "research/a", "same", &[10, 40]);
    sized(&mut world, "research/geo", "notebook", &[40]);
    sized(&mut world, "research/z", "x", &[20]);
    sized(&mut world, "research/z", "shared", &[10, 40]);
    sized(&mut world, "teaching/z", "x", &[2000]);
    // 40 (the larger platform, once) + 40 + 20 (what is shared counts once).
    tenant(&mut world, "research").bounds = Bounds { max_size: Some(100), ..Bounds::default() };
    assert!(world.render().values().all(Result::is_ok));
    tenant(&mut world, "research").bounds.max_size = Some(99);
    let manifests = world.render();
    let broken: Vec<String> =
        manifests.iter().filter(|(_, r)| r.is_err()).map(|(owner, _)| owner.to_string()).collect();
    assert_eq!(broken, ["research/z"]);
    let text = world.failure("research/z").to_string();
    assert!(text.starts_with("environments/research/z.yaml:5: "), "{text}");
    assert!(text.contains("may have images of 99 bytes; these are 20 bytes beside 80 bytes"), "{text}");
    // The smaller one comes later and fits; the one that does not is left out.
    sized(&mut world, "research/geo", "notebook", &[200]);
    assert!(world.manifests("research/geo").is_err() && world.manifests("research/z").is_ok());
}

// An entry that the lock keeps although the file names it no more reaches the nodes, so it is bounded too.
#[test]
fn what_only_the_lockfile_has_is_within_the_bounds_too() {
    let mut world = world();
    world.add("research/geo", &[("x", "quay.io/a:1"), ("y", "evil.example/b:1")]);
    world.environment("research/geo").images.pop();
    sized(&mut world, "research/geo", "x", &[40]);
    world.lockfile("research/geo").images.get_mut(&"y".parse().unwrap()).unwrap().digest = Digest::sha256(b"y");
    sized(&mut world, "research/geo", "y", &[20]);
    tenant(&mut world, "research").bounds = Bounds { max_size: Some(60), ..Bounds::default() };
    assert!(world.manifests("research/geo").is_ok());
    tenant(&mut world, "research").bounds.max_size = Some(59);
    assert!(world.failure("research/geo").to_string().contains("may have images of 59 bytes; these are 60 bytes"));
    tenant(&mut world, "research").bounds =
        Bounds { registries: Some(vec!["quay.io".parse().unwrap()]), ..Bounds::default() };
    assert!(world.failure("research/geo").to_string().contains("the image y is locked at `evil.example/b`"));
}

#[test]
fn default_pull_secrets_come_to_those_of_images() {
    let mut world = world();
    world.environment("research/geo").images[0].pull_secret = Some("own".to_owned());
    tenant(&mut world, "research").pull_secrets = vec!["hub".to_owned(), "own".to_owned()];
    let expected = serde_json::json!([{"name": "hub"}, {"name": "own"}]);
    assert_eq!(world.puller()["spec"]["template"]["spec"]["imagePullSecrets"], expected);
    assert_eq!(world.object("research/geo", Kind::ServiceAccount)["imagePullSecrets"], expected);
}

#[test]
fn all_but_the_namespace_is_applied_in_the_tenants_name() {
    let mut world = world();
    world.add("teaching/a", &[("x", "quay.io/a:1")]);
    let user = "system:serviceaccount:research:deployer";
    tenant(&mut world, "research").impersonate = Some(user.to_owned());
    for (owner, manifests) in world.render() {
        for manifest in manifests.unwrap() {
            let own = *owner.tenant() == "research".parse().unwrap() && manifest.id.kind != Kind::Namespace;
            assert_eq!(manifest.impersonate.as_deref(), own.then_some(user), "{}", manifest.id);
        }
    }
}

/// Whatever a tenant writes, its objects are in its own namespace.
#[test]
fn no_value_and_no_template_leads_to_another_namespace() {
    let attempts = [
        ("namespace: {{ tenant.namespace }}", "namespace: teaching"),
        ("namespace: {{ tenant.namespace }}", "namespace: {{ environment.displayName }}"),
        ("namespace: {{ tenant.namespace }}", "namespace: {{ tenant.namespace }}\n  namespace: teaching"),
        ("  namespace: {{ tenant.namespace }}\n", ""),
        ("kind: DaemonSet", "kind: Namespace"),
        ("kind: DaemonSet", "kind: ClusterRoleBinding"),
        ("kind: DaemonSet", "kind: Secret"),
        (
            "apiVersion: apps/v1",
            "apiVersion: v1\nkind: Secret\nmetadata: {name: x, namespace: teaching}\n---\napiVersion: apps/v1",
        ),
        ("serviceAccountName: {{ serviceAccount }}", "serviceAccountName: default"),
        ("enableServiceLinks: false", "hostNetwork: true"),
        ("metadata:\n  name: {{ puller.name }}", "metadata:\n  ownerReferences: []\n  name: {{ puller.name }}"),
        ("metadata:\n  name: {{ puller.name }}", "metadata:\n  name: larder-puller-of-teaching"),
    ];
    for (from, to) in attempts {
        let mut world = world();
        world.add("teaching/a", &[("x", "quay.io/a:1")]);
        world.environment("research/geo").display_name = Some("teaching".to_owned());
        world.edited_puller(from, to);
        let failure = world
            .manifests("research/geo")
            .map(|manifests| manifests.into_iter().map(|m| m.id.to_string()).collect::<Vec<_>>());
        assert_eq!(failure.expect_err(to).category(), Category::Template, "{to}");
        for (owner, manifests) in world.render() {
            for manifest in manifests.into_iter().flatten().filter(|manifest| manifest.id.kind != Kind::Namespace) {
                assert_eq!(manifest.id.namespace, owner.tenant().as_str(), "{}", manifest.id);
                assert_eq!(manifest.object["metadata"]["namespace"], owner.tenant().as_str());
            }
        }
    }
}
