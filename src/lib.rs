//! larder keeps every Kubernetes node stocked with the container images that its environments need.
//!
//! ```text
//! Git repository of environment files ──► specs ──► digests ──► lockfiles committed back
//!                                                                     │ (only what is in Git continues)
//! nodes ◄── DaemonSets, ConfigMaps, Secret references ◄── server-side apply ◄── diff ◄── manifests
//!   └────────────► which node holds which digest ──► status, metrics
//! ```
//!
//! Modules in reading order: [`model`] (plain data), [`stages`] (pure decisions), [`io`] (whatever blocks), [`pipeline`]
//! (one pass), [`controller`] (when a pass runs; it owns the status), [`reporters`], [`metrics`] and [`server`] (who tell
//! about the status), [`wake`] and [`local`] (what triggers a pass), [`daemon`] (all of it wired together), [`cli`] (the
//! commands).

pub mod cli;
pub mod config;
pub mod controller;
pub mod daemon;
pub mod diagnostics;
mod example;
pub mod io;
pub mod local;
pub mod metrics;
pub mod model;
pub mod pipeline;
pub mod reference;
pub mod reporters;
pub mod server;
pub mod stages;
pub mod wake;
