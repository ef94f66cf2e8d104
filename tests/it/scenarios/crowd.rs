//! Real input: the 167 distinct image references of real JupyterHub deployments, a tenant for each registry organisation.

use super::world::World;

#[test]
fn crowd() {
    let _ = World::new("crowd", &["research"]);
}
