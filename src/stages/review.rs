//! What changes between two snapshots: environments, images, and the objects rendered from both. Needs neither cluster
//! nor registry.

mod environments;
mod images;
pub mod markdown;
mod nodes;
mod objects;
#[cfg(test)]
mod tests;
pub mod text;

use std::collections::BTreeMap;

use serde::Serialize;

use super::{load::Environments, lock::entry};
use crate::model::{
    batch::{failed, succeeded},
    digest::Digest,
    failure::{Category, Failure, Problem},
    lock::HoldChange,
    manifest::{Manifests, ObjectId, Owner},
    name::{EnvironmentId, Name},
    observation::NodeTraits,
    plan::{Action, Blocked, Plan},
    reference::ImageReference,
    resolution::Platform,
};

/// One of the two snapshots.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// Its files.
    pub environments: &'a Environments,
    /// What they and their lock render to.
    pub manifests: &'a Manifests,
}

/// What changes between two snapshots.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Review {
    /// The earlier revision.
    pub from: String,
    /// The later revision.
    pub to: String,
    /// Environments that are new, gone or different.
    pub environments: Vec<EnvironmentChange>,
    /// Images that move.
    pub images: Vec<ImageChange>,
    /// Holds that are set, changed or taken away.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<HoldChange>,
    /// Objects that change.
    pub objects: Vec<ObjectChange>,
    /// What is wrong at `to` and was not at `from`.
    pub problems: Vec<Problem>,
    /// How many problems there were at `from` already.
    pub former_problems: usize,
    /// Files that concern everything and differ: `larder.yaml`, templates.
    pub shared: Vec<String>,
    /// Removals that the budget would stop.
    pub blocked: Option<Blocked>,
    /// How many nodes each environment of `environments` and `images` is meant for, where a cluster was asked.
    pub nodes: BTreeMap<EnvironmentId, usize>,
    /// What the cluster's own dry run of `to` says, where it was asked.
    pub server: Option<Plan>,
}

/// One environment's change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentChange {
    /// Which one.
    pub id: EnvironmentId,
    /// What happens to it.
    pub kind: EnvironmentChangeKind,
    /// The parts of its file that differ.
    pub parts: Vec<&'static str>,
    /// The pool that it is for, if it is one of `larder.yaml`.
    pub pool: Option<String>,
}

/// What happens to an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EnvironmentChangeKind {
    /// Its file is new.
    Added,
    /// Its file says something else.
    Changed,
    /// Its file is gone.
    Removed,
    /// Its file was right and is wrong now: all of it stays as it is.
    Broken,
    /// Its file was wrong and is right now.
    Repaired,
}

/// One image's change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImageChange {
    /// The environment.
    pub environment: EnvironmentId,
    /// The image.
    pub image: Name,
    /// What nodes hold before; none for a new image.
    pub old: Option<Held>,
    /// What nodes hold after; none for one that is gone.
    pub new: Option<Held>,
    /// The most that one node pulls, in compressed bytes, by platform. Empty when nothing is pulled or when it is not
    /// known yet. Layers that a node has already are not counted off.
    pub pull: Vec<Pull>,
}

/// What a node of that platform pulls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pull {
    /// The platform.
    pub platform: Platform,
    /// Compressed bytes.
    pub bytes: u64,
}

/// A reference and its digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Held {
    /// The reference.
    pub reference: ImageReference,
    /// The locked digest; none when it is locked only after the change is merged.
    pub digest: Option<Digest>,
}

/// One object's change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ObjectChange {
    /// Which object.
    pub id: ObjectId,
    /// For whom.
    pub owner: Owner,
    /// What happens to it.
    pub action: Action,
    /// A unified diff of its YAML.
    pub diff: String,
}

/// Compares two snapshots. `from` is none where there was no environment repository yet.
pub fn review(from: Option<Side<'_>>, to: Side<'_>, names: (&str, &str)) -> Review {
    let blocked = environments::blocked(from, to);
    let (problems, former_problems) = new_problems(from, to);
    Review {
        from: names.0.to_owned(),
        to: names.1.to_owned(),
        environments: environments::changes(from, to),
        images: images::changes(from, to),
        holds: images::holds(from, to),
        objects: objects::changes(from, to, blocked.as_ref()),
        problems,
        former_problems,
        shared: environments::shared(from, to),
        blocked,
        nodes: BTreeMap::new(),
        server: None,
    }
}

/// A review of something that cannot be read at all.
pub fn unreadable(failure: &Failure, names: (&str, &str)) -> Review {
    Review {
        from: names.0.to_owned(),
        to: names.1.to_owned(),
        problems: failure.problems().to_vec(),
        ..Review::default()
    }
}

impl Review {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        let server = self.server.as_ref().is_none_or(Plan::is_empty);
        self.environments.is_empty() && self.images.is_empty() && self.objects.is_empty() && server
    }

    /// Whether the change is fit to be merged: it breaks nothing.
    pub fn is_sound(&self) -> bool {
        let server = self.server.as_ref().is_none_or(|plan| plan.failures.is_empty() && plan.blocked.is_none());
        self.problems.is_empty() && self.blocked.is_none() && server
    }

    /// How many objects have that action.
    pub fn count(&self, action: Action) -> usize {
        self.objects.iter().filter(|object| object.action == action).count()
    }

    /// Counts the nodes that each environment's pullers are meant for.
    pub fn count_nodes(&mut self, to: Side<'_>, nodes: &BTreeMap<String, NodeTraits>) {
        self.nodes = nodes::count(to, nodes);
    }
}

/// What is wrong at `to`: what is new, and how much is not.
fn new_problems(from: Option<Side<'_>>, to: Side<'_>) -> (Vec<Problem>, usize) {
    let former = from.map(problems).unwrap_or_default();
    let mut new = problems(to);
    let all = new.len();
    new.retain(|problem| !former.iter().any(|known| same(known, problem)));
    let known = all - new.len();
    (new, known)
}

/// Whether it is the same problem, wherever its line has moved to.
fn same(a: &Problem, b: &Problem) -> bool {
    let path = |problem: &Problem| problem.location.as_ref().map(|location| location.path.clone());
    a.message == b.message && path(a) == path(b)
}

fn problems(side: Side<'_>) -> Vec<Problem> {
    let Side { environments, manifests } = side;
    let mut found: Vec<Problem> = Vec::new();
    let failures = failed(&environments.environments).chain(failed(&environments.lock)).map(|(_, failure)| failure);
    // What is not locked yet is no problem of a change: it is locked after the merge.
    let unrendered = manifests.values().filter_map(|result| result.as_ref().err());
    let unrendered = unrendered.filter(|failure| failure.category() != Category::Lock);
    let held: Vec<Problem> = succeeded(&environments.environments)
        .filter_map(|(id, environment)| Some((environment, environments.lock.get(id)?.as_ref().ok()?)))
        .flat_map(|(environment, lockfile)| entry::refusals(environment, lockfile))
        .collect();
    for problem in failures.chain(unrendered).flat_map(Failure::problems).chain(&environments.strays).chain(&held) {
        if !found.contains(problem) {
            found.push(problem.clone());
        }
    }
    found
}
