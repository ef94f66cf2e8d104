//! The questions of one pass: bounded in number and in time, host by host.

use std::{
    sync::atomic::AtomicUsize,
    time::{Duration, Instant},
};

use futures::{Stream, StreamExt as _, stream};

use super::{
    RegistryClient,
    credentials::{Credentials, Keyrings},
    endpoint::Endpoint,
    error::Kind,
    evidence::Walk,
    fetch::{Got, Wanted},
    places::{Lost, Places},
};
use crate::model::{
    failure::{Category, Failure, Problem},
    reference::DOCKER_HUB,
    resolution::{Answer, CredentialSource, Lookup, Outcome, Question},
};

/// Questions to one registry that are under way at the same time.
const CONCURRENCY: usize = 16;

/// How long registries may take. A resolving step as a whole takes no longer than both together: what is known by then
/// is locked and applied, the rest is asked in the next pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// For one question, with all its requests at all mirrors.
    pub question: Duration,
    /// For one registry: once this has passed, no more of its questions begin.
    pub registry: Duration,
}

impl Patience {
    /// In a pass, which others wait for.
    pub const PASS: Self = Self { question: Duration::from_secs(15), registry: Duration::from_secs(10) };

    /// Where someone wants all answers.
    pub const WHOLE: Self = Self { question: Duration::from_secs(60), registry: Duration::MAX };
}

/// One pass that asks. Each source of credentials is read once, and once more after a refusal.
pub struct Asking<'a, C> {
    client: &'a RegistryClient,
    keyrings: Keyrings<'a, C>,
    patience: Patience,
    begun: Instant,
}

impl<'a, C: Credentials> Asking<'a, C> {
    pub(super) fn new(client: &'a RegistryClient, credentials: &'a C, patience: Patience) -> Self {
        Self { client, keyrings: Keyrings::new(credentials), patience, begun: Instant::now() }
    }

    /// Asks one registry. What became of each question comes as soon as it is known.
    pub fn ask(&self, questions: Vec<Question>) -> impl Stream<Item = (Question, Outcome)> + Unpin {
        let ask = move |question: Question| async move {
            if self.begun.elapsed() >= self.patience.registry {
                return (question, Outcome::NotAsked);
            }
            let outcome = match self.answer(&question).await {
                Ok(answer) => Outcome::Answered(answer),
                Err(failure) => Outcome::Failed(failure),
            };
            (question, outcome)
        };
        Box::pin(stream::iter(questions).map(ask).buffer_unordered(CONCURRENCY))
    }

    async fn answer(&self, question: &Question) -> Result<Answer, Failure> {
        let lookup = question.lookup();
        let places = Places {
            client: self.client,
            keyrings: &self.keyrings,
            source: &lookup.credentials,
            endpoints: Endpoint::all(&self.client.registries, &lookup.reference),
            deadline: Instant::now() + self.patience.question,
            preferred: AtomicUsize::new(0),
        };
        let answer = match question {
            Question::Digest(lookup) => match places.fetch(Wanted::Digest(&lookup.reference)).await {
                Ok(Got::Digest(digest)) => {
                    let warnings = self.unusable_secret(lookup).await.into_iter().collect();
                    Ok(Answer::Digest { digest, warnings })
                }
                Ok(_) => Err(places.invalid("it gives no digest")),
                Err(lost) => Err(lost),
            },
            Question::Evidence { digest, .. } => Walk::new(places).evidence(digest).await.map(Answer::Evidence),
        };
        match answer {
            Ok(answer) => Ok(answer),
            Err(Lost::Source(failure)) => Err(failure),
            Err(Lost::Everywhere { last, before }) => {
                let near_miss = match last.kind {
                    Kind::Unauthenticated | Kind::Refused => self.why_no_credential(lookup).await,
                    _ => None,
                };
                Err(last.into_problem(&lookup.reference, &before, near_miss).into())
            }
        }
    }

    /// That the nodes have no credential for an image that names a pull secret. It may be public, so that it was resolved
    /// nevertheless; but a Secret that is named is expected to be used.
    async fn unusable_secret(&self, lookup: &Lookup) -> Option<Problem> {
        let CredentialSource::Secrets { namespace, names } = &lookup.credentials else { return None };
        let message = self.keyrings.get(&lookup.credentials, false).await.ok()?.unusable(&lookup.reference)?;
        let server = match lookup.reference.host() {
            DOCKER_HUB => "https://index.docker.io/v1/",
            host => host,
        };
        Some(Problem::new(Category::Credentials, message).hint(format!(
            "create it with `kubectl --namespace {namespace} create secret docker-registry {} --docker-server={server} \
             --docker-username=… --docker-password=…`; if the image is public, leave `pullSecret` out",
            names.join(" ")
        )))
    }

    /// What the keyring has to say when no credential of it was good enough.
    async fn why_no_credential(&self, lookup: &Lookup) -> Option<String> {
        let keyring = self.keyrings.get(&lookup.credentials, true).await.ok()?;
        let said = keyring
            .used(&lookup.reference)
            .into_iter()
            .chain(keyring.unusable(&lookup.reference))
            .chain(keyring.near_miss(&lookup.reference))
            .chain(keyring.warnings().iter().cloned());
        let mut distinct: Vec<String> = Vec::new();
        for text in said {
            if !distinct.iter().any(|known| known.contains(&text)) {
                distinct.push(text);
            }
        }
        Some(distinct.join("; ")).filter(|said| !said.is_empty())
    }
}
