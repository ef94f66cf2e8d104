//! Two owners never share an object.

use std::collections::BTreeMap;

use crate::model::{
    failure::{Category, Failure, Problem},
    manifest::{Manifests, ObjectId, Owner},
};

/// Replaces the manifests of owners that claim the same object by a failure of each of them.
pub fn refuse(manifests: &mut Manifests) {
    let mut claims: BTreeMap<&ObjectId, Vec<&Owner>> = BTreeMap::new();
    for (owner, result) in manifests.iter() {
        for manifest in result.iter().flatten() {
            claims.entry(&manifest.id).or_default().push(owner);
        }
    }
    let mut problems: BTreeMap<Owner, Vec<Problem>> = BTreeMap::new();
    for (object, owners) in claims.iter().filter(|(_, owners)| owners.len() > 1) {
        let all: Vec<String> = owners.iter().map(ToString::to_string).collect();
        let message = format!("{object} would be made for several: {}", all.join(", "));
        let problem = Problem::new(Category::Name, message)
            .hint("rename one of them, or give their tenants namespaces of their own");
        for owner in owners {
            problems.entry((*owner).clone()).or_default().push(problem.clone());
        }
    }
    for (owner, problems) in problems {
        if let Some(failure) = Failure::of(problems) {
            manifests.insert(owner, Err(failure));
        }
    }
}
