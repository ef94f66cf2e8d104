//! Registries: which digest does a reference name?
//!
//! [`RegistryClient::resolve_all`] asks one HEAD for each distinct question, at most 16 at a time at one host, and GETs
//! only where the HEAD leaves something open or the digest is new. Mirrors are asked before the registry itself.
//! Credentials come through the port [`Credentials`] and are chosen by the kubelet's rule ([`Keyring`]).

mod challenge;
mod counters;
mod credentials;
mod docker_config;
mod endpoint;
mod error;
mod keyring;
mod manifest;
mod resolve;
mod retry;
mod session;
#[cfg(test)]
mod tests;
mod token;
mod transport;

use std::{collections::BTreeMap, fmt, sync::Arc};

use futures::{StreamExt as _, stream::FuturesUnordered};

pub use self::{
    counters::{RemainingQuota, RequestCounts},
    credentials::{ControllerCredentials, Credentials},
    docker_config::DockerConfigError,
    keyring::{Credential, Keyring},
};
use self::{
    credentials::Keyrings,
    endpoint::Endpoint,
    error::{Kind, RegistryError},
    session::{Authentication, Session},
    transport::Transport,
};
use crate::model::{
    digest::Digest,
    failure::{Category, Failure, Problem},
    reference::{DOCKER_HUB, ImageReference},
    registries::Registries,
    resolution::{CredentialSource, Request, RequestKey, Resolution, ResolvedImage},
};

/// Asks registries. Keeps connections, tokens and rate limits between passes, so it is made once for a `larder.yaml`.
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

    /// Answers all requests; the same question is asked once. One's failure never stops another.
    pub async fn resolve_all(&self, requests: Vec<Request>, credentials: &impl Credentials) -> Resolution {
        self.authentication.tidy();
        self.transport.begin();
        let mut questions: BTreeMap<RequestKey, Option<Digest>> = BTreeMap::new();
        for request in requests {
            let known = questions.entry(request.key()).or_insert_with(|| request.known.clone());
            // Who knows another digest, or none, needs the whole answer.
            if *known != request.known {
                *known = None;
            }
        }
        let keyrings = Keyrings::new(credentials);
        let asked: FuturesUnordered<_> = questions
            .into_iter()
            .map(|(key, known)| {
                let keyrings = &keyrings;
                async move {
                    let answer = self.ask(&key, known.as_ref(), keyrings).await;
                    (key, answer)
                }
            })
            .collect();
        let resolution = asked.collect().await;
        self.authentication.tidy();
        resolution
    }

    /// Answers one request.
    ///
    /// # Errors
    /// When no place has a usable answer; the failure says whether credentials, the reference or the registry are at fault.
    pub async fn resolve(&self, request: Request, credentials: &impl Credentials) -> Result<ResolvedImage, Failure> {
        self.ask(&request.key(), request.known.as_ref(), &Keyrings::new(credentials)).await
    }

    /// Requests sent so far, for metrics.
    pub fn request_counts(&self) -> RequestCounts {
        self.transport.counters.requests()
    }

    /// What hosts said last about the requests that they still allow, for metrics.
    pub fn remaining_quota(&self) -> RemainingQuota {
        self.transport.counters.remaining()
    }

    /// Mirrors in their order, then the registry itself.
    async fn ask<C: Credentials>(
        &self,
        key: &RequestKey,
        known: Option<&Digest>,
        keyrings: &Keyrings<'_, C>,
    ) -> Result<ResolvedImage, Failure> {
        let reference = &key.reference;
        let mut noted = Vec::new();
        let mut last = None;
        for endpoint in Endpoint::all(&self.registries, reference) {
            match self.ask_at(&endpoint, reference, known, &key.credentials, keyrings).await? {
                Ok(mut image) => {
                    image.warnings.extend(self.unusable_secret(key, keyrings).await);
                    tracing::debug!(%reference, host = endpoint.host, digest = %image.digest, "resolved");
                    return Ok(image);
                }
                Err(error) if endpoint.is_mirror => {
                    let said = error.of_mirror();
                    tracing::warn!(%reference, mirror = endpoint.host, "the next place is asked: {said}");
                    noted.push(said);
                }
                Err(error) => last = Some(error),
            }
        }
        let Some(error) = last else {
            return Err(Problem::new(Category::Registry, format!("`{reference}` has no registry")).into());
        };
        let near_miss = match error.kind {
            Kind::Unauthenticated => self.why_no_credential(key, keyrings).await,
            _ => None,
        };
        Err(error.into_problem(reference, &noted, near_miss).into())
    }

    /// That the nodes have no credential for an image that names a pull secret. It may be public, so that it was resolved
    /// nevertheless; but whoever named the Secret expects that it is used.
    async fn unusable_secret<C: Credentials>(&self, key: &RequestKey, keyrings: &Keyrings<'_, C>) -> Option<Problem> {
        let CredentialSource::Secrets { namespace, names } = &key.credentials else { return None };
        let message = keyrings.get(&key.credentials, false).await.ok()?.unusable(&key.reference)?;
        let server = match key.reference.host() {
            DOCKER_HUB => "https://index.docker.io/v1/",
            host => host,
        };
        Some(Problem::new(Category::Credentials, message).hint(format!(
            "make it with `kubectl --namespace {namespace} create secret docker-registry {} --docker-server={server} \
             --docker-username=… --docker-password=…`; if the image is public, leave `pullSecret` out",
            names.join(" ")
        )))
    }

    /// What the keyring has to say when no credential of it was used.
    async fn why_no_credential<C: Credentials>(&self, key: &RequestKey, keyrings: &Keyrings<'_, C>) -> Option<String> {
        let keyring = keyrings.get(&key.credentials, true).await.ok()?;
        let said = keyring.near_miss(&key.reference).into_iter().chain(keyring.warnings().iter().cloned());
        Some(said.collect::<Vec<_>>().join("; ")).filter(|said| !said.is_empty())
    }

    /// All matching credentials in turn; after a refusal once more with what the source holds now. The outer error is
    /// that the source cannot be read.
    async fn ask_at<C: Credentials>(
        &self,
        endpoint: &Endpoint,
        reference: &ImageReference,
        known: Option<&Digest>,
        source: &CredentialSource,
        keyrings: &Keyrings<'_, C>,
    ) -> Result<Result<ResolvedImage, RegistryError>, Failure> {
        let first = keyrings.get(source, false).await?;
        let first = first.lookup(&endpoint.options_of, &endpoint.path);
        let result = self.ask_with(endpoint, reference, known, &first).await;
        match &result {
            Err(error) if matches!(error.kind, Kind::Refused | Kind::Unauthenticated) => {}
            _ => return Ok(result),
        }
        let now = keyrings.get(source, true).await?;
        let now = now.lookup(&endpoint.options_of, &endpoint.path);
        if now == first { Ok(result) } else { Ok(self.ask_with(endpoint, reference, known, &now).await) }
    }

    /// The first success; else the last failure. Without credentials it is asked once, anonymously.
    async fn ask_with(
        &self,
        endpoint: &Endpoint,
        reference: &ImageReference,
        known: Option<&Digest>,
        credentials: &[&Arc<Credential>],
    ) -> Result<ResolvedImage, RegistryError> {
        let session = |credential| Session {
            transport: &self.transport,
            authentication: &self.authentication,
            endpoint,
            credential,
        };
        let Some((last, others)) = credentials.split_last() else {
            return resolve::resolve(&session(None), reference, known).await;
        };
        for credential in others {
            match resolve::resolve(&session(Some(credential)), reference, known).await {
                // A repository that one may not see is often said not to exist.
                Err(error) if matches!(error.kind, Kind::Refused | Kind::Unauthenticated | Kind::NotFound) => {}
                result => return result,
            }
        }
        resolve::resolve(&session(Some(last)), reference, known).await
    }
}

impl fmt::Debug for RegistryClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistryClient").field("registries", &self.registries).finish_non_exhaustive()
    }
}
