//! Carrying out a plan: in its order, a few at a time, one outcome for each change.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use futures::{StreamExt as _, stream};
use tokio_util::sync::CancellationToken;

use super::{CONCURRENCY, Cluster, compare::each};
use crate::model::{
    failure::{Category, Problem},
    manifest::{Kind, Manifest, ObjectId, Owner},
    plan::{Action, Applied, Change, Outcome, Plan},
};

/// Does what the plan says and decides nothing: kind after kind, then the deletes in reverse.
///
/// After a failure nothing more is done for that owner, nor in a namespace that could not be made; all others continue.
/// When `cancelled`, what has been begun is ended and nothing more is begun.
pub async fn carry_out<C: Cluster>(cluster: &C, plan: &Plan, cancelled: &CancellationToken) -> Applied {
    let mut run = Run { cluster, cancelled, broken: Broken::default() };
    let mut outcomes: Vec<Option<Outcome>> = vec![None; plan.changes.len()];
    let made = namespaces_to_make(plan);

    for kind in Kind::ALL {
        run.steps(plan, &mut outcomes, |change| change.action != Action::Delete && change.id.kind == kind).await;
        if kind == Kind::Namespace {
            run.try_in_new_namespaces(plan, &mut outcomes, &made).await;
        }
    }
    for kind in Kind::ALL.into_iter().rev() {
        run.steps(plan, &mut outcomes, |change| change.action == Action::Delete && change.id.kind == kind).await;
    }

    let outcomes = outcomes.into_iter().map(|outcome| outcome.unwrap_or(Outcome::NotAttempted));
    Applied {
        outcomes: plan.changes.iter().map(bare).zip(outcomes).collect(),
        failures: plan.failures.clone(),
        blocked: plan.blocked.clone(),
    }
}

/// A change without what makes it large.
fn bare(change: &Change) -> Change {
    let Change { id, owner, action, uid, .. } = change;
    let (id, owner, uid) = (id.clone(), owner.clone(), uid.clone());
    Change { id, owner, action: *action, uid, diff: String::new(), manifest: None }
}

/// For what nothing more is done.
#[derive(Default)]
struct Broken {
    owners: BTreeSet<Owner>,
    namespaces: BTreeSet<String>,
}

impl Broken {
    fn has(&self, change: &Change) -> bool {
        self.owners.contains(&change.owner) || self.namespaces.contains(&change.id.namespace)
    }

    fn add(&mut self, change: &Change) {
        self.owners.insert(change.owner.clone());
        if change.id.kind == Kind::Namespace {
            self.namespaces.insert(change.id.name.clone());
        }
    }
}

struct Run<'a, C> {
    cluster: &'a C,
    cancelled: &'a CancellationToken,
    broken: Broken,
}

impl<C: Cluster> Run<'_, C> {
    /// Carries out the changes that are chosen, a few at a time. Two changes of one owner may be under way together; a
    /// failure stops those that follow.
    async fn steps(&mut self, plan: &Plan, outcomes: &mut [Option<Outcome>], chosen: impl Fn(&Change) -> bool) {
        let mut todo = Vec::new();
        for (index, change) in plan.changes.iter().enumerate().filter(|(_, change)| chosen(change)) {
            match change.action {
                Action::Unchanged => outcomes[index] = Some(Outcome::Unchanged),
                _ if outcomes[index].is_some() || self.broken.has(change) => {}
                _ => todo.push((index, change)),
            }
        }
        let (cluster, cancelled) = (self.cluster, self.cancelled);
        let done: Vec<(usize, Outcome)> = stream::iter(todo)
            .map(|(index, change)| async move {
                if cancelled.is_cancelled() {
                    return (index, Outcome::NotAttempted);
                }
                (index, step(cluster, change).await.map_or_else(Outcome::Failed, |()| Outcome::Done))
            })
            .buffer_unordered(CONCURRENCY)
            .collect()
            .await;
        for (index, outcome) in done {
            if matches!(outcome, Outcome::Failed(_)) {
                self.broken.add(&plan.changes[index]);
            }
            outcomes[index] = Some(outcome);
        }
    }

    /// The dry runs that were not possible before these namespaces were there.
    async fn try_in_new_namespaces(&mut self, plan: &Plan, outcomes: &mut [Option<Outcome>], made: &BTreeSet<String>) {
        if made.is_empty() || self.cancelled.is_cancelled() {
            return;
        }
        let untried = |change: &&Change| {
            change.action == Action::Create && made.contains(&change.id.namespace) && !self.broken.has(change)
        };
        let manifests: Vec<&Manifest> =
            plan.changes.iter().filter(untried).filter_map(|c| c.manifest.as_ref()).collect();
        let mut refused = each(self.cluster, manifests, |_, _| ()).await;
        refused.retain(|_, result| result.is_err());
        for (change, outcome) in plan.changes.iter().zip(outcomes) {
            if let Some(Err(problem)) = refused.remove(&change.id) {
                self.broken.owners.insert(change.owner.clone());
                *outcome = Some(Outcome::Failed(problem));
            }
        }
    }
}

fn namespaces_to_make(plan: &Plan) -> BTreeSet<String> {
    let made =
        plan.changes.iter().filter(|change| change.id.kind == Kind::Namespace && change.action == Action::Create);
    made.map(|change| change.id.name.clone()).collect()
}

async fn step<C: Cluster>(cluster: &C, change: &Change) -> Result<(), Problem> {
    match (&change.manifest, change.action) {
        (_, Action::Delete) => cluster.delete(&change.id, &change.uid).await,
        (Some(manifest), _) => cluster.apply(manifest).await,
        (None, _) => Err(without_manifest(&change.id)),
    }
}

fn without_manifest(id: &ObjectId) -> Problem {
    Problem::new(Category::Cluster, format!("{id} has a plan without a manifest")).hint("this is a fault of larder")
}
