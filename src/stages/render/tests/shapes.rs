//! The shape of each object.

use super::fixture::world;
use crate::model::{manifest::Kind, yaml::to_yaml};

#[test]
fn show() {
    let world = world();
    println!("{}", to_yaml(&world.puller()));
    println!("{}", to_yaml(&world.object("research", Kind::ConfigMap)));
    println!("{}", to_yaml(&world.object("research/geo", Kind::ServiceAccount)));
}
