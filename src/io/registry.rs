//! Registries: which digest does a reference name, and what is it?
//!
//! [`Asking::ask`] answers questions, at most 16 at a time at one host: one HEAD for a digest, GETs only for evidence and
//! where the HEAD leaves something open. Mirrors are asked before the registry itself.
//! Credentials come through the port [`Credentials`] and are chosen by the kubelet's rule ([`Keyring`]).

mod asking;
mod challenge;
mod counters;
mod credentials;
mod docker_config;
mod endpoint;
mod error;
mod evidence;
mod fetch;
mod keyring;
mod manifest;
mod places;
mod session;
#[cfg(test)]
mod tests;
mod token;
mod transport;

use std::fmt;

pub use self::{
    asking::{Asking, Patience},
    counters::{RemainingQuota, RequestCounts},
    credentials::Credentials,
    docker_config::DockerConfigError,
    keyring::{Credential, Keyring},
};
use self::{session::Authentication, transport::Transport};
use crate::model::{
    failure::{Category, Failure, Problem},
    registries::Registries,
};

/// Asks registries. Keeps connections, tokens and rate limits between passes, so it is created once for a `larder.yaml`.
pub struct RegistryClient {
    registries: Registries,
    transport: Transport,
    authentication: Authentication,
}

impl RegistryClient {
    /// A client for these registries. An authority that cannot be read is a failure of its registry's images alone.
    ///
    /// # Errors
    /// When the process has no provider of cryptography: `main` installs one.
    pub fn new(registries: &Registries) -> Result<Self, Failure> {
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            return Err(Problem::new(Category::Registry, "no provider of cryptography is installed in this process")
                .hint("this is a fault of larder; report it")
                .into());
        }
        Ok(Self {
            registries: registries.clone(),
            transport: Transport::new(registries),
            authentication: Authentication::default(),
        })
    }

    /// Begins to ask for one pass. A registry that was given up in the last one gets another chance.
    pub fn begin<'a, C: Credentials>(&'a self, credentials: &'a C, patience: Patience) -> Asking<'a, C> {
        self.authentication.tidy();
        self.transport.begin();
        Asking::new(self, credentials, patience)
    }

    /// Requests sent so far, for metrics.
    pub fn request_counts(&self) -> RequestCounts {
        self.transport.counters.requests()
    }

    /// What hosts said last about the requests that they still allow, for metrics.
    pub fn remaining_quota(&self) -> RemainingQuota {
        self.transport.counters.remaining()
    }
}

impl fmt::Debug for RegistryClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistryClient").field("registries", &self.registries).finish_non_exhaustive()
    }
}
