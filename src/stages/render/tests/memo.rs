//! What is rendered through the memory is what is rendered afresh, whatever has changed in between.

use std::sync::Arc;

use proptest::prelude::*;

use super::fixture::{World, locked, previous, world};
use crate::{
    model::{
        failure::{Category, Failure, Problem},
        manifest::{Manifests, Owner},
        name::EnvironmentId,
        resolution::PlatformManifest,
    },
    stages::render::Renderer,
};

/// Environments of two tenants, and of one that is not declared.
const IDS: [&str; 4] = ["research/geo", "research/z", "teaching/geo", "unknown/x"];

/// A change of a repository by its name; it takes one of [`IDS`] and a number below 3.
type Change = (&'static str, fn(&mut World, &str, u64));

const CHANGES: [Change; 17] = [
    ("nothing", |_, _, _| {}),
    ("add, or set back", |world, id, n| {
        world.add(id, &[("notebook", "quay.io/a:1"), ("more", &format!("quay.io/b:{n}"))]);
    }),
    ("many images", |world, id, n| {
        let images: Vec<String> = (0..20 + n).map(|n| format!("i{n}")).collect();
        let references: Vec<String> = images.iter().map(|name| format!("quay.io/{name}:1")).collect();
        let both: Vec<(&str, &str)> =
            images.iter().map(String::as_str).zip(references.iter().map(String::as_str)).collect();
        world.add(id, &both);
    }),
    ("remove", |world, id, _| {
        world.environments.remove(&key(id));
        world.lock.remove(&key(id));
    }),
    ("remove the file alone", |world, id, _| drop(world.environments.remove(&key(id)))),
    ("remove the lockfile alone", |world, id, _| drop(world.lock.remove(&key(id)))),
    ("break the file", |world, id, n| drop(world.environments.insert(key(id), Err(broken(n))))),
    ("break the lockfile", |world, id, n| drop(world.lock.insert(key(id), Err(broken(n))))),
    ("suspend", |world, id, n| {
        edit(world, id, |world| world.environment(id).suspend = n > 0);
    }),
    ("describe", |world, id, n| {
        edit(world, id, |world| world.environment(id).description = Some(n.to_string()));
    }),
    ("move the lock", |world, id, n| {
        edit(world, id, |world| {
            for image in world.lockfile(id).images.values_mut() {
                let former = previous(&image.reference.to_string(), image.digest.as_str());
                *image = locked(&format!("quay.io/moved:{n}"));
                image.previous = vec![former];
            }
        });
    }),
    // The size of one counts for what others of its tenant may still have.
    ("grow", |world, id, n| {
        edit(world, id, |world| {
            for image in world.lockfile(id).images.values_mut() {
                let (digest, size) = (image.digest.clone(), n * 40);
                image.platforms =
                    vec![PlatformManifest { platform: "linux/amd64".parse().unwrap(), digest, size: Some(size) }];
            }
        });
    }),
    ("bounds", |world, _, n| {
        for tenant in world.settings.tenants.values_mut() {
            tenant.bounds.max_size = (n > 0).then_some(n * 50);
        }
    }),
    ("tenants", |world, _, n| {
        for (name, tenant) in &mut world.settings.tenants {
            tenant.impersonate = (n == 1).then(|| format!("{name}-deployer"));
            tenant.namespace = if n == 2 { "shared".to_owned() } else { name.to_string() };
        }
    }),
    ("records", |world, _, n| world.settings.records.name = format!("records-{n}")),
    ("templates", |world, _, n| match n {
        0 => world.templates.clear(),
        1 => drop(world.edited_puller("enableServiceLinks: false", "hostNetwork: true")),
        _ => drop(world.template("records.yaml.j2", "{{ nothing }}")),
    }),
    ("options", |world, _, n| world.options.instance = ["default", "other", "no label!"][n as usize].to_owned()),
];

fn key(id: &str) -> EnvironmentId {
    id.parse().unwrap()
}

fn broken(n: u64) -> Failure {
    Problem::new(Category::Syntax, format!("broken {n}")).into()
}

/// Changes an environment that is whole, else adds it.
fn edit(world: &mut World, id: &str, change: impl FnOnce(&mut World)) {
    let whole = |world: &World| {
        matches!((world.environments.get(&key(id)), world.lock.get(&key(id))), (Some(Ok(_)), Some(Ok(_))))
    };
    if !whole(world) {
        world.add(id, &[("notebook", "quay.io/a:1")]);
    }
    change(world);
}

impl World {
    fn render_with(&self, renderer: &mut Renderer) -> Manifests {
        renderer.render(&self.environments, &self.settings, &self.templates, &self.lock, &self.options)
    }
}

#[test]
fn each_change_alone_and_taken_back() {
    for (what, change) in CHANGES {
        for id in IDS {
            for n in 0..3 {
                let mut renderer = Renderer::default();
                let (before, mut after) = (world(), world());
                change(&mut after, id, n);
                for world in [&before, &after, &before] {
                    assert_eq!(world.render_with(&mut renderer), world.render(), "{what} of {id}, {n}");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_changes_one_after_another(steps in prop::collection::vec((0..CHANGES.len(), 0..IDS.len(), 0..3_u64), 1..12)) {
        let (mut world, mut renderer) = (world(), Renderer::default());
        for (change, id, n) in steps {
            let (what, change) = CHANGES[change];
            change(&mut world, IDS[id], n);
            prop_assert_eq!(world.render_with(&mut renderer), world.render(), "{} of {}, {}", what, IDS[id], n);
        }
    }
}

/// The owners whose objects are the very same as before.
fn kept(before: &Manifests, after: &Manifests) -> Vec<String> {
    let objects = |manifests: &Manifests, owner: &Owner| -> Vec<Arc<serde_json::Value>> {
        manifests.get(owner).into_iter().flatten().flatten().map(|manifest| manifest.object.clone()).collect()
    };
    let same = |owner: &&Owner| {
        let (before, after) = (objects(before, owner), objects(after, owner));
        !after.is_empty()
            && before.len() == after.len()
            && before.iter().zip(&after).all(|(before, after)| Arc::ptr_eq(before, after))
    };
    after.keys().filter(same).map(ToString::to_string).collect()
}

#[test]
fn only_what_differs_is_rendered_anew() {
    let mut world = world();
    world.add("research/z", &[("x", "quay.io/z:1")]);
    world.add("teaching/a", &[("x", "quay.io/a:1")]);
    let mut renderer = Renderer::default();
    let mut last = world.render_with(&mut renderer);
    let mut next = |world: &World| {
        let manifests = world.render_with(&mut renderer);
        let kept = kept(&last, &manifests);
        last = manifests;
        kept.join(" ")
    };
    assert_eq!(next(&world), "research teaching research/geo research/z teaching/a");
    world.environment("research/geo").description = Some("new".to_owned());
    assert_eq!(next(&world), "research teaching research/z teaching/a");
    let image = locked("quay.io/z:2");
    world.lockfile("research/z").images.insert("x".parse().unwrap(), image);
    assert_eq!(next(&world), "teaching research/geo teaching/a");
    // What is gone is forgotten.
    let gone = world.environments.remove(&key("teaching/a")).unwrap();
    assert_eq!(next(&world), "research teaching research/geo research/z");
    world.environments.insert(key("teaching/a"), gone);
    assert_eq!(next(&world), "research teaching research/geo research/z");
    for change in ["bounds", "templates", "options"] {
        let (_, change) = CHANGES.into_iter().find(|(what, _)| *what == change).unwrap();
        change(&mut world, "", 1);
        assert_eq!(next(&world), "");
    }
}
