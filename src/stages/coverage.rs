//! temporary
use crate::model::{name::*, report::*, *};
use std::collections::BTreeMap;
pub fn coverage(_: &lock::Lock, _: &manifest::Manifests, _: &()) -> BTreeMap<EnvironmentId, Coverage> {
    BTreeMap::new()
}
