//! A fake registry, its content, and credentials that change.

use std::{collections::BTreeMap, sync::Mutex, time::Duration};

use futures::StreamExt as _;
use serde_json::json;
use wiremock::{Mock, MockServer, Request as Received, ResponseTemplate, matchers::any};

use crate::{
    io::registry::{Credential, Credentials, Keyring, Patience, RegistryClient},
    model::{
        digest::Digest,
        failure::{Failure, Problem},
        registries::{Registries, RegistryOptions},
        resolution::{Answer, ContentKind, CredentialSource, Lookup, Outcome, PlatformManifest, Question},
    },
};

pub(super) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub(super) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// The password that must never be seen in an error.
pub(super) const CANARY: &str = "canary-p:w";

/// A registry over plain http on a free port of this machine.
pub(super) struct Fake(MockServer);

impl Fake {
    pub(super) async fn new(respond: impl Fn(&Received) -> ResponseTemplate + Send + Sync + 'static) -> Self {
        let server = MockServer::start().await;
        Mock::given(any()).respond_with(respond).mount(&server).await;
        Self(server)
    }

    /// One that has the image under any path.
    pub(super) async fn with(image: &Image) -> Self {
        let image = image.clone();
        Self::new(move |request| image.answer(request)).await
    }

    pub(super) fn host(&self) -> String {
        self.0.address().to_string()
    }

    /// What was asked: `METHOD path`, in order.
    pub(super) async fn log(&self) -> Vec<String> {
        self.received().await.iter().map(|request| format!("{} {}", request.method, request.url.path())).collect()
    }

    pub(super) async fn received(&self) -> Vec<Received> {
        self.0.received_requests().await.unwrap()
    }

    /// How many requests had this method.
    pub(super) async fn count(&self, method: &str) -> usize {
        self.received().await.iter().filter(|request| request.method.as_str() == method).count()
    }
}

pub(super) fn header<'a>(request: &'a Received, name: &str) -> Option<&'a str> {
    request.headers.get(name).map(|value| value.to_str().unwrap())
}

pub(super) fn status(code: u16) -> ResponseTemplate {
    ResponseTemplate::new(code)
}

pub(super) fn challenge(code: &str) -> ResponseTemplate {
    status(401).append_header("WWW-Authenticate", code)
}

/// An image for two platforms, with an attestation beside.
#[derive(Clone)]
pub(super) struct Image {
    pub(super) index: Vec<u8>,
    pub(super) manifests: [Vec<u8>; 2],
    pub(super) config: Vec<u8>,
}

impl Image {
    pub(super) fn new() -> Self {
        let config = br#"{"os":"linux","architecture":"amd64"}"#.to_vec();
        let manifest = |layer: u64| {
            // Written with line ends and spaces: the bytes count, not their meaning.
            let text = serde_json::to_string_pretty(&json!({
                "schemaVersion": 2, "mediaType": MANIFEST,
                "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": Digest::sha256(&config), "size": 100},
                "layers": [
                    {"mediaType": "application/vnd.oci.image.layer.v1.tar+zstd", "digest": Digest::sha256(b"a"), "size": layer},
                    {"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": Digest::sha256(b"b"), "size": 20},
                ],
            }));
            text.unwrap().replace('\n', "\r\n").into_bytes()
        };
        let manifests = [manifest(1000), manifest(2000)];
        let entry = |manifest: &[u8], architecture: &str| json!({"mediaType": MANIFEST, "digest": Digest::sha256(manifest), "size": manifest.len(), "platform": {"os": "linux", "architecture": architecture}});
        let index = json!({
            "schemaVersion": 2, "mediaType": INDEX,
            "manifests": [
                entry(&manifests[1], "arm64"),
                entry(&manifests[0], "amd64"),
                {
                    "mediaType": MANIFEST, "digest": Digest::sha256(b"attestation"), "size": 1,
                    "platform": {"os": "unknown", "architecture": "unknown"},
                    "annotations": {"vnd.docker.reference.type": "attestation-manifest"},
                },
            ],
        });
        Self { index: serde_json::to_vec_pretty(&index).unwrap(), manifests, config }
    }

    pub(super) fn digest(&self) -> Digest {
        Digest::sha256(&self.index)
    }

    /// The answer of a registry that has this image under any tag.
    pub(super) fn answer(&self, request: &Received) -> ResponseTemplate {
        let Some((_, name)) = request.url.path().split_once("/manifests/") else {
            let found = request.url.path().ends_with(Digest::sha256(&self.config).as_str());
            return if found { status(200).set_body_bytes(self.config.clone()) } else { not_found() };
        };
        let all = [(&self.index, INDEX), (&self.manifests[0], MANIFEST), (&self.manifests[1], MANIFEST)];
        let asked = |bytes: &[u8]| Digest::sha256(bytes).as_str() == name;
        let (body, kind) = match all.iter().find(|(bytes, _)| asked(bytes)) {
            Some(found) => *found,
            None if name.contains(':') => return not_found(),
            None => all[0],
        };
        manifest(body, kind)
    }
}

pub(super) fn manifest(body: &[u8], kind: &str) -> ResponseTemplate {
    status(200).set_body_raw(body.to_vec(), kind).append_header("Docker-Content-Digest", Digest::sha256(body).as_str())
}

pub(super) fn not_found() -> ResponseTemplate {
    status(404).set_body_string(r#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}"#)
}

/// Keyrings: the first is what is cached, the second what a fresh look finds.
pub(super) struct Given {
    cached: Keyring,
    fresh: Keyring,
    pub(super) reads: Mutex<Vec<bool>>,
}

impl Given {
    pub(super) fn none() -> Self {
        Self::both(&Keyring::default())
    }

    pub(super) fn both(keyring: &Keyring) -> Self {
        Self::rotated(keyring.clone(), keyring.clone())
    }

    pub(super) fn rotated(cached: Keyring, fresh: Keyring) -> Self {
        Self { cached, fresh, reads: Mutex::default() }
    }
}

impl Credentials for Given {
    async fn keyring(&self, _: &CredentialSource, fresh: bool) -> Result<Keyring, Failure> {
        self.reads.lock().unwrap().push(fresh);
        Ok(if fresh { self.fresh.clone() } else { self.cached.clone() })
    }
}

pub(super) fn keyring(entries: &[(&str, &str, &str)]) -> Keyring {
    let mut keyring = Keyring::default();
    for (key, user, password) in entries {
        keyring.add(key, Credential::basic(*user, *password));
    }
    keyring
}

/// Options for these hosts: plain http, nothing else.
pub(super) fn plain(hosts: &[&Fake]) -> Registries {
    let options = RegistryOptions { plain_http: true, ..RegistryOptions::default() };
    Registries(hosts.iter().map(|fake| (fake.host(), options.clone())).collect())
}

pub(super) fn client(registries: &Registries) -> RegistryClient {
    let _ = rustls::crypto::ring::default_provider().install_default();
    RegistryClient::new(registries).unwrap()
}

/// A lookup, and the digest that is locked.
#[derive(Clone)]
pub(super) struct Request {
    pub(super) lookup: Lookup,
    pub(super) known: Option<Digest>,
}

/// What was found about one.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) digest: Digest,
    pub(super) media_type: String,
    pub(super) kind: Option<ContentKind>,
    /// None where the digest is the known one.
    pub(super) platforms: Option<Vec<PlatformManifest>>,
    pub(super) warnings: Vec<Problem>,
}

pub(super) fn request(reference: &str, known: Option<&Digest>) -> Request {
    let lookup = Lookup { reference: reference.parse().unwrap(), credentials: CredentialSource::Controller };
    Request { lookup, known: known.cloned() }
}

/// One question's outcome, as a result.
pub(super) async fn answer(
    client: &RegistryClient,
    question: Question,
    given: &Given,
    patience: Patience,
) -> Result<Answer, Failure> {
    let asking = client.begin(given, patience);
    let (_, outcome) = asking.ask(vec![question]).next().await.unwrap();
    match outcome {
        Outcome::Answered(answer) => Ok(answer),
        Outcome::Failed(failure) => Err(failure),
        Outcome::NotAsked => panic!("not asked"),
    }
}

/// Both rounds, as `stages::resolve` has them.
impl RegistryClient {
    pub(super) async fn resolve(&self, request: Request, given: &Given) -> Result<Found, Failure> {
        self.resolve_all(vec![request], given).await.into_values().next().unwrap()
    }

    /// The digests of all, then the evidence of all.
    pub(super) async fn resolve_all(
        &self,
        requests: Vec<Request>,
        given: &Given,
    ) -> BTreeMap<Lookup, Result<Found, Failure>> {
        let asking = self.begin(given, LONG);
        let mut all = BTreeMap::new();
        let mut next = Vec::new();
        let mut known: BTreeMap<Lookup, Option<Digest>> = BTreeMap::new();
        for request in requests {
            let digest = known.entry(request.lookup).or_insert_with(|| request.known.clone());
            if *digest != request.known {
                *digest = None;
            }
        }
        let questions = known.keys().cloned().map(Question::Digest).collect();
        let mut outcomes = asking.ask(questions);
        while let Some((question, outcome)) = outcomes.next().await {
            let lookup = question.lookup().clone();
            let known = known[&lookup].as_ref();
            let found = match outcome {
                Outcome::Answered(Answer::Digest { digest, warnings }) => {
                    if known != Some(&digest) {
                        next.push(Question::Evidence { lookup: lookup.clone(), digest: digest.clone() });
                    }
                    Ok(Found { digest, media_type: String::new(), kind: None, platforms: None, warnings })
                }
                Outcome::Failed(failure) => Err(failure),
                other => panic!("{other:?}"),
            };
            all.insert(lookup, found);
        }
        let mut outcomes = asking.ask(next);
        while let Some((question, outcome)) = outcomes.next().await {
            match outcome {
                Outcome::Answered(Answer::Evidence(evidence)) => {
                    let found = all.get_mut(question.lookup()).unwrap().as_mut().unwrap();
                    found.platforms = Some(evidence.platforms);
                    (found.media_type, found.kind) = (evidence.media_type, Some(evidence.kind));
                }
                Outcome::Failed(failure) => drop(all.insert(question.lookup().clone(), Err(failure))),
                other => panic!("{other:?}"),
            }
        }
        all
    }
}

/// Bounds that no test of something else meets.
pub(super) const LONG: Patience = Patience { question: Duration::from_secs(60), registry: Duration::from_secs(600) };

/// Resolves `team/app:1` at one fake registry. Errors never hold the canary.
pub(super) async fn resolve(fake: &Fake, given: &Given) -> Result<Found, Failure> {
    resolve_known(fake, given, None).await
}

pub(super) async fn resolve_known(fake: &Fake, given: &Given, known: Option<&Digest>) -> Result<Found, Failure> {
    let result = client(&plain(&[fake])).resolve(request(&format!("{}/team/app:1", fake.host()), known), given).await;
    if let Err(failure) = &result {
        assert!(!format!("{failure} {failure:?}").contains("canary"), "{failure}");
    }
    result
}
