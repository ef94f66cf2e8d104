//! Where a repository is looked for: mirrors, then the registry itself.

use reqwest::Url;

use super::error::{Kind, RegistryError};
use crate::model::{
    reference::{DOCKER_HUB, ImageReference},
    registries::{Mirror, Registries},
};

/// Where Docker Hub's API is.
pub(super) const DOCKER_HUB_API: &str = "registry-1.docker.io";

/// A place where a repository is looked for.
#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    /// The host that is asked, with a port if it has one.
    pub(super) host: String,
    /// The host by which credentials and options are found. A mirror has its own: the registry's are never sent to it.
    pub(super) options_of: String,
    /// The repository's path there.
    pub(super) path: String,
    pub(super) plain_http: bool,
    pub(super) is_mirror: bool,
    /// The registry's host, told to a mirror that may serve several.
    namespace: Option<String>,
}

impl Endpoint {
    /// Where a reference is looked for, in this order; the registry itself is last.
    pub(super) fn all(registries: &Registries, reference: &ImageReference) -> Vec<Self> {
        let options = registries.get(reference.host());
        let mirrors = options.map(|options| options.mirrors.as_slice()).unwrap_or_default();
        let mut endpoints: Vec<Self> =
            mirrors.iter().map(|mirror| Self::mirror(registries, mirror, reference)).collect();
        let host = if reference.host() == DOCKER_HUB { DOCKER_HUB_API } else { reference.host() };
        endpoints.push(Self {
            host: host.to_owned(),
            options_of: reference.host().to_owned(),
            path: reference.path().to_owned(),
            plain_http: options.is_some_and(|options| options.plain_http),
            is_mirror: false,
            namespace: None,
        });
        endpoints
    }

    fn mirror(registries: &Registries, mirror: &Mirror, reference: &ImageReference) -> Self {
        let path = match mirror.prefix.as_str() {
            "" => reference.path().to_owned(),
            prefix => format!("{prefix}/{}", reference.path()),
        };
        Self {
            host: mirror.host.clone(),
            options_of: mirror.host.clone(),
            path,
            plain_http: mirror.plain_http || registries.get(&mirror.host).is_some_and(|options| options.plain_http),
            is_mirror: true,
            // As containerd does: https://github.com/containerd/containerd/blob/main/docs/hosts.md
            namespace: mirror.prefix.is_empty().then(|| reference.host().to_owned()),
        }
    }

    /// `https://host`, the name under which tokens are kept.
    pub(super) fn origin(&self) -> String {
        format!("{}://{}", if self.plain_http { "http" } else { "https" }, self.host)
    }

    /// The address of a `manifests/…` or `blobs/…` of the repository.
    pub(super) fn url(&self, what: &str) -> Result<Url, RegistryError> {
        let mut url = Url::parse(&format!("{}/v2/{}/{what}", self.origin(), self.path)).map_err(|error| {
            RegistryError::new(Kind::Unreachable, &self.host, format!("its address is not valid: {error}"))
        })?;
        if let Some(namespace) = &self.namespace {
            url.query_pairs_mut().append_pair("ns", namespace);
        }
        Ok(url)
    }
}

#[cfg(test)]
mod tests {
    use super::Endpoint;
    use crate::model::registries::{Registries, RegistryOptions};

    #[test]
    fn endpoints() {
        let mut registries = Registries::default();
        let mirrors = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        registries.0.insert(
            "quay.io".to_owned(),
            RegistryOptions {
                mirrors: mirrors(&["http://127.0.0.1:5000/quay.io", "mirror.example.com"]),
                ..Default::default()
            },
        );
        registries
            .0
            .insert("plain.example.com:5000".to_owned(), RegistryOptions { plain_http: true, ..Default::default() });
        let cases: [(&str, &[&str]); 5] = [
            // Docker Hub's API has a host of its own
            ("debian", &["https://registry-1.docker.io/v2/library/debian/manifests/x"]),
            ("registry.example.com/a/b", &["https://registry.example.com/v2/a/b/manifests/x"]),
            ("plain.example.com:5000/a", &["http://plain.example.com:5000/v2/a/manifests/x"]),
            // this machine is not an exception
            ("localhost/app:dev", &["https://localhost/v2/app/manifests/x"]),
            (
                "quay.io/a/b",
                &[
                    "http://127.0.0.1:5000/v2/quay.io/a/b/manifests/x",
                    "https://mirror.example.com/v2/a/b/manifests/x?ns=quay.io",
                    "https://quay.io/v2/a/b/manifests/x",
                ],
            ),
        ];
        for (reference, expected) in cases {
            let endpoints = Endpoint::all(&registries, &reference.parse().unwrap());
            let urls: Vec<String> =
                endpoints.iter().map(|endpoint| endpoint.url("manifests/x").unwrap().to_string()).collect();
            assert_eq!(urls, expected, "{reference}");
        }
    }
}
