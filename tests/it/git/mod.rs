//! The environment repository in Git, against real repositories, a real `git http-backend`, a real Gitea and a real sshd.

mod big;
mod branches;
mod cache;
mod controller;
mod gitea;
mod history;
mod hooks;
mod http;
mod local;
pub(crate) mod proxy;
mod replaced;
pub mod server;
mod side;
pub mod signatures;
mod ssh;
pub(crate) mod tls;
mod trace;
mod trees;
pub mod world;
