//! The registry client against a real registry: TLS by a private authority, htpasswd, mirrors.

pub(crate) mod peer;
mod proxy;
mod slow;

use larder::{
    io::{
        credentials::StoredCredentials,
        registry::{Credential, Credentials, Keyring, Patience, RegistryClient},
    },
    model::{
        digest::Digest,
        failure::{Category, Failure},
        registries::{CertificateAuthority, Registries, RegistryOptions},
        resolution::{CredentialSource, Lookup, ResolvedImage},
    },
    pipeline::ask_registries,
    stages::resolve::Due,
};

use self::peer::{Authority, PASSWORD, Registry, USER, push};

/// One keyring for all sources.
struct Fixed(Keyring);

impl Credentials for Fixed {
    async fn keyring(&self, _: &CredentialSource, _: bool) -> Result<Keyring, Failure> {
        Ok(self.0.clone())
    }
}

fn fixed(host: &str, password: &str) -> Fixed {
    let mut keyring = Keyring::default();
    keyring.add(host, Credential::basic(USER, password));
    Fixed(keyring)
}

fn one(host: &str, options: RegistryOptions) -> Registries {
    Registries([(host.to_owned(), options)].into())
}

fn trusting(ca: CertificateAuthority) -> RegistryOptions {
    RegistryOptions { ca: Some(ca), ..RegistryOptions::default() }
}

fn client(registries: &Registries) -> RegistryClient {
    let _ = rustls::crypto::ring::default_provider().install_default();
    RegistryClient::new(registries).unwrap()
}

async fn resolve(
    registries: &Registries,
    reference: &str,
    credentials: &impl Credentials,
) -> Result<ResolvedImage, Failure> {
    look_up(&client(registries), reference, None, credentials).await
}

async fn look_up(
    client: &RegistryClient,
    reference: &str,
    known: Option<Digest>,
    credentials: &impl Credentials,
) -> Result<ResolvedImage, Failure> {
    let lookup = Lookup { reference: reference.parse().unwrap(), credentials: CredentialSource::Controller };
    let found = ask_registries(client, credentials, vec![Due { lookup, known }], Patience::WHOLE).await;
    found.resolution.into_values().next().unwrap()
}

#[tokio::test]
async fn a_private_registry() {
    let authority = Authority::new();
    let registry = Registry::private(&authority);
    let image = push(&registry, "team/app", "1").await;
    let host = registry.host();
    let ca = one(host, trusting(CertificateAuthority::Pem(authority.pem())));
    let (tag, good) = (format!("{host}/team/app:1"), fixed(host, PASSWORD));

    let resolved = resolve(&ca, &tag, &good).await.unwrap();
    assert_eq!(resolved.digest, image.index);
    let platforms: Vec<_> =
        resolved.evidence.unwrap().platforms.into_iter().map(|p| (p.platform.to_string(), p.digest, p.size)).collect();
    assert_eq!(platforms, [("linux/amd64".to_owned(), image.manifest.clone(), Some(image.size))]);

    // A single manifest has its platform in its configuration; a digest needs no tag.
    let resolved = resolve(&ca, &format!("{host}/team/app@{}", image.manifest), &good).await.unwrap();
    assert_eq!(
        (resolved.digest, resolved.evidence.unwrap().platforms[0].platform.to_string()),
        (image.manifest, "linux/amd64".to_owned())
    );

    // The authority from a file; without it the message names the cause and the host.
    let file = one(host, trusting(CertificateAuthority::File(authority.file().display().to_string())));
    assert_eq!(resolve(&file, &tag, &good).await.unwrap().digest, image.index);
    let failure = resolve(&Registries::default(), &tag, &good).await.unwrap_err();
    assert!(failure.to_string().contains(&format!("unknown CA for host {host}")), "{failure}");
    assert_eq!(failure.category(), Category::Registry);
    let missing = one(host, trusting(CertificateAuthority::File("/nonexistent/ca.pem".to_owned())));
    assert!(resolve(&missing, &tag, &good).await.unwrap_err().to_string().contains("/nonexistent/ca.pem"));
    let broken = one(host, trusting(CertificateAuthority::Pem("nonsense".to_owned())));
    assert!(resolve(&broken, &tag, &good).await.unwrap_err().to_string().contains("no certificate in PEM form"));
    let other = one(host, trusting(CertificateAuthority::Pem(Authority::new().pem())));
    assert!(resolve(&other, &tag, &good).await.unwrap_err().to_string().contains("unknown CA"));

    // Wrong, no and unfit credentials, each told apart from a missing image.
    for (credentials, words) in [
        (fixed(host, "canary"), "invalid or expired credentials"),
        (Fixed(Keyring::default()), "none match"),
        (fixed("127.0.0.1", PASSWORD), "the key `127.0.0.1` does not match"),
    ] {
        let failure = resolve(&ca, &tag, &credentials).await.unwrap_err();
        assert_eq!(failure.category(), Category::Credentials, "{failure}");
        assert!(failure.to_string().contains(words), "{failure}");
        assert!(!failure.to_string().contains("canary") && !failure.to_string().contains(PASSWORD), "{failure}");
    }
    for missing in ["team/app:2", "team/other:1"] {
        let failure = resolve(&ca, &format!("{host}/{missing}"), &good).await.unwrap_err();
        assert_eq!(failure.category(), Category::Registry, "{failure}");
        assert!(failure.to_string().contains("does not exist"), "{failure}");
    }

    // Https where http is spoken, and the other way round.
    let plain = one(host, RegistryOptions { plain_http: true, ..RegistryOptions::default() });
    let failure = resolve(&plain, &tag, &good).await.unwrap_err();
    assert!(failure.to_string().contains("HTTP request to an HTTPS server"), "{failure}");
    let open = Registry::open();
    let failure = resolve(&Registries::default(), &format!("{}/team/app", open.host()), &good).await.unwrap_err();
    assert!(failure.to_string().contains("does not speak TLS"), "{failure}");
}

#[tokio::test]
async fn a_docker_config_file() {
    let authority = Authority::new();
    let registry = Registry::private(&authority);
    let image = push(&registry, "app", "latest").await;
    let host = registry.host();
    let ca = one(host, trusting(CertificateAuthority::Pem(authority.pem())));
    let file = authority.file().with_file_name("config.json");
    let config = format!(r#"{{"auths":{{"https://{host}/v2/":{{"username":"{USER}","password":"{PASSWORD}"}}}}}}"#);
    std::fs::write(&file, config).unwrap();
    let credentials = StoredCredentials::new(None, Some(&file)).unwrap();
    assert_eq!(resolve(&ca, &format!("{host}/app"), &credentials).await.unwrap().digest, image.index);
    std::fs::write(&file, "canary").unwrap();
    let failure = resolve(&ca, &format!("{host}/app"), &credentials).await.unwrap_err();
    assert!(failure.to_string().contains("config.json") && !failure.to_string().contains("canary"), "{failure}");
}

#[tokio::test]
async fn a_mirror_under_a_prefix() {
    let registry = Registry::open();
    let image = push(&registry, "quay.io/jupyter/scipy-notebook", "1").await;
    let mirror = format!("http://{}/quay.io", registry.host()).parse().unwrap();
    let registries = one("quay.io", RegistryOptions { mirrors: vec![mirror], ..RegistryOptions::default() });
    let resolved = resolve(&registries, "quay.io/jupyter/scipy-notebook:1", &Fixed(Keyring::default())).await.unwrap();
    assert_eq!(resolved.digest, image.index);
}

#[tokio::test]
async fn a_known_digest_costs_one_request() {
    let registry = Registry::open();
    let image = push(&registry, "team/app", "1").await;
    let client = client(&one(registry.host(), RegistryOptions { plain_http: true, ..RegistryOptions::default() }));
    let reference = format!("{}/team/app:1", registry.host());
    let none = Fixed(Keyring::default());
    let same = look_up(&client, &reference, Some(image.index.clone()), &none).await.unwrap();
    assert_eq!(same.evidence, None);
    assert_eq!(client.request_counts().into_values().sum::<u64>(), 1);
    // A tag that moved
    let moved = look_up(&client, &reference, Some(Digest::sha256(b"before")), &none).await.unwrap();
    assert_eq!((moved.digest, moved.evidence.map(|evidence| evidence.platforms.len())), (image.index, Some(1)));
}

#[tokio::test]
async fn the_token_services_authority_is_its_own() {
    // the registry's authority says nothing about another host that it names
    use wiremock::{Mock, MockServer, ResponseTemplate, matchers::any};
    let authority = Authority::new();
    let service = Registry::private(&authority);
    let registry = MockServer::start().await;
    let challenge = format!("Bearer realm=\"https://{}/token\"", service.host());
    let answer = ResponseTemplate::new(401).insert_header("WWW-Authenticate", challenge.as_str());
    Mock::given(any()).respond_with(answer).mount(&registry).await;
    let host = registry.address().to_string();
    let own = RegistryOptions { plain_http: true, ..trusting(CertificateAuthority::Pem(authority.pem())) };
    let mut registries = one(&host, own);
    let none = Fixed(Keyring::default());
    let failure = resolve(&registries, &format!("{host}/team/app"), &none).await.unwrap_err();
    assert!(failure.to_string().contains(&format!("unknown CA for host {}", service.host())), "{failure}");
    registries.0.insert(service.host().to_owned(), trusting(CertificateAuthority::Pem(authority.pem())));
    let failure = resolve(&registries, &format!("{host}/team/app"), &none).await.unwrap_err();
    assert!(failure.to_string().contains("/token failed with status 404"), "{failure}");
}

#[tokio::test]
async fn from_https_nothing_leads_to_http() {
    let authority = Authority::new();
    let elsewhere = wiremock::MockServer::start().await;
    // A redirect of a blob
    let registry = Registry::redirecting(&authority, &elsewhere.uri());
    let image = push(&registry, "team/app", "1").await;
    let ca = one(registry.host(), trusting(CertificateAuthority::Pem(authority.pem())));
    let reference = format!("{}/team/app@{}", registry.host(), image.manifest);
    let failure = resolve(&ca, &reference, &fixed(registry.host(), PASSWORD)).await.unwrap_err();
    assert!(failure.to_string().contains("it leads from https to http"), "{failure}");
    // A token service
    let registry = Registry::with_tokens(&authority, &format!("{}/token", elsewhere.uri()));
    let ca = one(registry.host(), trusting(CertificateAuthority::Pem(authority.pem())));
    let failure =
        resolve(&ca, &format!("{}/team/app", registry.host()), &fixed(registry.host(), PASSWORD)).await.unwrap_err();
    assert!(failure.to_string().contains("over plain http"), "{failure}");
    assert!(elsewhere.received_requests().await.unwrap().is_empty());
}
