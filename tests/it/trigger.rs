//! What makes larder look: webhooks over real HTTP, a real Gitea, a real registry, and files on this machine.

mod burst;
mod gitea;
mod hooks;
mod listener;
mod local;
mod peer;
mod registry;
mod server;
