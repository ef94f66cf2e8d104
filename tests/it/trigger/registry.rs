//! A real registry that notifies larder: a push of an image leads to a lock commit, hours before its refresh.

use super::peer::{self, SECRET, passes};
use crate::{
    registry::peer::Registry,
    scenarios::{
        environment,
        world::{World, wait_for},
    },
};

#[test]
fn a_push_to_a_registry_is_locked_at_once() {
    let world = World::new("notified", &["research"]);
    let repository = world.repository();
    let controller = peer::listening(&world, &["--repo", &repository, "--target", "dir:out"]);
    let url = format!("http://{}/hooks/registry", peer::address(&controller));
    let registry = Registry::notifying(&url, &format!("Bearer {SECRET}"));
    let host = registry.host();
    let (reference, missing) = (format!("{host}/team/notebook:1"), format!("{host}/team/later:1"));
    let push = |seed: &str, reference: &str| world.push_images(&["--seed", seed], &[reference])[reference].clone();
    let first = push("1", &reference);
    let settings = world
        .settings(&["research"], "")
        .replace("  registries:\n", &format!("  registries:\n    \"{host}\": {{plainHttp: true}}\n"));
    let images = environment(&[("notebook", &reference), ("later", &missing)], "  refresh: 24h\n");
    world.commit(&[("larder.yaml", &settings), ("environments/research/x.yaml", &images)], "Add");
    let locked = || world.git(&["show", "main:lock/research/x.yaml"]);
    wait_for("the first lock commit", || {
        world.git(&["ls-tree", "-r", "--name-only", "main"]).contains("lock/").then_some(())
    });
    assert!(locked().contains(&first), "{}", locked());

    let before = passes(&controller);
    let second = push("2", &reference);
    wait_for(&format!("{second} to be locked:\n{}", controller.log()), || locked().contains(&second).then_some(()));
    wait_for("the end of that pass", || (passes(&controller) > before).then_some(()));
    // An image that was not there yet is found as soon as it is, whatever its retry is.
    assert!(!locked().contains("later"), "{}", locked());
    let later = push("1", &missing);
    wait_for(&format!("{later} to be locked:\n{}", controller.log()), || locked().contains(&later).then_some(()));
    assert!(!controller.log().contains(SECRET));
}
