//! How registries are reached: mirrors, plain http, private certificate authorities.

use std::{collections::BTreeMap, fmt, str::FromStr};

use super::{
    failure::{Category, Problem},
    reference::DOCKER_HUB,
};

/// What `larder.yaml` says about registries, by their hosts as references name them (see [`registry_host`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registries(pub BTreeMap<String, RegistryOptions>);

impl Registries {
    /// What is said about a host; None for a registry with nothing special.
    pub fn get(&self, host: &str) -> Option<&RegistryOptions> {
        self.0.get(host)
    }
}

/// What `larder.yaml` says about one registry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegistryOptions {
    /// Where its images are looked for first, in this order.
    pub mirrors: Vec<Mirror>,
    /// Whether it is asked over http instead of https.
    pub plain_http: bool,
    /// Authorities that are trusted for its certificate, in addition to the system's.
    pub ca: Option<CertificateAuthority>,
}

/// A registry that serves another one's images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirror {
    /// Its host, with a port if it has one.
    pub host: String,
    /// What stands before the repository's path there, without slashes at its ends; may be empty. With `quay.io`,
    /// `quay.io/a/b` is looked for at `host/quay.io/a/b`.
    pub prefix: String,
    /// Whether it is asked over http instead of https.
    pub plain_http: bool,
}

/// Certificates of authorities that are trusted in addition to the system's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateAuthority {
    /// PEM text, one or more certificates.
    Pem(String),
    /// The path of such a text on the controller's machine.
    File(String),
}

/// Why a text is not a registry's or mirror's address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a valid address of a {what}")]
pub struct AddressError {
    /// The text.
    text: String,
    /// `registry` or `mirror`.
    what: &'static str,
}

impl AddressError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self.what {
            "mirror" => {
                "write host, host:port or host:port/path, with http:// before it for plain http; no user, query or white space"
            }
            _ => "write the host as in image references: quay.io, registry.example.com:5000, docker.io",
        }
    }
}

impl From<AddressError> for Problem {
    fn from(error: AddressError) -> Self {
        Problem::new(Category::Schema, error.to_string()).hint(error.hint())
    }
}

/// A registry's host as references name it, from any way to write it: without scheme, `/v1/` and `/v2/`, and
/// `docker.io` for Docker Hub.
///
/// # Errors
/// When something else than a host (and port) remains.
pub fn registry_host(text: &str) -> Result<String, AddressError> {
    let (_, host, path) = split_address(text, "registry")?;
    if !path.is_empty() {
        return Err(AddressError { text: text.to_owned(), what: "registry" });
    }
    let host = host.to_ascii_lowercase();
    Ok(match host.as_str() {
        "index.docker.io" | "registry-1.docker.io" | "registry.hub.docker.com" => DOCKER_HUB.to_owned(),
        _ => host,
    })
}

impl FromStr for Mirror {
    type Err = AddressError;

    /// Reads `host[:port][/path]`, with `https://` or `http://` before it.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (plain_http, host, path) = split_address(text, "mirror")?;
        Ok(Self { host: host.to_ascii_lowercase(), prefix: path.to_owned(), plain_http })
    }
}

impl fmt::Display for Mirror {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.plain_http { "http" } else { "https" };
        write!(f, "{scheme}://{}", self.host)?;
        if !self.prefix.is_empty() {
            write!(f, "/{}", self.prefix)?;
        }
        Ok(())
    }
}

/// Whether it is plain http, host and path; a path that is only the API's version counts as none.
fn split_address<'a>(text: &'a str, what: &'static str) -> Result<(bool, &'a str, &'a str), AddressError> {
    let error = || AddressError { text: text.to_owned(), what };
    let (plain_http, rest) = match text.split_once("://") {
        Some(("https", rest)) => (false, rest),
        Some(("http", rest)) => (true, rest),
        Some(_) => return Err(error()),
        None => (false, text),
    };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let path = path.trim_matches('/');
    let path = if matches!(path, "v1" | "v2") { "" } else { path };
    let host_ok = !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b".:-[]".contains(&b));
    let path_ok = path.is_empty()
        || path.split('/').all(|part| {
            !matches!(part, "" | "." | "..") && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-:".contains(&b))
        });
    if host_ok && path_ok { Ok((plain_http, host, path)) } else { Err(error()) }
}

#[cfg(test)]
mod tests {
    use super::{Mirror, registry_host};

    #[test]
    fn mirrors_are_read_from_addresses() {
        let cases = [
            ("http://127.0.0.1:5000/quay.io", Some(("127.0.0.1:5000", "quay.io", true))),
            ("mirror.example.com/quay", Some(("mirror.example.com", "quay", false))),
            ("https://Mirror.EXAMPLE.com", Some(("mirror.example.com", "", false))),
            ("https://mirror.example.com", Some(("mirror.example.com", "", false))),
            ("https://mirror.example.com/", Some(("mirror.example.com", "", false))),
            ("https://mirror.example.com/v2/", Some(("mirror.example.com", "", false))),
            ("http://[::1]:5000/a/b/", Some(("[::1]:5000", "a/b", true))),
            ("ftp://mirror.example.com", None),
            ("https://user:secret@mirror.example.com", None),
            ("https://mirror.example.com/a?b=c", None),
            ("mirror.example.com/a/../b", None),
            ("https://", None),
            ("", None),
            ("mirror example", None),
        ];
        for (text, expected) in cases {
            let mirror = text.parse::<Mirror>().ok();
            let found = mirror.as_ref().map(|m| (m.host.as_str(), m.prefix.as_str(), m.plain_http));
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn registries_have_one_name() {
        let cases = [
            ("docker.io", Some("docker.io")),
            ("https://docker.io", Some("docker.io")),
            ("index.docker.io", Some("docker.io")),
            ("QUAY.io", Some("quay.io")),
            ("https://index.docker.io/v1/", Some("docker.io")),
            ("registry-1.docker.io", Some("docker.io")),
            ("https://registry.example.com", Some("registry.example.com")),
            ("https://registry.example.com/v2/", Some("registry.example.com")),
            ("registry.example.com:5000/", Some("registry.example.com:5000")),
            ("registry.example.com/team", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(registry_host(text).ok().as_deref(), expected, "{text}");
        }
    }
}
