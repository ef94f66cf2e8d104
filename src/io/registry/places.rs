//! The places of one repository, asked in turn: mirrors, then the registry itself.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use super::{
    RegistryClient,
    credentials::{Credentials, Keyrings},
    endpoint::Endpoint,
    error::{Kind, RegistryError},
    fetch::{Got, Wanted, fetch},
    keyring::Credential,
    session::Session,
};
use crate::model::{failure::Failure, resolution::CredentialSource};

/// The places of one repository, and until when its question may take.
pub(super) struct Places<'a, C> {
    pub(super) client: &'a RegistryClient,
    pub(super) keyrings: &'a Keyrings<'a, C>,
    pub(super) source: &'a CredentialSource,
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) deadline: Instant,
    /// The place that answered last; it is asked first.
    pub(super) preferred: AtomicUsize,
}

/// Why no place had a usable answer.
pub(super) enum Lost {
    /// The credentials cannot be read.
    Source(Failure),
    /// All places failed: the one whose failure counts, and the others before it.
    Everywhere { last: RegistryError, before: Vec<RegistryError> },
}

impl<C: Credentials> Places<'_, C> {
    /// The first usable answer. What counts if there is none is the registry's own failure; but that it cannot be
    /// reached says less than a mirror that knows of no such image.
    pub(super) async fn fetch(&self, wanted: Wanted<'_>) -> Result<Got, Lost> {
        let count = self.endpoints.len();
        let preferred = self.preferred.load(Ordering::Relaxed);
        let others = (0..count).filter(|at| *at != preferred);
        let mut failures: Vec<(usize, RegistryError)> = Vec::new();
        for (turn, at) in std::iter::once(preferred).chain(others).enumerate() {
            let Some(endpoint) = self.endpoints.get(at) else { continue };
            let left = self.deadline.saturating_duration_since(Instant::now());
            // A place that hangs must leave time for the next one.
            let share = left / u32::try_from(count - turn).unwrap_or(1).max(1);
            let result = match tokio::time::timeout(share, self.at(endpoint, wanted)).await {
                Ok(result) => result.map_err(Lost::Source)?,
                Err(_) => Err(self.client.transport.silent(&endpoint.host)),
            };
            match result {
                Ok(got) => {
                    self.preferred.store(at, Ordering::Relaxed);
                    return Ok(got);
                }
                Err(error) => {
                    if endpoint.is_mirror {
                        tracing::warn!(mirror = endpoint.host, %error, "mirror failed, falling back to the next endpoint");
                    }
                    failures.push((at, error));
                }
            }
        }
        failures.sort_by_key(|(at, _)| *at);
        let mut failures: Vec<RegistryError> = failures.into_iter().map(|(_, error)| error).collect();
        let missing = failures.iter().position(|error| error.kind == Kind::NotFound);
        let last = match (failures.last(), missing) {
            (Some(own), Some(missing)) if own.kind == Kind::Unreachable => failures.remove(missing),
            _ => match failures.pop() {
                Some(own) => own,
                None => RegistryError::new(Kind::Unreachable, "", "there is no place to ask"),
            },
        };
        Err(Lost::Everywhere { last, before: failures })
    }

    /// That the registry says something that cannot be right.
    pub(super) fn invalid(&self, message: &str) -> Lost {
        let host = self.endpoints.last().map(|endpoint| endpoint.host.as_str()).unwrap_or_default();
        Lost::Everywhere { last: RegistryError::new(Kind::Invalid, host, message), before: Vec::new() }
    }

    /// All matching credentials in turn; after a refusal once more with what the source holds now. The outer error is
    /// that the source cannot be read.
    async fn at(&self, endpoint: &Endpoint, wanted: Wanted<'_>) -> Result<Result<Got, RegistryError>, Failure> {
        let first = self.keyrings.get(self.source, false).await?;
        let first = first.lookup(&endpoint.options_of, &endpoint.path);
        let result = self.with(endpoint, wanted, &first).await;
        match &result {
            Err(error) if matches!(error.kind, Kind::Refused | Kind::Unauthenticated) => {}
            _ => return Ok(result),
        }
        let now = self.keyrings.get(self.source, true).await?;
        let now = now.lookup(&endpoint.options_of, &endpoint.path);
        if now == first { Ok(result) } else { Ok(self.with(endpoint, wanted, &now).await) }
    }

    /// The first success; else the last failure. Without credentials it is asked once, anonymously.
    async fn with(
        &self,
        endpoint: &Endpoint,
        wanted: Wanted<'_>,
        credentials: &[&Arc<Credential>],
    ) -> Result<Got, RegistryError> {
        let session = |credential| Session {
            transport: &self.client.transport,
            authentication: &self.client.authentication,
            endpoint,
            credential,
        };
        let Some((last, others)) = credentials.split_last() else {
            return fetch(&session(None), wanted).await;
        };
        for credential in others {
            match fetch(&session(Some(credential)), wanted).await {
                // A repository that one may not see is often said not to exist.
                Err(error) if matches!(error.kind, Kind::Refused | Kind::Unauthenticated | Kind::NotFound) => {}
                result => return result,
            }
        }
        fetch(&session(Some(last)), wanted).await
    }
}
