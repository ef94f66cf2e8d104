//! The environment repository in Git, against real repositories, a real `git http-backend` and a real sshd.

mod http;
mod local;
mod server;
mod world;
