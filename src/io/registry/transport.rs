//! HTTP: one client for each set of trusted authorities, bounded requests, bounded answers.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use reqwest::{
    Certificate, Client, Method, StatusCode, Url,
    header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, HeaderValue, RETRY_AFTER},
    redirect,
};
use tokio::sync::Semaphore;

use super::{
    counters::Counters,
    error::{Kind, RegistryError, printable},
    retry::{Limits, PATIENCE, retry_after},
};
use crate::model::{
    failure::{Category, Problem},
    registries::{CertificateAuthority, Registries},
};

/// Requests that are under way at one host at the same time.
const CONCURRENCY: usize = 16;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Requests of one pass that a host may leave without an answer before the others are not even sent: a host that is down
/// must not hold up the pass for as many timeouts as it has images.
const SILENCE: u32 = 8;

/// How long an unused connection stays open: long enough for one pass, no longer.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);

/// How much is read of an answer that is no success, in bytes.
const MAX_ERROR_BODY: usize = 4096;

const MAX_REDIRECTS: usize = 5;

/// An answer, read whole.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    /// Where it came from, after redirects.
    pub(super) url: Url,
    pub(super) body: Vec<u8>,
}

impl Reply {
    /// What the body says about an error: the registry's own words, else its first characters.
    pub(super) fn words(&self) -> String {
        let own = serde_json::from_slice::<serde_json::Value>(&self.body).ok().and_then(|value| {
            let error = value.get("errors")?.get(0)?;
            let text = |name: &str| error.get(name).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
            Some(format!("{}: {}", text("code"), text("message")))
        });
        let words = printable(&own.unwrap_or_else(|| String::from_utf8_lossy(&self.body).into_owned()));
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
}

/// Sends requests to registries, mirrors and token services.
#[derive(Debug)]
pub(super) struct Transport {
    /// Certificates of private authorities by the registry's host, or why they cannot be used.
    authorities: HashMap<String, Result<Arc<str>, Problem>>,
    clients: Mutex<HashMap<ClientKind, Client>>,
    slots: Mutex<HashMap<String, Arc<Semaphore>>>,
    /// Requests in a row that each host has left without an answer.
    unanswered: Mutex<HashMap<String, u32>>,
    pub(super) limits: Limits,
    pub(super) counters: Counters,
}

/// What makes clients different.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ClientKind {
    /// PEM text of authorities beside the system's.
    authorities: Option<Arc<str>>,
    /// This very machine, which is never asked through a proxy.
    loopback: bool,
    /// Works without any trusted authority.
    plain_http: bool,
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
            if reply.status != StatusCode::TOO_MANY_REQUESTS {
                return Ok(reply);
            }
            let wait =
                retry_after(reply.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()), Timestamp::now());
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

    async fn send_once(&self, ask: &Ask<'_>, host: &str) -> Result<Reply, RegistryError> {
        let plain_http = ask.url.scheme() == "http";
        let client = self.client(ask.options_of, &ask.url, host)?;
        let mut request = client.request(ask.method.clone(), ask.url.clone()).headers(ask.headers.clone());
        if let Some(form) = &ask.form {
            request = request.header("content-type", "application/x-www-form-urlencoded").body(form.clone());
        }
        self.counters.add(host, method_name(&ask.method));
        let failed = |error: reqwest::Error| RegistryError::transport(host, plain_http, &error.without_url());
        let mut response = request.send().await.map_err(failed)?;
        let (status, headers, url) = (response.status(), response.headers().clone(), response.url().clone());
        self.counters.note_remaining(host, &headers);
        let encoded = headers.get(CONTENT_ENCODING).is_some_and(|coding| coding != "identity" && !coding.is_empty());
        if encoded && status.is_success() && ask.method != Method::HEAD {
            return Err(RegistryError::new(Kind::Invalid, host, "it answered compressed although it was asked not to"));
        }
        let limit = if status.is_success() { ask.limit } else { MAX_ERROR_BODY };
        let mut body = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => break,
                Err(_) if !status.is_success() => break,
                Err(error) => return Err(failed(error)),
            }
            if body.len() > limit && status.is_success() {
                let message = format!("its answer is larger than {limit} bytes");
                return Err(RegistryError::new(Kind::Invalid, host, message));
            }
            if body.len() > limit {
                body.truncate(limit);
                break;
            }
        }
        Ok(Reply { status, headers, url, body })
    }

    fn slots(&self, host: &str) -> Arc<Semaphore> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.entry(host.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(CONCURRENCY))).clone()
    }

    fn client(&self, options_of: &str, url: &Url, host: &str) -> Result<Client, RegistryError> {
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
        let kind = ClientKind { authorities, loopback: is_loopback(url), plain_http: url.scheme() == "http" };
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&kind) {
            return Ok(client.clone());
        }
        let client = build(&kind).map_err(|error| {
            let message = format!("no TLS: {}", printable(&error.to_string()));
            RegistryError::new(Kind::Unreachable, host, message)
                .hint("install the system's CA certificates (ca-certificates), or set SSL_CERT_FILE")
        })?;
        clients.insert(kind, client.clone());
        Ok(client)
    }
}

fn build(kind: &ClientKind) -> Result<Client, reqwest::Error> {
    let mut headers = HeaderMap::new();
    // Digests are those of the bytes as they are stored.
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let mut builder = Client::builder()
        .user_agent(concat!("larder/", env!("CARGO_PKG_VERSION")))
        .default_headers(headers)
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(REQUEST_TIMEOUT)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(CONCURRENCY)
        .redirect(redirects())
        .referer(false);
    if kind.loopback {
        builder = builder.no_proxy();
    }
    if let Some(pem) = &kind.authorities {
        builder = builder.tls_certs_merge(Certificate::from_pem_bundle(pem.as_bytes())?);
    } else if kind.plain_http {
        builder = builder.tls_certs_only([]);
    }
    builder.build()
}

/// Follows a few redirects, never from https to http. Credentials stay behind when the origin changes; reqwest sees
/// to that, and a test of ours that it does.
fn redirects() -> redirect::Policy {
    redirect::Policy::custom(|attempt| {
        let downgrade =
            attempt.url().scheme() != "https" && attempt.previous().last().is_some_and(|url| url.scheme() == "https");
        if downgrade {
            attempt.error("it leads from https to http")
        } else if attempt.previous().len() > MAX_REDIRECTS {
            attempt.error("there are too many of them")
        } else {
            attempt.follow()
        }
    })
}

/// `host` or `host:port` of an address.
pub(super) fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        _ => "GET",
    }
}
