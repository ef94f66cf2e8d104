//! The document of `larder plan --output json`, with and without `--from`.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Document, Problem};
use crate::{
    model::{
        digest::Digest,
        lock::HoldChange,
        manifest::{ObjectId, Owner},
        name::EnvironmentId,
        plan,
        reference::ImageReference,
    },
    stages::review,
};

/// What would be done to a target or, with `from`, what changes between two revisions.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The earlier revision; absent in a plan against a target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Revision>,
    /// The revision that is planned.
    pub to: Revision,
    /// Environments whose files change between the revisions.
    pub environments: Vec<Environment>,
    /// Images that move between the revisions; against a target, the images of environments whose objects change.
    pub images: Vec<Image>,
    /// Holds that are set, changed or released between the revisions.
    pub holds: Vec<Hold>,
    /// Images that are held, against a target.
    pub notes: Vec<Note>,
    /// Files on which all environments depend and that change between the revisions.
    pub shared: Vec<String>,
    /// Problems that there were at the earlier revision already.
    pub existing_problems: usize,
    /// What becomes of the objects.
    #[serde(flatten)]
    pub effect: Effect,
    /// What the cluster's own dry run says, with `--dry-run server`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<Effect>,
}

impl Document for Plan {
    const KIND: &'static str = "Plan";
}

/// A revision of the environment repository.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Revision {
    /// The commit; absent for the files of a directory, which may not be committed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// What becomes of objects.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Effect {
    /// How many objects.
    pub summary: Summary,
    /// The objects that are created, changed or deleted.
    pub objects: Vec<Object>,
    /// What is wrong. Whatever it concerns stays as it is.
    pub problems: Vec<Problem>,
    /// Removals that the budget does not allow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked: Option<Blocked>,
}

/// How many objects.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// New ones.
    pub create: usize,
    /// Those of which some fields change.
    pub change: usize,
    /// Deleted ones.
    pub delete: usize,
    /// Images whose new digest is not known. The objects of their environments change once it is.
    pub unknown_digests: usize,
}

/// One object.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Object {
    /// Its kind.
    pub kind: String,
    /// Its namespace; absent for a Namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// The environment `tenant/name` or the tenant that it belongs to.
    pub owner: String,
    /// What happens to it.
    pub action: Action,
    /// A unified diff of its YAML, without Secrets' values.
    pub diff: String,
}

/// What happens to an object.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// It is created.
    Create,
    /// Some of its fields change.
    Change,
    /// It is deleted.
    Delete,
}

/// Removals that the budget does not allow.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Blocked {
    /// The environments that stay, each `tenant/name`.
    pub environments: Vec<String>,
    /// Why, and how to confirm their removal.
    pub problem: Problem,
}

/// One environment's change.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Environment {
    /// Which one: `tenant/name`.
    pub environment: String,
    /// What happens to it.
    pub change: EnvironmentChange,
    /// The name that it had before, where it was renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
    /// The parts of its file that differ, in words.
    pub parts: Vec<String>,
    /// The nodes that it is for.
    pub nodes: Nodes,
}

/// What happens to an environment.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EnvironmentChange {
    /// Its file is new.
    Added,
    /// Its file says something else.
    Changed,
    /// Its file has another name; lockfile and holds move along.
    Renamed,
    /// Its file is gone.
    Removed,
    /// Its file was right and is wrong now: all of it stays as it is.
    Broken,
    /// Its file was wrong and is right now.
    Repaired,
}

/// The nodes that an environment is for.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Nodes {
    /// How they are chosen.
    pub selection: Selection,
    /// The pool of `larder.yaml`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// How many there are now, with `--dry-run server`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
}

/// How nodes are chosen.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Selection {
    /// By a pool of `larder.yaml`.
    Pool,
    /// All Linux nodes.
    All,
    /// By the environment's own file.
    Own,
    /// Its file cannot be read.
    Unknown,
}

/// One image's change.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// Its environment: `tenant/name`.
    pub environment: String,
    /// Its name.
    pub image: String,
    /// What nodes have before; absent for a new image, and against a target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<Locked>,
    /// What nodes have after; absent for one that is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<Locked>,
    /// The most that one node pulls, by platform.
    pub pull: Vec<Pull>,
}

/// A reference and its digest.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Locked {
    /// The reference.
    pub reference: String,
    /// Its digest; absent when it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// What a node of a platform pulls.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pull {
    /// The platform: `linux/amd64`.
    pub platform: String,
    /// Compressed bytes.
    pub bytes: u64,
}

/// A change of an image's hold.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hold {
    /// Its environment: `tenant/name`.
    pub environment: String,
    /// The image.
    pub image: String,
    /// Where it is held, or was until now.
    pub at: Locked,
    /// Why; absent when it is released.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What is to be known about an environment though nothing is wrong.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Note {
    /// Which one: `tenant/name`.
    pub environment: String,
    /// What it is.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Plan {
    /// What changes between two revisions.
    pub(in crate::cli) fn between(from: Revision, to: Revision, review: &review::Review) -> Self {
        let object = |change: &review::ObjectChange| object(&change.id, &change.owner, change.action, &change.diff);
        let count = |action| review.count(action);
        Self {
            from: Some(from),
            to,
            environments: review.environments.iter().map(|change| environment(review, change)).collect(),
            images: review.images.iter().map(Image::from).collect(),
            holds: review.holds.iter().map(Hold::from).collect(),
            notes: Vec::new(),
            shared: review.shared.clone(),
            existing_problems: review.former_problems,
            effect: Effect {
                summary: Summary {
                    create: count(plan::Action::Create),
                    change: count(plan::Action::Configure),
                    delete: count(plan::Action::Delete),
                    unknown_digests: review.unknown_digests(),
                },
                objects: review.objects.iter().filter_map(object).collect(),
                problems: review.problems.iter().map(Problem::error).collect(),
                blocked: review.blocked.as_ref().map(Blocked::from),
            },
            server: review.server.as_ref().map(Effect::from),
        }
    }
}

impl From<&plan::Plan> for Effect {
    fn from(plan: &plan::Plan) -> Self {
        let object = |change: &plan::Change| object(&change.id, &change.owner, change.action, &change.diff);
        Self {
            summary: Summary {
                create: plan.count(plan::Action::Create),
                change: plan.count(plan::Action::Configure),
                delete: plan.count(plan::Action::Delete),
                unknown_digests: 0,
            },
            objects: plan.changes.iter().filter_map(object).collect(),
            problems: plan.failures.iter().flat_map(|(owner, failure)| Problem::of(owner, failure)).collect(),
            blocked: plan.blocked.as_ref().map(Blocked::from),
        }
    }
}

fn object(id: &ObjectId, owner: &Owner, action: plan::Action, diff: &str) -> Option<Object> {
    let action = match action {
        plan::Action::Create => Action::Create,
        plan::Action::Configure => Action::Change,
        plan::Action::Delete => Action::Delete,
        plan::Action::Unchanged => return None,
    };
    Some(Object {
        kind: id.kind.to_string(),
        namespace: (!id.namespace.is_empty()).then(|| id.namespace.clone()),
        name: id.name.clone(),
        owner: owner.to_string(),
        action,
        diff: diff.to_owned(),
    })
}

fn environment(review: &review::Review, change: &review::EnvironmentChange) -> Environment {
    let (selection, pool) = match &change.nodes {
        review::Nodes::Pool(pool) => (Selection::Pool, Some(pool.clone())),
        review::Nodes::All => (Selection::All, None),
        review::Nodes::Selected => (Selection::Own, None),
        review::Nodes::Unknown => (Selection::Unknown, None),
    };
    Environment {
        environment: change.id.to_string(),
        change: match &change.kind {
            review::EnvironmentChangeKind::Added => EnvironmentChange::Added,
            review::EnvironmentChangeKind::Changed => EnvironmentChange::Changed,
            review::EnvironmentChangeKind::Renamed(_) => EnvironmentChange::Renamed,
            review::EnvironmentChangeKind::Removed => EnvironmentChange::Removed,
            review::EnvironmentChangeKind::Broken => EnvironmentChange::Broken,
            review::EnvironmentChangeKind::Repaired => EnvironmentChange::Repaired,
        },
        renamed_from: match &change.kind {
            review::EnvironmentChangeKind::Renamed(from) => Some(from.to_string()),
            _ => None,
        },
        parts: change.parts.iter().map(|&part| part.to_owned()).collect(),
        nodes: Nodes { selection, pool, count: review.nodes.get(&change.id).copied() },
    }
}

fn locked(reference: &ImageReference, digest: Option<&Digest>) -> Locked {
    Locked { reference: reference.to_string(), digest: digest.map(Digest::to_string) }
}

impl From<&review::ImageChange> for Image {
    fn from(change: &review::ImageChange) -> Self {
        let side = |held: &review::Held| locked(&held.reference, held.digest.as_ref());
        let pull = |pull: &review::Pull| Pull { platform: pull.platform.to_string(), bytes: pull.bytes };
        Self {
            environment: change.environment.to_string(),
            image: change.image.to_string(),
            old: change.old.as_ref().map(side),
            new: change.new.as_ref().map(side),
            pull: change.pull.iter().map(pull).collect(),
        }
    }
}

impl From<&HoldChange> for Hold {
    fn from(change: &HoldChange) -> Self {
        Self {
            environment: change.environment.to_string(),
            image: change.image.to_string(),
            at: locked(&change.at.reference, Some(&change.at.digest)),
            reason: change.reason().map(str::to_owned),
        }
    }
}

impl From<&plan::Blocked> for Blocked {
    fn from(blocked: &plan::Blocked) -> Self {
        Self {
            environments: blocked.environments.iter().map(EnvironmentId::to_string).collect(),
            problem: Problem::error(&blocked.problem),
        }
    }
}
