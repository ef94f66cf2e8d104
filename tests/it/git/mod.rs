//! The environment repository in Git, against real repositories, a real `git http-backend` and a real sshd.

mod branches;
mod cache;
mod history;
mod hooks;
mod http;
mod local;
mod server;
mod side;
mod ssh;
mod trees;
mod world;
