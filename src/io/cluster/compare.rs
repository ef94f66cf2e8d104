//! Comparing many manifests at once.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt as _, stream};

use super::{CONCURRENCY, Cluster};
use crate::model::{
    failure::{Category, Problem},
    manifest::{Comparison, Kind, Manifest, ObjectId},
};

/// What the target says about each manifest; the failure of one is no other's.
///
/// What goes into a namespace that is made in the same pass cannot be tried before that: it is taken for new, and
/// [`carry_out`](super::carry_out) tries it when the namespace is there.
pub async fn compare_all<C: Cluster>(
    cluster: &C,
    manifests: &[&Manifest],
) -> BTreeMap<ObjectId, Result<Comparison, Problem>> {
    let (namespaces, others): (Vec<&Manifest>, Vec<&Manifest>) =
        manifests.iter().copied().partition(|manifest| manifest.id.kind == Kind::Namespace);
    let mut comparisons = each(cluster, namespaces).await;

    let named = |wanted: fn(&Result<Comparison, Problem>) -> bool| -> BTreeSet<String> {
        let matching = comparisons.iter().filter(|(_, result)| wanted(result));
        matching.map(|(id, _)| id.name.clone()).collect()
    };
    let new = named(|result| result.as_ref().is_ok_and(|comparison| comparison.live.is_none()));
    let failed = named(Result::is_err);
    let mut asked = Vec::new();
    for manifest in others {
        if new.contains(&manifest.id.namespace) {
            let applied = manifest.object.clone();
            comparisons.insert(manifest.id.clone(), Ok(Comparison { live: None, applied }));
        } else if failed.contains(&manifest.id.namespace) {
            comparisons.insert(manifest.id.clone(), Err(waits_for_namespace(&manifest.id)));
        } else {
            asked.push(manifest);
        }
    }
    comparisons.extend(each(cluster, asked).await);
    comparisons
}

/// An object whose namespace is the reason why nothing can be done.
fn waits_for_namespace(id: &ObjectId) -> Problem {
    Problem::new(Category::Cluster, format!("{id} waits for its namespace, which could not be made"))
        .hint("see the tenant's problem")
}

/// Asks about each, a few at a time.
pub(super) async fn each<C: Cluster>(
    cluster: &C,
    manifests: Vec<&Manifest>,
) -> BTreeMap<ObjectId, Result<Comparison, Problem>> {
    stream::iter(manifests)
        .map(|manifest| async move { (manifest.id.clone(), cluster.compare(manifest).await) })
        .buffer_unordered(CONCURRENCY)
        .collect()
        .await
}
