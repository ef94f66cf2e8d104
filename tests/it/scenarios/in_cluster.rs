//! The controller itself as a pod.

use super::world::World;

#[test]
fn in_cluster() {
    let _ = World::new("crowd", &["research"]);
}
