//! The environment repository in Git, against real repositories, a real `git http-backend`, a real Gitea and a real sshd.

mod big;
mod branches;
mod cache;
mod checked_out;
mod controller;
mod forward;
mod gitea;
mod history;
mod hooks;
mod http;
mod local;
pub(crate) mod proxy;
mod replaced;
mod revisions;
pub mod server;
mod side;
pub mod signatures;
mod ssh;
pub(crate) mod tls;
mod trace;
mod trees;
pub mod world;
