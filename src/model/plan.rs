//! What would be done to the target, complete: carrying it out decides nothing.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    failure::{Category, Failure, Problem},
    manifest::{Manifest, ObjectId, Owner},
    name::EnvironmentId,
};

/// What happens to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// It is made.
    Create,
    /// Some of its fields change.
    Configure,
    /// It is as it should be: no request is sent.
    Unchanged,
    /// It is deleted.
    Delete,
}

/// What the comparison of a manifest with the target comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What must happen.
    pub action: Action,
    /// The diff, as [`Change`] has it.
    pub diff: String,
}

/// One object's part of a plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Which object.
    pub id: ObjectId,
    /// For whom.
    pub owner: Owner,
    /// What happens to it.
    pub action: Action,
    /// A unified diff of the YAML before and after, without Secrets' values; empty when unchanged.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub diff: String,
    /// What is sent; none when nothing is.
    #[serde(skip)]
    pub manifest: Option<Manifest>,
    /// The uid that the object must have, for a delete.
    #[serde(skip)]
    pub uid: String,
}

/// What would be done, in the order in which it would be done: creates and changes by [`ObjectId`], then deletes in
/// the reverse order.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Plan {
    /// Each object's part.
    pub changes: Vec<Change>,
    /// Owners of whose objects nothing is touched, and why; also those whose deleted objects are still there.
    pub failures: BTreeMap<Owner, Failure>,
    /// Environments that are gone from Git, but stay because the budget does not allow their removal.
    pub blocked: Option<Blocked>,
}

impl Plan {
    /// Whether carrying it out would send anything.
    pub fn is_empty(&self) -> bool {
        self.changes.iter().all(|change| change.action == Action::Unchanged)
    }

    /// How many objects have that action.
    pub fn count(&self, action: Action) -> usize {
        self.changes.iter().filter(|change| change.action == action).count()
    }
}

/// Removals that the budget stopped.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Blocked {
    /// The environments that would have been removed.
    pub environments: Vec<EnvironmentId>,
    /// Why, and how to confirm them.
    pub problem: Problem,
}

/// What became of one change.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Done.
    Done,
    /// Nothing was to be done.
    Unchanged,
    /// It failed.
    Failed(Problem),
    /// It was not tried, because something before it failed or the pass was ended.
    NotAttempted,
}

/// What became of a plan: each change (without its manifest and diff) with its outcome, in the plan's order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Applied {
    /// Each change with its outcome.
    pub outcomes: Vec<(Change, Outcome)>,
    /// See [`Plan::failures`].
    pub failures: BTreeMap<Owner, Failure>,
    /// See [`Plan::blocked`].
    pub blocked: Option<Blocked>,
}

impl Applied {
    /// Whether nothing is left that another pass on the same commit could do.
    pub fn is_complete(&self) -> bool {
        let unfinished = |outcome: &Outcome| matches!(outcome, Outcome::Failed(_) | Outcome::NotAttempted);
        let refused = |failure: &Failure| matches!(failure.category(), Category::Cluster | Category::Conflict);
        !self.outcomes.iter().any(|(_, outcome)| unfinished(outcome)) && !self.failures.values().any(refused)
    }

    /// How many objects had that action done to them.
    pub fn count(&self, action: Action) -> usize {
        let done = |outcome: &Outcome| matches!(outcome, Outcome::Done | Outcome::Unchanged);
        self.outcomes.iter().filter(|(change, outcome)| change.action == action && done(outcome)).count()
    }
}
