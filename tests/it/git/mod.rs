//! The environment repository in Git, against real repositories, a real `git http-backend` and a real sshd.

mod branches;
mod cache;
mod history;
mod hooks;
mod http;
mod local;
pub mod server;
mod side;
pub mod signatures;
mod ssh;
mod trace;
mod trees;
pub mod world;
