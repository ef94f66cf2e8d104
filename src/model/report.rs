//! What a pass came to, and what the nodes hold.

use std::{collections::BTreeMap, ops::Sub};

use serde::{Deserialize, Serialize};

use super::{
    digest::Digest,
    failure::Problem,
    name::{EnvironmentId, Name},
    reference::ImageReference,
};

/// How an environment stands after a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Condition {
    /// All of it is locked and applied.
    Applied,
    /// It is applied, but some of its images could not be resolved (former digests stay in force), or the nodes cannot
    /// use the pull secret that is named for one.
    Degraded,
    /// Nothing of it was changed; its former objects and lockfile stay.
    Failed,
    /// It is suspended by its file.
    Suspended,
    /// It is gone from Git, but the budget does not allow its removal.
    Blocked,
}

/// What one pass came to. Holds no clock, so that equal passes have equal reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PassReport {
    /// The commit that was rendered.
    pub commit: Option<String>,
    /// The lock commit of this pass.
    pub lock_commit: Option<String>,
    /// Why the lock could not be committed: a refused push with the remote's own words.
    pub lock_problem: Option<Problem>,
    /// Why a later pass could not start; everything else is then what the last pass that could came to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cannot_start: Vec<Problem>,
    /// Files under `environments/` that belong to no environment, since their paths name none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub strays: Vec<Problem>,
    /// Where lock changes wait to be merged: the pull request's address, or the branch where there is no forge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock_proposal: Option<String>,
    /// Each environment.
    pub environments: BTreeMap<EnvironmentId, EnvironmentReport>,
    /// Tenants whose own objects failed.
    pub tenants: BTreeMap<Name, Vec<Problem>>,
    /// Why removals are blocked, and how to confirm them; which ones their [`Condition::Blocked`] says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<Problem>,
}

/// Requests that a pass has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Requests {
    /// To registries and their token services.
    pub registry: u64,
    /// To the API server, without those of watches; none for a folder.
    pub target: u64,
}

impl Sub for Requests {
    type Output = Self;

    /// What was sent since `before`; counters that began anew in between count from zero.
    fn sub(self, before: Self) -> Self {
        let since = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now);
        Self { registry: since(self.registry, before.registry), target: since(self.target, before.target) }
    }
}

/// One environment's part of a [`PassReport`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EnvironmentReport {
    /// How it stands.
    pub condition: Condition,
    /// What is wrong with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
    /// What is to be known though nothing is wrong: images that are held, and answers that have to be given again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Problem>,
}

/// How far one image has come on one node: the words of Submarine's JupyterImagePuller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeState {
    /// Not there yet.
    Pulling,
    /// There.
    Success,
    /// The kubelet could not pull it; it tries again by itself.
    Failure,
}

/// One image on one node.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeReport {
    /// The node's name.
    pub node: String,
    /// How far it has come.
    pub state: NodeState,
    /// The kubelet's own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// One image on all nodes that should hold it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageCoverage {
    /// The image's name.
    pub image: Name,
    /// Its reference.
    pub reference: ImageReference,
    /// The locked digest.
    pub digest: Digest,
    /// Nodes that hold the locked digest.
    pub ready: usize,
    /// Nodes that should.
    pub eligible: usize,
    /// Each node that should, by name.
    pub nodes: Vec<NodeReport>,
}

/// All of an environment's images on its nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Coverage {
    /// Whether the cluster has taken up the puller as it is in the lock. While false, no image counts as held.
    pub current: bool,
    /// Each image, in order of names.
    pub images: Vec<ImageCoverage>,
    /// Nodes of the pool that do not count, each with the reason: not ready, cordoned, no room.
    pub excluded: BTreeMap<String, String>,
}

impl Coverage {
    /// Whether every eligible node holds every image.
    pub fn is_warm(&self) -> bool {
        self.current && self.images.iter().all(|image| image.ready == image.eligible)
    }
}
