//! What all HTTP clients share: how a host is reached, what it may redirect to, and how long it asks to be left alone.

mod limits;
mod proxy;
mod reach;
mod wait;

use reqwest::{Certificate, Client, ClientBuilder, Url, redirect};

use self::proxy::Proxies;
pub(crate) use self::{
    limits::{Limits, PATIENCE},
    proxy::named as proxy_named,
    reach::{PRIVATE, Public, Reach, of_host},
    wait::{asked_wait, retry_after},
};

/// How a host is reached.
#[derive(Clone, Debug, Default)]
pub(crate) struct Way {
    /// Authorities that are trusted in addition to the system's.
    pub(crate) authorities: Option<Vec<Certificate>>,
    /// The proxy, with its login.
    pub(crate) proxy: Option<Url>,
}

impl Way {
    /// The way to an address by the environment's proxies. This machine itself is never asked through one.
    pub(crate) fn to(url: &Url, authorities: Option<Vec<Certificate>>) -> Self {
        Self { authorities, proxy: Proxies::of_environment().of(url) }
    }

    /// A client that follows no redirect, so that nothing is sent where it was not meant for. Certificates are only
    /// loaded where there is TLS.
    ///
    /// # Errors
    /// When the proxy's address cannot be used.
    pub(crate) fn client(self, url: &Url) -> reqwest::Result<ClientBuilder> {
        let plain = |url: &Url| url.scheme() == "http";
        let without_tls = plain(url) && self.proxy.as_ref().is_none_or(plain);
        let mut builder = Client::builder()
            .user_agent(concat!("larder/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .referer(false)
            .no_proxy();
        if let Some(proxy) = self.proxy {
            builder = builder.proxy(reqwest::Proxy::all(proxy)?);
        }
        Ok(match self.authorities {
            _ if without_tls => builder.tls_certs_only([]),
            Some(authorities) => builder.tls_certs_merge(authorities),
            None => builder,
        })
    }
}

/// Whether a host is this machine, so that what is sent to it stays here.
pub(crate) fn is_loopback(host: &str) -> bool {
    of_host(host) == Some(Reach::Loopback)
}
