//! HTTP: one client for each set of trusted authorities, bounded requests, bounded answers.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use reqwest::{
    Certificate, Client, Method, Response, StatusCode, Url,
    header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, HeaderMap, HeaderValue, LOCATION},
};
use tokio::sync::Semaphore;

use super::{
    counters::Counters,
    error::{Kind, RegistryError, printable},
};
use crate::{
    io::http::{Limits, PATIENCE, PRIVATE, Public, Reach, Way, asked_wait, of_host, proxy_named},
    model::{
        failure::{Category, Problem},
        redact::without_logins,
        registries::{CertificateAuthority, Registries},
    },
};

/// Requests that are under way at one host at the same time.
const CONCURRENCY: usize = 16;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Requests of one pass that a host may leave without an answer before the others are not even sent: a host that is down
/// must not hold up the pass for as many timeouts as it has images.
const SILENCE: u32 = 8;

/// How long an unused connection stays open: long enough for one pass, no longer.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);

/// How much is read of an answer that is not a success, in bytes.
const MAX_ERROR_BODY: usize = 4096;

const MAX_REDIRECTS: usize = 5;

/// Answers that are larger than this, in bytes, are read a few at a time: what all hosts together may send must fit into
/// memory.
const LARGE: usize = 256 << 10;
const LARGE_AT_A_TIME: usize = 4;

/// An answer, read whole.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    /// Where it came from, after redirects.
    pub(super) url: Url,
    /// Whether that is another origin than the one that was asked. Its words are not shown: a registry must not make
    /// larder read out what others say.
    pub(super) is_elsewhere: bool,
    /// From where the host that was asked can be reached.
    pub(super) reach: Reach,
    pub(super) body: Vec<u8>,
}

impl Reply {
    /// What the body says about an error: the registry's own words, else its first characters.
    pub(super) fn words(&self) -> String {
        if self.is_elsewhere {
            return format!("status {} after a redirect to {}", self.status.as_u16(), shown(&self.url));
        }
        let own = serde_json::from_slice::<serde_json::Value>(&self.body).ok().and_then(|value| {
            let error = value.get("errors")?.get(0)?;
            let text = |name: &str| error.get(name).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
            Some(format!("{}: {}", text("code"), text("message")))
        });
        let words = own.unwrap_or_else(|| String::from_utf8_lossy(&self.body).into_owned());
        let words = printable(&without_logins(&words));
        if words.is_empty() {
            format!("status {}", self.status.as_u16())
        } else {
            format!("status {}, {words}", self.status.as_u16())
        }
    }
}

/// A request.
pub(super) struct Ask<'a> {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    /// The body of a POST.
    pub(super) form: Option<String>,
    /// The host's name in `larder.yaml`, whose options apply.
    pub(super) options_of: &'a str,
    /// The largest body that is taken, in bytes.
    pub(super) limit: usize,
    /// From where the host that named this address can be reached; none where larder chose it.
    pub(super) named_by: Option<Reach>,
}

/// Sends requests to registries, mirrors and token services.
#[derive(Debug)]
pub(super) struct Transport {
    /// Certificates of private authorities by the registry's host, or why they cannot be used.
    authorities: HashMap<String, Result<Arc<str>, Problem>>,
    clients: Mutex<HashMap<ClientKind, Client>>,
    slots: Mutex<HashMap<String, Arc<Semaphore>>>,
    large: Semaphore,
    /// Requests in a row that each host has left without an answer.
    unanswered: Mutex<HashMap<String, u32>>,
    pub(super) limits: Limits,
    pub(super) counters: Counters,
}

/// What makes clients different.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ClientKind {
    /// PEM text of authorities that are trusted in addition to the system's.
    authorities: Option<Arc<str>>,
    /// The proxy, with its login.
    proxy: Option<Url>,
    /// Works without any trusted authority.
    plain_http: bool,
    /// For addresses that a server named: where that server can be reached from, and so what it may name.
    named_by: Option<Reach>,
}

impl Transport {
    pub(super) fn new(registries: &Registries) -> Self {
        let authorities = registries.0.iter().filter_map(|(host, options)| {
            let pem = match options.ca.as_ref()? {
                CertificateAuthority::Pem(pem) => Ok(pem.clone()),
                CertificateAuthority::File(path) => std::fs::read_to_string(path).map_err(|error| {
                    Problem::new(Category::Registry, format!("the CA of {host} cannot be read from {path}: {error}"))
                        .hint("mount the file at this path, or put its PEM text into larder.yaml")
                }),
            };
            let checked = pem.and_then(|pem| match Certificate::from_pem_bundle(pem.as_bytes()) {
                Ok(found) if !found.is_empty() => Ok(Arc::from(pem)),
                _ => {
                    Err(Problem::new(Category::Registry, format!("the CA of {host} holds no certificate in PEM form"))
                        .hint("it starts with -----BEGIN CERTIFICATE-----"))
                }
            });
            Some((host.clone(), checked))
        });
        Self {
            authorities: authorities.collect(),
            clients: Mutex::default(),
            slots: Mutex::default(),
            large: Semaphore::new(LARGE_AT_A_TIME),
            unanswered: Mutex::default(),
            limits: Limits::default(),
            counters: Counters::default(),
        }
    }

    /// Sends a request and reads the answer. A host that asks for a short wait gets it once; one that asks for a long
    /// one is left alone until then.
    pub(super) async fn send(&self, ask: Ask<'_>) -> Result<Reply, RegistryError> {
        let host = host_of(&ask.url);
        let mut waited = false;
        loop {
            let reply = {
                let slots = self.slots(&host);
                let _slot = slots.acquire().await;
                // While it waited for its turn, the host may have asked to be left alone.
                if let Some(until) = self.limits.until(&host) {
                    return Err(RegistryError::rate_limited(&host, until));
                }
                self.must_answer(&host)?;
                let answer = self.send_once(&ask, &host).await;
                self.note(&host, &answer);
                answer?
            };
            let Some(wait) = asked_wait(reply.status, &reply.headers, Timestamp::now()) else { return Ok(reply) };
            if waited || wait > PATIENCE {
                return Err(RegistryError::rate_limited(&host, self.limits.limit(&host, wait)));
            }
            waited = true;
            tokio::time::sleep(wait.mul_f64(1.0 + fastrand::f64() / 10.0)).await;
        }
    }

    /// A new pass begins: every host gets another chance.
    pub(super) fn begin(&self) {
        self.unanswered.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// That a host did not answer within the time that a question has for it.
    pub(super) fn silent(&self, host: &str) -> RegistryError {
        let mut unanswered = self.unanswered.lock().unwrap_or_else(PoisonError::into_inner);
        *unanswered.entry(host.to_owned()).or_default() += 1;
        RegistryError::new(Kind::Unreachable, host, "no answer in time")
            .hint("the registry is slow; it is asked again later, and the lock stays unchanged")
    }

    fn must_answer(&self, host: &str) -> Result<(), RegistryError> {
        let unanswered = self.unanswered.lock().unwrap_or_else(PoisonError::into_inner);
        match unanswered.get(host) {
            Some(&count) if count >= SILENCE => {
                let message = format!("it has left {count} other requests of this pass without an answer");
                Err(RegistryError::new(Kind::Unreachable, host, message).hint("larder asks it again in a later pass"))
            }
            _ => Ok(()),
        }
    }

    fn note<T>(&self, host: &str, answer: &Result<T, RegistryError>) {
        let mut unanswered = self.unanswered.lock().unwrap_or_else(PoisonError::into_inner);
        match answer {
            Err(error) if error.kind == Kind::Unreachable => *unanswered.entry(host.to_owned()).or_default() += 1,
            _ => drop(unanswered.remove(host)),
        }
    }

    /// Follows redirects by hand: never from https to http, never further into a private network than the host itself
    /// is, and without credentials once the origin changes.
    async fn send_once(&self, ask: &Ask<'_>, host: &str) -> Result<Reply, RegistryError> {
        let mut url = ask.url.clone();
        let mut headers = ask.headers.clone();
        let mut reach = ask.named_by;
        for _ in 0..=MAX_REDIRECTS {
            if let Some(named_by) = reach {
                may_lead_to(named_by, &url).map_err(|why| RegistryError::new(Kind::Invalid, host, why))?;
            }
            let response = self.request(ask, host, &url, &headers, reach).await?;
            let from = reach.unwrap_or_else(|| self.reach_of(&response, &url));
            let target = response.headers().get(LOCATION).filter(|_| response.status().is_redirection());
            let target = target.and_then(|value| url.join(value.to_str().ok()?).ok());
            let Some(target) = target.filter(|_| ask.form.is_none()) else {
                let is_elsewhere = url.origin() != ask.url.origin();
                return self.read(response, ask, host, (from, is_elsewhere)).await;
            };
            if url.scheme() == "https" && target.scheme() != "https" {
                return Err(RegistryError::redirect(host, "it leads from https to http"));
            }
            if target.origin() != url.origin() {
                headers.remove(AUTHORIZATION);
            }
            reach = Some(from);
            url = target;
        }
        Err(RegistryError::redirect(host, "there are too many of them"))
    }

    async fn request(
        &self,
        ask: &Ask<'_>,
        host: &str,
        url: &Url,
        headers: &HeaderMap,
        named_by: Option<Reach>,
    ) -> Result<Response, RegistryError> {
        let way = Way::to(url, None);
        let client = self.client(ask.options_of, url, host, (way.proxy.clone(), named_by))?;
        let mut request = client.request(ask.method.clone(), url.clone()).headers(headers.clone());
        if let Some(form) = &ask.form {
            request = request.header("content-type", "application/x-www-form-urlencoded").body(form.clone());
        }
        self.counters.add(host, method_name(&ask.method));
        let response = request.send().await.map_err(|error| {
            RegistryError::transport(host, url.scheme() == "http", way.proxy.as_ref(), &error.without_url())
        })?;
        match &way.proxy {
            Some(proxy) if response.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
                Err(RegistryError::proxy_login(host, proxy))
            }
            _ => Ok(response),
        }
    }

    /// From where the host that answered can be reached. Behind a proxy only an address says so.
    fn reach_of(&self, response: &Response, url: &Url) -> Reach {
        let by_name = of_host(url.host_str().unwrap_or_default());
        let proxied = Way::to(url, None).proxy.is_some();
        let peer = response.remote_addr().filter(|_| !proxied).map(|address| Reach::of(address.ip()));
        by_name.or(peer).unwrap_or(Reach::Public)
    }

    async fn read(
        &self,
        mut response: Response,
        ask: &Ask<'_>,
        host: &str,
        (reach, is_elsewhere): (Reach, bool),
    ) -> Result<Reply, RegistryError> {
        let (status, headers, url) = (response.status(), response.headers().clone(), response.url().clone());
        self.counters.note_remaining(host, &headers);
        let encoded = headers.get(CONTENT_ENCODING).is_some_and(|coding| coding != "identity" && !coding.is_empty());
        if encoded && status.is_success() && ask.method != Method::HEAD {
            return Err(RegistryError::new(Kind::Invalid, host, "it answered compressed although it was asked not to"));
        }
        let limit = if status.is_success() { ask.limit } else { MAX_ERROR_BODY };
        let mut body = Vec::new();
        let mut large = None;
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => break,
                Err(_) if !status.is_success() => break,
                Err(error) => {
                    let error = error.without_url();
                    return Err(RegistryError::transport(host, url.scheme() == "http", None, &error));
                }
            }
            if body.len() > limit && status.is_success() {
                let message = format!("its answer is larger than {limit} bytes");
                return Err(RegistryError::new(Kind::Invalid, host, message));
            }
            if body.len() > limit {
                body.truncate(limit);
                break;
            }
            if body.len() > LARGE && large.is_none() {
                large = self.large.acquire().await.ok();
            }
        }
        Ok(Reply { status, headers, url, is_elsewhere, reach, body })
    }

    fn slots(&self, host: &str) -> Arc<Semaphore> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.entry(host.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(CONCURRENCY))).clone()
    }

    fn client(
        &self,
        options_of: &str,
        url: &Url,
        host: &str,
        (proxy, named_by): (Option<Url>, Option<Reach>),
    ) -> Result<Client, RegistryError> {
        let authorities = match self.authorities.get(options_of) {
            Some(Ok(pem)) => Some(pem.clone()),
            Some(Err(problem)) => {
                let error = RegistryError::new(Kind::Unreachable, host, problem.message.clone());
                return Err(match &problem.hint {
                    Some(hint) => error.hint(hint.clone()),
                    None => error,
                });
            }
            None => None,
        };
        let kind = ClientKind { authorities, proxy, plain_http: url.scheme() == "http", named_by };
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&kind) {
            return Ok(client.clone());
        }
        let client = build(&kind, url).map_err(|error| {
            let message = format!("no TLS: {}", printable(&error.without_url().to_string()));
            RegistryError::new(Kind::Unreachable, host, message)
                .hint("install the system's CA certificates (ca-certificates), or set SSL_CERT_FILE")
        })?;
        clients.insert(kind, client.clone());
        Ok(client)
    }
}

fn build(kind: &ClientKind, url: &Url) -> Result<Client, reqwest::Error> {
    let mut headers = HeaderMap::new();
    // Digests are those of the bytes as they are stored.
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let authorities = kind.authorities.as_ref().map(|pem| Certificate::from_pem_bundle(pem.as_bytes())).transpose()?;
    let builder = Way { authorities, proxy: kind.proxy.clone() }
        .client(url)?
        .default_headers(headers)
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(REQUEST_TIMEOUT)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(CONCURRENCY);
    match kind.named_by {
        // A proxy resolves names itself.
        Some(named_by) if kind.proxy.is_none() => builder.dns_resolver(Arc::new(Public(named_by))),
        _ => builder,
    }
    .build()
}

/// Whether a server may lead to an address; names are looked at when they are resolved.
fn may_lead_to(named_by: Reach, url: &Url) -> Result<(), String> {
    match of_host(url.host_str().unwrap_or_default()) {
        Some(reach) if !named_by.may_lead_to(reach) => {
            Err(format!("a redirect or token service at {} is not asked: {PRIVATE}", host_of(url)))
        }
        _ => Ok(()),
    }
}

/// `host` or `host:port` of an address.
pub(super) fn host_of(url: &Url) -> String {
    proxy_named(url)
}

/// An address without login, query and fragment.
pub(super) fn shown(url: &Url) -> String {
    printable(&format!("{}://{}{}", url.scheme(), host_of(url), url.path()))
}

fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        _ => "GET",
    }
}
