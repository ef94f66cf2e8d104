//! How environments, tenants and the controller are doing: one value, of which everything that reports is a rendering.
//!
//! Holds no clock, so that equal passes over an unchanged world have equal status.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    digest::Digest,
    failure::Problem,
    name::{EnvironmentId, Name},
    reference::ImageReference,
};

mod published;
mod reason;

pub use self::reason::{Effect, Reason};

/// The version of the JSON form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ApiVersion {
    /// `larder.dev/v1alpha1`.
    #[default]
    #[serde(rename = "larder.dev/v1alpha1")]
    V1Alpha1,
}

/// The kind of the JSON form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Kind {
    /// A [`Status`].
    #[default]
    Status,
}

/// The status of everything that one larder takes care of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The version of this form.
    pub api_version: ApiVersion,
    /// The kind of this form.
    pub kind: Kind,
    /// The commit whose lock is described; none before the first pass and for files that are not committed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// What the last pass did to the branch.
    #[serde(default, skip_serializing_if = "LastPass::is_empty")]
    pub last_pass: LastPass,
    /// Conditions of the controller itself.
    pub conditions: Vec<Condition>,
    /// What is wrong with no environment and no tenant in particular.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Finding>,
    /// Messages about the whole although nothing is wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Finding>,
    /// Tenants whose own objects have problems.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, TenantStatus>")]
    pub tenants: BTreeMap<Name, TenantStatus>,
    /// Each environment.
    #[schemars(with = "BTreeMap<String, EnvironmentStatus>")]
    pub environments: BTreeMap<EnvironmentId, EnvironmentStatus>,
    /// What this rendering omits for lack of room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted: Option<Omitted>,
}

/// What the last pass did to the branch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastPass {
    /// The tip that it started on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tip: Option<String>,
    /// Its lock commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock_commit: Option<String>,
}

impl LastPass {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What a bounded rendering omits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Omitted {
    /// Environments.
    pub environments: usize,
    /// Problems and notes of environments and tenants that are listed.
    pub problems: usize,
}

/// The status of a tenant's own objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TenantStatus {
    /// Its conditions.
    pub conditions: Vec<Condition>,
    /// What is wrong.
    pub problems: Vec<Finding>,
}

/// The status of one environment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EnvironmentStatus {
    /// Its conditions: `Ready` always, the others only while they are true.
    pub conditions: Vec<Condition>,
    /// What is wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Finding>,
    /// Messages although nothing is wrong: images on hold, digests that are not confirmed yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Finding>,
    /// Its locked images, in order of names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageStatus>,
    /// Its nodes; none where they were not observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Nodes>,
}

/// One condition, as in [`metav1.Condition`] but for the time: equal passes have equal conditions.
///
/// [`metav1.Condition`]: https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md#typical-status-properties
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: ConditionType,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why, for programs.
    pub reason: Reason,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The commit that was looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_commit: Option<String>,
}

/// The types of conditions, as [kstatus] and Flux have them.
///
/// [kstatus]: https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConditionType {
    /// Everything is where it should be.
    Ready,
    /// Something is on its way, or is being retried.
    Reconciling,
    /// Only a person can help.
    Stalled,
    /// `suspend: true`.
    Suspended,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConditionStatus {
    /// It does.
    True,
    /// It does not.
    False,
    /// Not known.
    Unknown,
}

/// A problem or note, with the reason that it stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// What it means for the conditions.
    pub reason: Reason,
    /// The problem.
    #[serde(flatten)]
    pub problem: Problem,
}

/// One locked image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImageStatus {
    /// Its name.
    #[schemars(with = "String")]
    pub name: Name,
    /// Its reference.
    #[schemars(with = "String")]
    pub reference: ImageReference,
    /// The locked digest.
    #[schemars(with = "String")]
    pub digest: Digest,
    /// Why it is on hold; absent while it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<String>,
    /// The nodes that have it; none where they were not observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<ImageCoverage>,
}

/// The eligible nodes of one image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImageCoverage {
    /// Nodes that have the locked digest.
    pub ready: usize,
    /// Nodes that should.
    pub eligible: usize,
    /// Each node that should, by name.
    pub nodes: Vec<NodeStatus>,
}

/// One image on one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeStatus {
    /// The node's name.
    pub node: String,
    /// How far it is.
    pub state: NodeState,
    /// The kubelet's message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// How far one image is on one node: the words of Submarine's JupyterImagePuller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NodeState {
    /// Not there yet.
    Pulling,
    /// The kubelet cannot pull it or run what pulls it; it retries by itself.
    Failure,
    /// There.
    Success,
}

impl NodeState {
    /// The word for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pulling => "pulling",
            Self::Failure => "failure",
            Self::Success => "success",
        }
    }
}

/// The nodes of an environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Nodes {
    /// Whether the cluster has taken up the puller as the lock has it. While false, no image counts as ready.
    pub current: bool,
    /// Nodes of the pool that do not count, each with the reason: not ready, cordoned, no room.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ineligible: BTreeMap<String, String>,
}

/// What was observed of one environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Its nodes.
    pub nodes: Nodes,
    /// Each image by name.
    pub images: BTreeMap<Name, ImageCoverage>,
}

impl Coverage {
    /// Whether every eligible node has every image.
    pub fn is_complete(&self) -> bool {
        self.nodes.current && self.images.values().all(|image| image.ready == image.eligible)
    }
}

/// A status in one word, for tables. Derived from the conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Everything is locked and applied; nodes were not observed, or there are none.
    Applied,
    /// Every eligible node has every image.
    Warm,
    /// Nodes are still pulling, or the cluster has not taken up the newest lock yet.
    Pulling,
    /// The cluster has no puller of it.
    NotApplied,
    /// Some node cannot pull, or some image does not resolve; the rest is there.
    Degraded,
    /// Its previous objects and lockfile stay in effect.
    Failed,
    /// Suspended by its file.
    Suspended,
    /// Gone from Git, but the budget does not allow its removal.
    Blocked,
}

impl State {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "Applied",
            Self::Warm => "Warm",
            Self::Pulling => "Pulling",
            Self::NotApplied => "NotApplied",
            Self::Degraded => "Degraded",
            Self::Failed => "Failed",
            Self::Suspended => "Suspended",
            Self::Blocked => "Blocked",
        }
    }
}

/// The condition of that type among others.
fn find(conditions: &[Condition], kind: ConditionType) -> Option<&Condition> {
    conditions.iter().find(|condition| condition.kind == kind)
}

impl Finding {
    /// A finding.
    pub fn new(reason: Reason, problem: Problem) -> Self {
        Self { reason, problem }
    }
}

impl EnvironmentStatus {
    /// The reason of its `Ready` condition.
    pub fn reason(&self) -> Reason {
        find(&self.conditions, ConditionType::Ready).map_or(Reason::NoPass, |ready| ready.reason)
    }

    /// It in one word.
    pub fn state(&self) -> State {
        self.reason().state()
    }

    /// Whether a condition of that type is true.
    pub fn is(&self, kind: ConditionType) -> bool {
        find(&self.conditions, kind).is_some_and(|condition| condition.status == ConditionStatus::True)
    }

    /// Whether the environment needs nothing: it is ready, suspended, or applied where no node was observed.
    pub fn is_well(&self) -> bool {
        matches!(self.state(), State::Applied | State::Warm | State::Suspended)
    }
}

impl Status {
    /// Whether the controller has problems with this reason.
    pub fn problems_of(&self, reason: Reason) -> impl Iterator<Item = &Problem> {
        self.problems.iter().filter(move |finding| finding.reason == reason).map(|finding| &finding.problem)
    }

    /// Whether passes start, and every environment is ready or suspended.
    pub fn is_warm(&self) -> bool {
        let ready = |environment: &EnvironmentStatus| matches!(environment.state(), State::Warm | State::Suspended);
        self.problems_of(Reason::CannotStart).next().is_none() && self.environments.values().all(ready)
    }

    /// Whether waiting can help: something is being pulled or retried.
    pub fn is_reconciling(&self) -> bool {
        self.environments.values().any(|environment| environment.is(ConditionType::Reconciling))
    }
}
