//! The target that the flags name: a cluster or a directory.

use std::fmt;

use tokio_util::sync::CancellationToken;

use super::{
    cluster::{Cluster, KubeCluster},
    directory::Directory,
};
use crate::model::{
    failure::Problem,
    manifest::{Comparison, Inventory, Manifest, ObjectId},
    status::Status,
};

/// A cluster or a directory.
#[derive(Clone)]
pub enum AnyTarget {
    /// An API server.
    Kube(KubeCluster),
    /// A directory of manifests.
    Directory(Directory),
}

impl AnyTarget {
    /// Watches a cluster's objects of ours from now on; a directory is re-read at each pass.
    pub async fn watch(&self, shutdown: &CancellationToken) {
        match self {
            Self::Kube(cluster) => cluster.watch(shutdown).await,
            Self::Directory(_) => {}
        }
    }
}

impl fmt::Display for AnyTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kube(_) => f.write_str("cluster"),
            Self::Directory(directory) => write!(f, "dir:{}", directory.root().display()),
        }
    }
}

impl Cluster for AnyTarget {
    async fn inventory(&self) -> Result<Inventory, Problem> {
        match self {
            Self::Kube(cluster) => cluster.inventory().await,
            Self::Directory(directory) => directory.inventory().await,
        }
    }

    async fn compare(&self, manifest: &Manifest) -> Result<Comparison, Problem> {
        match self {
            Self::Kube(cluster) => cluster.compare(manifest).await,
            Self::Directory(directory) => directory.compare(manifest).await,
        }
    }

    async fn apply(&self, manifest: &Manifest) -> Result<(), Problem> {
        match self {
            Self::Kube(cluster) => cluster.apply(manifest).await,
            Self::Directory(directory) => directory.apply(manifest).await,
        }
    }

    async fn delete(&self, id: &ObjectId, uid: &str) -> Result<(), Problem> {
        match self {
            Self::Kube(cluster) => cluster.delete(id, uid).await,
            Self::Directory(directory) => directory.delete(id, uid).await,
        }
    }

    async fn publish(&self, status: &Status) -> Result<(), Problem> {
        match self {
            Self::Kube(cluster) => cluster.publish(status).await,
            Self::Directory(directory) => directory.publish(status).await,
        }
    }

    fn has_nodes(&self) -> bool {
        match self {
            Self::Kube(cluster) => cluster.has_nodes(),
            Self::Directory(directory) => directory.has_nodes(),
        }
    }

    async fn accepted(&self) -> Result<Option<String>, Problem> {
        match self {
            Self::Kube(cluster) => cluster.accepted().await,
            Self::Directory(directory) => directory.accepted().await,
        }
    }

    async fn accept(&self, commit: &str) -> Result<(), Problem> {
        match self {
            Self::Kube(cluster) => cluster.accept(commit).await,
            Self::Directory(directory) => directory.accept(commit).await,
        }
    }

    fn how_to_accept(&self, commit: &str) -> String {
        match self {
            Self::Kube(cluster) => cluster.how_to_accept(commit),
            Self::Directory(directory) => directory.how_to_accept(commit),
        }
    }

    fn requests(&self) -> u64 {
        match self {
            Self::Kube(cluster) => cluster.requests(),
            Self::Directory(directory) => directory.requests(),
        }
    }

    fn has_drifted(&self) -> bool {
        match self {
            Self::Kube(cluster) => cluster.has_drifted(),
            Self::Directory(directory) => directory.has_drifted(),
        }
    }

    async fn drifted(&self) {
        match self {
            Self::Kube(cluster) => cluster.drifted().await,
            Self::Directory(directory) => directory.drifted().await,
        }
    }

    async fn server_version(&self) -> Option<(u32, u32)> {
        match self {
            Self::Kube(cluster) => cluster.server_version().await,
            Self::Directory(directory) => directory.server_version().await,
        }
    }
}
