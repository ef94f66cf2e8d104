//! Integration tests, in one binary: larder's parts against real peers on this machine.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr, missing_docs)]
#![allow(clippy::disallowed_methods, reason = "tests read where the cluster is")]

mod audit;
mod cases;
mod cluster;
mod demo;
mod forge;
mod generated;
pub mod git;
mod import;
mod load;
mod lock;
mod plan;
mod registry;
mod render;
mod scenarios;
mod secret;
mod tidy;
mod trigger;
mod validate;
mod words;
