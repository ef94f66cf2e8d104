//! Pull requests, comments and commit statuses at a real Gitea, with the real two-node cluster.

mod gitea;
mod hosted;
mod plan;
mod proposals;
mod statuses;
