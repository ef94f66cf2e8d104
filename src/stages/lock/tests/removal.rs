//! Environments that are gone from Git.

use super::{A, answered, with};
use crate::{
    model::{
        batch::Batch,
        failure::{Category, Problem},
        lock::Lock,
        settings::Confirmed,
    },
    stages::lock::testing::{batch, change, environment, id, lock, locked, name, settings, unavailable},
};

fn ten() -> Batch<crate::model::environment::Environment> {
    batch((0..10).map(|n| environment(&format!("research/e{n}"), &[&with(A, "notebook")])))
}

#[test]
fn a_removed_environment_loses_its_lockfile_even_a_broken_one() {
    let mut environments = ten();
    let mut old = locked(&environments, &answered(A, "one"));
    old.insert(id("research/e1"), Err(unavailable("torn")));
    environments.remove(&id("research/e0"));
    environments.remove(&id("research/e1"));
    let change = change(&environments, &old, &answered(A, "one"));

    let files: Vec<_> = change.files.iter().map(|(path, bytes)| (path.as_str(), bytes.is_none())).collect();
    assert_eq!(files, [("lock/research/e0.yaml", true), ("lock/research/e1.yaml", true)]);
    assert_eq!(change.moves.len(), 1);
    assert_eq!(change.lock.len(), 8);
    assert_eq!(change.blocked, None);
}

// Nothing there deletes nothing.
#[test]
fn an_empty_source_deletes_nothing() {
    let old = locked(&ten(), &answered(A, "one"));
    let change = change(&Batch::new(), &old, &answered(A, "one"));
    assert!(change.files.is_empty());
    assert_eq!(change.lock, old);
    assert_eq!(change.blocked.unwrap().environments.len(), 10);
}

// Broken is not removed.
#[test]
fn a_broken_source_deletes_nothing() {
    let old = locked(&ten(), &answered(A, "one"));
    let broken = ten().into_keys().map(|id| (id, Err(Problem::new(Category::Syntax, "no YAML").into()))).collect();
    let change = change(&broken, &old, &answered(A, "one"));
    assert!(change.files.is_empty() && change.blocked.is_none());
    assert_eq!(change.lock, old);
}

#[test]
fn blocked_removals_do_not_keep_the_others_from_moving() {
    let mut environments = ten();
    let old = locked(&environments, &answered(A, "one"));
    environments.retain(|id, _| matches!(id.name.as_str(), "e7" | "e8" | "e9"));
    let mut settings = settings();
    settings.prune.confirmed = vec![Confirmed::Environment(id("research/e0"))];
    let change = lock(&environments, &settings, &old, &answered(A, "two"));

    let written: Vec<_> = change.files.iter().map(|(path, bytes)| (path.as_str(), bytes.is_some())).collect();
    let (e0, rest) = written.split_first().unwrap();
    assert_eq!(*e0, ("lock/research/e0.yaml", false), "confirmed");
    assert_eq!(rest.len(), 3);
    assert_eq!(change.lock[&id("research/e1")], old[&id("research/e1")]);
    assert_eq!(change.blocked.unwrap().environments.len(), 6);
}

// Another name for a tenant's only environment is not a removal of the tenant.
#[test]
fn the_only_environment_can_get_another_name() {
    let old = locked(&batch([environment("research/geo", &[&with(A, "notebook")])]), &answered(A, "one"));
    let environments = batch([environment("research/maps", &[&with(A, "notebook")])]);
    let change = change(&environments, &old, &answered(A, "one"));
    let paths: Vec<_> = change.files.keys().collect();
    assert_eq!(paths, ["lock/research/geo.yaml", "lock/research/maps.yaml"]);
    assert_eq!(change.moves[0].environment.name, name("geo"));
}

#[test]
fn nothing_locked_and_nothing_there_is_fine() {
    let change = change(&Batch::new(), &Lock::new(), &answered(A, "one"));
    assert_eq!(change, Default::default());
}
