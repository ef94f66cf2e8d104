//! larder keeps every Kubernetes node stocked with the container images that its environments need.
//!
//! ```text
//! Git repository of environment files ──► specs ──► digests ──► lockfiles committed back
//!                                                                     │ (only what is in Git goes on)
//! nodes ◄── DaemonSets, ConfigMaps, Secret references ◄── server-side apply ◄── diff ◄── manifests
//!   └────────────► which node holds which digest ──► status, metrics
//! ```
//!
//! Modules in reading order: [`model`] (plain data), [`stages`] (pure decisions), [`io`] (whatever blocks), [`pipeline`]
//! (one pass), [`controller`] (when a pass runs),
//! [`wake`] (news for it), [`local`] (a repository on this machine is watched), [`announce`] (commit statuses),
//! [`server`] (health, metrics, webhooks), [`cli`] (the verbs).

pub mod announce;
pub mod cli;
pub mod config;
pub mod controller;
pub mod diagnostics;
mod example;
pub mod io;
pub mod local;
pub mod model;
pub mod pipeline;
pub mod reference;
pub mod server;
pub mod stages;
pub mod wake;
