//! The target of a pass: a Kubernetes cluster, or a directory that looks like one.
//!
//! [`Cluster`] is the port, [`KubeCluster`] and [`Directory`](super::directory::Directory) are its adapters,
//! [`compare_all`] and [`carry_out`] are what a pass does with either of them.

mod apply;
mod compare;
mod connect;
mod impersonate;
mod inventory;
pub mod kube;
mod nodes;
mod observe;
mod patch;
mod path;
mod problem;
mod retry;
mod secret;
mod status;
mod store;
mod watch;

use std::future::Future;

pub use self::{apply::carry_out, compare::compare_all, connect::field_manager, kube::KubeCluster};
use crate::model::{
    failure::Problem,
    manifest::{Comparison, Inventory, Manifest, ObjectId},
    status::Status,
};

/// Requests that are under way at the same time, at most.
pub const CONCURRENCY: usize = 16;

/// What a pass needs of its target. Every error names the object and says what to do.
pub trait Cluster: Send + Sync {
    /// The objects of ours: those with our instance's label and their own identity as annotation.
    ///
    /// # Errors
    /// When it is not known; never an empty inventory instead.
    fn inventory(&self) -> impl Future<Output = Result<Inventory, Problem>> + Send;

    /// What the target holds of this manifest, and what an apply would make of it. Changes nothing.
    ///
    /// # Errors
    /// When the object exists and is not ours, when someone else has a claim on one of its fields, when it is being
    /// deleted, or when the target refuses it.
    fn compare(&self, manifest: &Manifest) -> impl Future<Output = Result<Comparison, Problem>> + Send;

    /// Writes it.
    ///
    /// # Errors
    /// As [`Cluster::compare`].
    fn apply(&self, manifest: &Manifest) -> impl Future<Output = Result<(), Problem>> + Send;

    /// Deletes the object with that uid; one that is gone is done. Namespaces are never deleted.
    ///
    /// # Errors
    /// When another object has taken its name, or when the target refuses.
    fn delete(&self, id: &ObjectId, uid: &str) -> impl Future<Output = Result<(), Problem>> + Send;

    /// Major and minor version of the Kubernetes that the manifests are for, if it is known.
    fn server_version(&self) -> impl Future<Output = Option<(u32, u32)>> + Send;

    /// Writes down a status, where `larder status` finds it.
    ///
    /// # Errors
    /// When it cannot be written.
    fn publish(&self, status: &Status) -> impl Future<Output = Result<(), Problem>> + Send;

    /// Whether it has nodes that pull images.
    fn has_nodes(&self) -> bool {
        true
    }

    /// The last commit that was accepted, where only signed commits are; none was recorded before the first pass.
    ///
    /// # Errors
    /// When it is not known.
    fn accepted(&self) -> impl Future<Output = Result<Option<String>, Problem>> + Send {
        std::future::ready(Ok(None))
    }

    /// Records the last commit that was accepted, so that it survives restarts.
    ///
    /// # Errors
    /// When it cannot be written.
    fn accept(&self, _commit: &str) -> impl Future<Output = Result<(), Problem>> + Send {
        std::future::ready(Ok(()))
    }

    /// What a person does to record a commit as accepted.
    fn how_to_accept(&self, commit: &str) -> String {
        format!("record {commit} as the last accepted commit")
    }

    /// Requests sent so far, without those of watches.
    fn requests(&self) -> u64 {
        0
    }

    /// Whether an object of ours was changed or deleted by someone else since the last [`Cluster::inventory`]. A target
    /// that is not watched never says so.
    fn has_drifted(&self) -> bool {
        false
    }

    /// Waits until [`Cluster::has_drifted`]; forever where the target is not watched.
    fn drifted(&self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }
}
