//! What went wrong at a registry, in words that say whose fault it is.

use std::{error::Error, fmt};

use jiff::Timestamp;
use reqwest::Url;
use rustls::CertificateError;

use super::endpoint::DOCKER_HUB_API;
use crate::{
    io::http::{PRIVATE, proxy_named},
    model::{
        failure::{Category, Problem},
        reference::{DOCKER_HUB, ImageReference},
        text::words,
    },
};

/// What kind of thing went wrong; decides what is tried next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// No answer: name, connection, certificate or time.
    Unreachable,
    /// Credentials are asked for, and there were none to send.
    Unauthenticated,
    /// The credentials that were sent are not enough.
    Refused,
    /// There is no such repository, tag or digest.
    NotFound,
    /// Too many requests.
    RateLimited,
    /// Another answer that is not a success.
    Unavailable,
    /// An answer that cannot be right: no manifest, another digest, too long, too short.
    Invalid,
}

const NO_TLS: &str = "it does not speak TLS";

/// What went wrong at one host.
#[derive(Clone, Debug)]
pub(super) struct RegistryError {
    pub(super) kind: Kind,
    /// The host that was asked: a registry, a mirror or a token service.
    pub(super) host: String,
    message: String,
    hint: Option<String>,
}

impl RegistryError {
    pub(super) fn new(kind: Kind, host: &str, message: impl Into<String>) -> Self {
        Self { kind, host: host.to_owned(), message: message.into(), hint: None }
    }

    #[must_use]
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Credentials were sent, and are not enough.
    pub(super) fn refused(host: &str, message: impl Into<String>) -> Self {
        Self::new(Kind::Refused, host, message)
            .hint("renew the password of the pull secret, and check that it may pull this repository")
    }

    /// Credentials are asked for, and there are none.
    pub(super) fn unauthenticated(host: &str, message: impl Into<String>) -> Self {
        Self::new(Kind::Unauthenticated, host, message).hint(
            "set `pullSecret` to a Secret with credentials for this registry; if the image is public, check the name: many registries return 401 for a repository that does not exist",
        )
    }

    /// A redirect that is not followed.
    pub(super) fn redirect(host: &str, why: &str) -> Self {
        Self::new(Kind::Invalid, host, format!("a redirect was not followed: {why}"))
    }

    /// A proxy that wants a login, or another one.
    pub(super) fn proxy_login(host: &str, proxy: &Url) -> Self {
        let named = proxy_named(proxy);
        let message = if proxy.username().is_empty() {
            format!("the proxy {named} asks for a login (status 407)")
        } else {
            format!("the proxy {named} refuses the login that HTTP_PROXY or HTTPS_PROXY has for it (status 407)")
        };
        Self::new(Kind::Unreachable, host, message).hint(format!(
            "write the login into HTTPS_PROXY, as in http://USER:PASSWORD@{named}; a registry that needs no proxy belongs into NO_PROXY"
        ))
    }

    /// The host asked to be left alone.
    pub(super) fn rate_limited(host: &str, until: Timestamp) -> Self {
        Self::new(Kind::RateLimited, host, format!("rate limited until {until}"))
            .hint("nothing to do: it is asked again then, and the lock stays unchanged; credentials raise the limit at some registries")
    }

    /// From a request that got no answer. Looks for the cause in the chain of sources.
    pub(super) fn transport(host: &str, plain_http: bool, proxy: Option<&Url>, error: &reqwest::Error) -> Self {
        let innermost = root(error);
        match proxy {
            Some(proxy) if innermost.ends_with("proxy authorization required") => {
                return Self::proxy_login(host, proxy);
            }
            Some(proxy) if error.is_connect() => {
                let message = format!("no connection through the proxy {}: {innermost}", proxy_named(proxy));
                return Self::new(Kind::Unreachable, host, message)
                    .hint("check HTTP_PROXY and HTTPS_PROXY; a registry that needs no proxy belongs into NO_PROXY");
            }
            _ if innermost.contains(PRIVATE) => return Self::redirect(host, PRIVATE),
            _ => {}
        }
        let tls = find::<rustls::Error>(error);
        let new = |kind, message: String| Self::new(kind, host, message);
        match tls {
            // A bad signature: an authority of the same name, but with another key, as after a renewal.
            Some(rustls::Error::InvalidCertificate(
                CertificateError::UnknownIssuer | CertificateError::BadSignature,
            )) => new(
                Kind::Unreachable,
                format!("unknown CA for host {host}: its certificate is signed by an unknown authority"),
            )
            .hint(format!(
                "set the registry's `ca` in larder.yaml under `{host}`, and check that the nodes trust it too"
            )),
            Some(rustls::Error::InvalidMessage(_)) => new(Kind::Unreachable, NO_TLS.to_owned())
                .hint("if it is a plain http registry, set `plainHttp: true` for it in larder.yaml"),
            Some(other) => new(Kind::Unreachable, format!("no secure connection: {other}"))
                .hint("check the certificate's names and dates, and this machine's clock"),
            None if error.is_dns() => new(Kind::Unreachable, "DNS lookup failed".to_owned())
                .hint("check the spelling of the host and the DNS of this machine"),
            None if error.is_timeout() && error.is_connect() => {
                new(Kind::Unreachable, "no connection in time".to_owned())
                    .hint("check firewalls, network policies and HTTPS_PROXY")
            }
            None if error.is_timeout() => new(Kind::Unreachable, "no answer in time".to_owned()),
            None if error.is_connect() => {
                new(Kind::Unreachable, format!("no connection: {}", root(error))).hint(if plain_http {
                    "check that it is running"
                } else {
                    "check that it is running and the port is right"
                })
            }
            None if error.is_body() || error.is_decode() => {
                new(Kind::Invalid, format!("its answer ended early: {}", root(error)))
            }
            None => new(Kind::Unreachable, format!("no answer: {}", root(error))),
        }
    }

    /// As said of a mirror, whose failure is not final, or of the registry itself after a mirror.
    pub(super) fn of_mirror(&self, registry: &str) -> String {
        match self.kind {
            _ if self.host == registry || self.host == DOCKER_HUB_API => format!("the registry {self}"),
            Kind::NotFound => format!("the mirror {} does not have it: {}", self.host, self.message),
            Kind::Unreachable if self.message == NO_TLS => {
                format!("mirror {self}; write `http://{}` if the mirror speaks plain http", self.host)
            }
            _ => format!("mirror {self}"),
        }
    }

    /// As a problem of a reference. `others` failed at other places, `near_miss` is why no credential was good enough.
    pub(super) fn into_problem(
        self,
        reference: &ImageReference,
        others: &[Self],
        near_miss: Option<String>,
    ) -> Problem {
        let category = match self.kind {
            Kind::Unauthenticated | Kind::Refused => Category::Credentials,
            _ => Category::Registry,
        };
        let mut message = match self.kind {
            Kind::NotFound => format!("`{reference}` does not exist at {}: {}", self.host, self.message),
            _ => format!("`{reference}` cannot be resolved: {}: {}", self.host, self.message),
        };
        if !others.is_empty() {
            let others: Vec<String> = others.iter().map(|error| error.of_mirror(reference.host())).collect();
            message.push_str(&format!(" (also asked: {})", others.join("; ")));
        }
        let mut hints: Vec<String> = self.hint.into_iter().chain(near_miss).collect();
        if matches!(self.kind, Kind::Unauthenticated | Kind::Refused | Kind::NotFound | Kind::Unavailable) {
            hints.extend(reference.lints().iter().map(ToString::to_string));
            // Harbor knows no repository outside a project, and says so with any of 401, 404 and 500.
            if reference.host() != DOCKER_HUB && !reference.path().contains('/') {
                hints.push(format!(
                    "at a Harbor the path is project/repository; `{}` has one part only",
                    reference.path()
                ));
            }
        }
        let problem = Problem::new(category, message);
        if hints.is_empty() { problem } else { problem.hint(hints.join("; ")) }
    }
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.host, self.message)
    }
}

/// The first error of this type in the chain, also inside I/O errors.
fn find<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        if let Some(inner) = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref)
            && let Some(found) = find::<E>(inner)
        {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// The innermost error's words; the outer ones name the address, which may hold a query.
fn root(error: &reqwest::Error) -> String {
    let mut deepest: &dyn Error = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    if std::ptr::addr_eq(deepest, error) { "the request failed".to_owned() } else { printable(&deepest.to_string()) }
}

/// What a registry says, short enough for a line.
pub(super) fn printable(text: &str) -> String {
    words(text, 200)
}

#[cfg(test)]
mod tests {
    use super::{Kind, NO_TLS, RegistryError};

    #[test]
    fn a_mirrors_failure_says_what_it_means() {
        let said = |kind, message: &str| RegistryError::new(kind, "m:5000", message).of_mirror("quay.io");
        assert_eq!(said(Kind::NotFound, "404"), "the mirror m:5000 does not have it: 404");
        assert!(said(Kind::Unreachable, NO_TLS).contains("write `http://m:5000`"));
        assert_eq!(said(Kind::Unavailable, "503"), "mirror m:5000: 503");
    }
}
