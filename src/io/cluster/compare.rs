//! Comparing many manifests at once.

use std::collections::BTreeMap;

use futures::{StreamExt as _, stream};

use super::{CONCURRENCY, Cluster};
use crate::model::{
    failure::{Category, Problem},
    manifest::{Comparison, Kind, Manifest, ObjectId},
};

/// What `judge` makes of the target's answer about each manifest; the failure of one is no other's. Answers are large, so
/// none is kept longer than it takes to judge it.
///
/// What goes into a namespace that is made in the same pass cannot be tried before that: it is taken for new, and
/// [`carry_out`](super::carry_out) tries it when the namespace is there.
pub async fn compare_all<C: Cluster, T>(
    cluster: &C,
    manifests: &[&Manifest],
    judge: impl Fn(&Manifest, &Comparison) -> T + Sync,
) -> BTreeMap<ObjectId, Result<T, Problem>> {
    let (namespaces, others): (Vec<&Manifest>, Vec<&Manifest>) =
        manifests.iter().copied().partition(|manifest| manifest.id.kind == Kind::Namespace);
    let judge = |manifest: &Manifest, comparison: &Comparison| (comparison.live.is_none(), judge(manifest, comparison));
    let mut judged = each(cluster, namespaces, judge).await;
    // Whether each of these namespaces is new, or why it cannot be made.
    let is_new = |result: &Result<(bool, T), Problem>| match result {
        Ok((new, _)) => Some(*new),
        // It is there, and someone else's.
        Err(problem) if problem.category == Category::Conflict => Some(false),
        Err(_) => None,
    };
    let new: BTreeMap<String, Option<bool>> =
        judged.iter().map(|(id, result)| (id.name.clone(), is_new(result))).collect();

    let mut asked = Vec::new();
    for manifest in others {
        let id = &manifest.id;
        match new.get(&id.namespace) {
            Some(Some(true)) => {
                let nothing = Comparison { live: None, applied: serde_json::Value::Null };
                judged.insert(id.clone(), Ok(judge(manifest, &nothing)));
            }
            Some(None) => {
                judged.insert(id.clone(), Err(waits_for_namespace(id)));
            }
            Some(Some(false)) | None => asked.push(manifest),
        }
    }
    judged.extend(each(cluster, asked, judge).await);
    judged.into_iter().map(|(id, result)| (id, result.map(|(_, verdict)| verdict))).collect()
}

/// An object whose namespace is the reason why nothing can be done.
fn waits_for_namespace(id: &ObjectId) -> Problem {
    Problem::new(Category::Cluster, format!("{id} waits for its namespace, which could not be made"))
        .hint("see the tenant's problem")
}

/// Asks about each, a few at a time.
pub(super) async fn each<C: Cluster, T>(
    cluster: &C,
    manifests: Vec<&Manifest>,
    judge: impl Fn(&Manifest, &Comparison) -> T,
) -> BTreeMap<ObjectId, Result<T, Problem>> {
    let judge = &judge;
    stream::iter(manifests)
        .map(|manifest| async move {
            let result = cluster.compare(manifest).await;
            (manifest.id.clone(), result.map(|comparison| judge(manifest, &comparison)))
        })
        .buffer_unordered(CONCURRENCY)
        .collect()
        .await
}
