//! Everything that can block: Git, directories, registries, the cluster.

pub mod cluster;
pub mod credentials;
pub mod directory;
pub mod folder;
pub mod forge;
pub mod git;
mod http;
pub(crate) mod links;
pub mod registry;
pub mod repository;
pub mod target;
pub(crate) mod walk;
pub mod watch;
pub mod worker;
