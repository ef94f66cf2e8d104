//! How a Git server is reached over HTTP: authorities and a proxy that are for Git alone.

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use gix::url::Scheme;
use gix_transport::{
    Protocol,
    client::{
        TransportWithoutIO as _,
        blocking_io::{Transport, http},
    },
};
use reqwest::Certificate;

use super::{
    GitError,
    redact::{self, Redactor},
};
use crate::io::http::Way;

/// How long an HTTP server may be silent, before its answer and within it. How long all takes is not bounded.
const PATIENCE: Duration = Duration::from_secs(120);

/// The largest file of certificates or with a login, in bytes.
const MAX_FILE: u64 = 1024 * 1024;

/// The way to the Git server, for http(s). It is nobody else's: registries and the API server are not asked this way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// A file of certificates, in PEM form, that are trusted in addition to the system's.
    pub ca_file: Option<PathBuf>,
    /// The proxy, `http://` or `https://`, without a login. Without one, those of the environment (`HTTPS_PROXY` and the
    /// like) are used, except for this very machine.
    pub proxy: Option<String>,
    /// A file with the proxy's login, `USER:PASSWORD` in its first line.
    pub proxy_login_file: Option<PathBuf>,
}

/// A proxy with its login, as it is right now.
struct Via {
    proxy: reqwest::Proxy,
    redactor: Redactor,
}

impl Network {
    /// Checks what can be checked without looking at any file.
    ///
    /// # Errors
    /// [`GitError::Proxy`].
    pub(super) fn check(&self) -> Result<(), GitError> {
        let Some(text) = &self.proxy else {
            return match &self.proxy_login_file {
                Some(_) => Err(refused("", "no proxy is named beside its login")),
                None => Ok(()),
            };
        };
        let url = reqwest::Url::parse(text).map_err(|_| refused(text, "the address cannot be read"))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
            return Err(refused(text, "the address does not start with http:// or https:// and a host"));
        }
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
            return Err(refused(text, "the address holds a login"));
        }
        Ok(())
    }

    /// The proxy that was asked for.
    fn via(&self) -> Result<Option<Via>, GitError> {
        let Some(text) = &self.proxy else { return Ok(None) };
        let proxy = reqwest::Proxy::all(text).map_err(|_| refused(text, "the address cannot be read"))?;
        let Some(file) = &self.proxy_login_file else {
            return Ok(Some(Via { proxy, redactor: Redactor::default() }));
        };
        let wrong = |problem: &str| refused(text, &format!("{}: {problem}", file.display()));
        let bytes = read(file).map_err(|error| wrong(&error.to_string()))?;
        let line = String::from_utf8_lossy(&bytes).lines().next().unwrap_or_default().trim().to_owned();
        let Some((user, password)) = line.split_once(':').filter(|(user, _)| !user.is_empty()) else {
            return Err(wrong("its first line is not USER:PASSWORD"));
        };
        Ok(Some(Via { proxy: proxy.basic_auth(user, password), redactor: Redactor::new(user, password) }))
    }

    /// The certificates of the CA file.
    fn authorities(&self) -> Result<Option<Vec<Certificate>>, GitError> {
        let Some(path) = &self.ca_file else { return Ok(None) };
        let wrong = |detail: String| GitError::Authority { path: path.display().to_string(), detail };
        let pem = read(path).map_err(|error| wrong(error.to_string()))?;
        match Certificate::from_pem_bundle(&pem) {
            Ok(found) if !found.is_empty() => Ok(Some(found)),
            _ => Err(wrong("it holds no certificate".to_owned())),
        }
    }

    /// A transport to that server, and what must not be seen of the way there. Certificates are only loaded where there
    /// is TLS.
    ///
    /// # Errors
    /// [`GitError::Proxy`], [`GitError::Authority`].
    pub(super) fn transport(
        &self,
        url: &gix::Url,
        version: Protocol,
    ) -> Result<(Box<dyn Transport + Send>, Redactor), GitError> {
        let via = self.via()?;
        let redactor = via.as_ref().map(|via| via.redactor.clone()).unwrap_or_default();
        let plain = url.scheme == Scheme::Http
            && !self.proxy.as_deref().is_some_and(|proxy| proxy.to_ascii_lowercase().starts_with("https:"));
        let authorities = if plain { None } else { self.authorities()? };
        let target: Option<reqwest::Url> = url.to_bstring().to_string().parse().ok();
        // Does nothing when the program has chosen one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut transport = http::connect::<http::reqwest::Remote>(url.clone(), version, false);
        let backend = http::reqwest::Options {
            configure_client: Some(Box::new(move |builder| {
                let mut builder = builder.timeout(PATIENCE).no_proxy();
                if plain {
                    builder = builder.tls_certs_only([]);
                } else if let Some(authorities) = &authorities {
                    builder = builder.tls_certs_merge(authorities.clone());
                }
                let of_environment = || reqwest::Proxy::all(Way::to(target.as_ref()?, None).proxy?).ok();
                if let Some(proxy) = via.as_ref().map(|via| via.proxy.clone()).or_else(of_environment) {
                    builder = builder.proxy(proxy);
                }
                Ok(builder)
            })),
            configure_request: None,
        };
        let options = http::Options { backend: Some(Arc::new(Mutex::new(backend))), ..http::Options::default() };
        // Cannot fail: it only stores the options.
        let _ = transport.configure(&options);
        Ok((Box::new(transport), redactor))
    }

    /// Whether what is sent to this machine stays here.
    pub(super) fn stays_here(&self) -> bool {
        self.proxy.is_none()
    }
}

fn refused(proxy: &str, detail: &str) -> GitError {
    GitError::Proxy { proxy: redact::address(proxy), detail: detail.to_owned() }
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(MAX_FILE).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::Network;

    #[test]
    fn a_proxy_is_an_address_without_a_login() {
        for (proxy, problem) in [
            ("http://proxy.example.com:3128", None),
            ("https://proxy.example.com", None),
            ("proxy.example.com:3128", Some("http://")),
            ("socks5://proxy.example.com", Some("http://")),
            ("http://", Some("read")),
            ("http://u:s3cret@proxy.example.com:3128", Some("login")),
            ("http://s3cret@proxy.example.com:3128", Some("login")),
        ] {
            let checked = Network { proxy: Some(proxy.to_owned()), ..Network::default() }.check();
            match (checked, problem) {
                (Ok(()), None) => {}
                (Err(error), Some(problem)) => {
                    let text = format!("{error} {error:?}");
                    assert!(text.contains(problem) && !text.contains("s3cret"), "{text}");
                    assert!(error.hint().contains("--git-proxy-login-file"), "{}", error.hint());
                }
                (result, _) => panic!("{proxy}: {result:?}"),
            }
        }
        assert!(Network { proxy_login_file: Some("x".into()), ..Network::default() }.check().is_err());
    }

    #[test]
    fn files_that_cannot_be_used_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let network = Network {
            ca_file: Some(file.clone()),
            proxy: Some("http://proxy.example.com".to_owned()),
            proxy_login_file: Some(file.clone()),
        };
        let name = file.display().to_string();
        for text in [None, Some(""), Some("s3cret\n"), Some(":s3cret\n")] {
            if let Some(text) = text {
                fs::write(&file, text).unwrap();
            }
            let error = network.via().map(|_| ()).unwrap_err();
            assert!(error.to_string().contains(&name) && !error.to_string().contains("s3cret"), "{error}");
            let error = network.authorities().unwrap_err();
            assert!(error.to_string().contains(&name), "{error}");
            assert!(error.hint().contains("BEGIN CERTIFICATE"), "{}", error.hint());
        }
        fs::write(&file, "user:pass:word\nmore\n").unwrap();
        assert!(network.via().unwrap().is_some());
    }
}
