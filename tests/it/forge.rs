//! Pull requests, comments and commit statuses at a real Gitea, with the real two-node cluster.

mod ci;
pub(crate) mod gitea;
pub(crate) mod hosted;
mod plan;
mod proposals;
mod signed;
mod statuses;
