//! What a cluster shows of pullers, their pods and their nodes.

use std::collections::BTreeMap;

use super::manifest::{ObjectId, Owner};

/// All that coverage is judged by, taken at about the same time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// Our pullers.
    pub pullers: Vec<PullerState>,
    /// Their pods.
    pub pods: Vec<PullerPod>,
    /// All nodes by name.
    pub nodes: BTreeMap<String, NodeCondition>,
}

/// A puller's DaemonSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullerState {
    /// Which object.
    pub id: ObjectId,
    /// Its uid, which its pods name.
    pub uid: String,
    /// For whom it was made.
    pub owner: Owner,
    /// The value of [`MANIFEST_ANNOTATION`](super::manifest::MANIFEST_ANNOTATION).
    pub manifest: String,
    /// Whether the DaemonSet controller has seen its present specification.
    pub observed: bool,
    /// Nodes that should run a pod of it (`desiredNumberScheduled`).
    pub desired: usize,
    /// The images of its pod template.
    pub images: Vec<String>,
}

/// A pod of a puller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullerPod {
    /// The uid of its DaemonSet.
    pub puller: String,
    /// The node it runs on, or the one it is meant for.
    pub node: String,
    /// Why no node takes it.
    pub unschedulable: Option<String>,
    /// Whether it is being deleted.
    pub terminating: bool,
    /// Its images, by the texts of its specification.
    pub images: Vec<PodImage>,
}

/// An image of a pod: of a container, an init container or a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodImage {
    /// The image, as the pod's specification has it. What the status says may be another name of the same content.
    pub image: String,
    /// How far it has come.
    pub progress: Progress,
}

/// How far a container (or a volume's image) has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The kubelet has not said anything yet, or is at work.
    Pending,
    /// It has started, or has ended well: its image is there.
    Started,
    /// It cannot be pulled or run, with the kubelet's message.
    Failed(String),
    /// It waits for another container of the pod, which cannot be pulled or run.
    Blocked {
        /// That container's image, as the pod's specification has it.
        image: String,
        /// The kubelet's message about it.
        message: String,
    },
}

/// Whether a node can take up images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeCondition {
    /// It can.
    Ready,
    /// Nothing new is scheduled to it, but for pods of DaemonSets.
    Cordoned,
    /// Its kubelet does not answer or says that it is not ready; with its words.
    NotReady(String),
}

/// What decides whether a pod may run on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeTraits {
    /// The node's labels.
    pub labels: BTreeMap<String, String>,
    /// The node's taints.
    pub taints: Vec<Taint>,
}

/// A `core/v1` Taint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taint {
    /// Its key.
    pub key: String,
    /// Its value; empty where it has none.
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}
