//! What changes between two snapshots, each as the pass on it would leave it: environments, images, and the objects
//! rendered from both. Needs no cluster, and a registry only where new digests are wanted.

mod environments;
mod images;
pub mod markdown;
mod nodes;
mod objects;
mod side;
#[cfg(test)]
mod tests;
pub mod text;

use std::collections::BTreeMap;

pub use self::{
    environments::differing,
    side::{Registries, Side, questions},
};

use crate::model::{
    batch::failed,
    digest::Digest,
    failure::{Category, Failure, Problem},
    lock::HoldChange,
    manifest::{ObjectId, Owner},
    name::{EnvironmentId, Name},
    observation::NodeTraits,
    plan::{Action, Blocked, Plan},
    reference::ImageReference,
    resolution::Platform,
};

/// What changes between two snapshots.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Review {
    /// The earlier revision.
    pub from: String,
    /// The later revision.
    pub to: String,
    /// Environments that are new, gone or different.
    pub environments: Vec<EnvironmentChange>,
    /// Images that move.
    pub images: Vec<ImageChange>,
    /// Whether the registries were asked for the digests of new references.
    pub digests: Digests,
    /// Holds that are set, changed or taken away.
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

/// Where the digests of references that the lock does not hold are from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Digests {
    /// Nowhere: only what is locked is known.
    #[default]
    Locked,
    /// From their registries; one without a digest could not be resolved.
    Resolved,
}

/// One environment's change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvironmentChange {
    /// Which one.
    pub id: EnvironmentId,
    /// What happens to it.
    pub kind: EnvironmentChangeKind,
    /// The parts of its file that differ.
    pub parts: Vec<&'static str>,
    /// The nodes that it is for.
    pub nodes: Nodes,
}

/// Which nodes an environment is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nodes {
    /// Those of a pool of `larder.yaml`.
    Pool(String),
    /// Every Linux node.
    All,
    /// Those that its own file selects.
    Selected,
    /// Its file cannot be read.
    Unknown,
}

/// What happens to an environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvironmentChangeKind {
    /// Its file is new.
    Added,
    /// Its file says something else.
    Changed,
    /// Its file has another name; lockfile and holds move along. This was its name.
    Renamed(EnvironmentId),
    /// Its file is gone.
    Removed,
    /// Its file was right and is wrong now: all of it stays as it is.
    Broken,
    /// Its file was wrong and is right now.
    Repaired,
}

/// One image's change.
#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pull {
    /// The platform.
    pub platform: Platform,
    /// Compressed bytes.
    pub bytes: u64,
}

/// A reference and its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The reference.
    pub reference: ImageReference,
    /// The locked digest; none when it is locked only after the change is merged.
    pub digest: Option<Digest>,
}

/// One object's change.
#[derive(Clone, Debug, PartialEq, Eq)]
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
pub fn review(from: Option<&Side>, to: &Side, names: (&str, &str)) -> Review {
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
        digests: to.digests,
        ..Review::default()
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

    /// How many images move to a digest that is not known. Their objects change once it is.
    pub fn unknown_digests(&self) -> usize {
        let is_unknown = |held: &&Held| held.digest.is_none();
        self.images.iter().filter_map(|image| image.new.as_ref()).filter(is_unknown).count()
    }

    /// Counts the nodes that each environment's pullers are meant for.
    pub fn count_nodes(&mut self, to: &Side, nodes: &BTreeMap<String, NodeTraits>) {
        self.nodes = nodes::count(to, nodes);
    }
}

/// What is wrong at `to`: what is new, and how much is not.
fn new_problems(from: Option<&Side>, to: &Side) -> (Vec<Problem>, usize) {
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

fn problems(side: &Side) -> Vec<Problem> {
    let Side { environments, manifests, unlocked, .. } = side;
    let mut found: Vec<Problem> = Vec::new();
    let failures = failed(&environments.environments).chain(failed(&environments.lock)).map(|(_, failure)| failure);
    // What is not locked is told by `unlocked`, where it is a problem at all.
    let unrendered = manifests.values().filter_map(|result| result.as_ref().err());
    let unrendered = unrendered.filter(|failure| failure.category() != Category::Lock);
    for problem in failures.chain(unrendered).flat_map(Failure::problems).chain(&environments.strays).chain(unlocked) {
        if !found.contains(problem) {
            found.push(problem.clone());
        }
    }
    found
}
