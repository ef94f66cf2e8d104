//! News from outside: something may have changed. News say where to look; what they claim is never believed.

use super::{
    reference::ImageReference,
    registries::{Registries, registry_host},
};

/// One thing that may have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// A branch may have moved.
    Branch {
        /// Its name without `refs/heads/`; none when it is not known.
        name: Option<String>,
        /// Where it is said to be now, as 40 hexadecimal digits. Only says how long it is worth to look.
        commit: Option<String>,
    },
    /// A tag of an image may have moved.
    Moved(Moved),
}

/// A tag that may have moved.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moved {
    /// The registry's host as references name it. None where the sender knows itself by another name than its users do.
    host: Option<String>,
    /// The repository's path at the registry.
    path: String,
    tag: String,
}

impl Moved {
    /// The tag of a repository, at a host or at any. None for what cannot be part of a reference.
    pub fn new(host: Option<&str>, path: &str, tag: &str) -> Option<Self> {
        let host = host.map(registry_host).transpose().ok()?;
        let named = host.as_deref().unwrap_or("any.invalid");
        if tag.is_empty() {
            return None;
        }
        let reference: ImageReference = format!("{named}/{path}:{tag}").parse().ok()?;
        let tag = reference.tag()?.to_owned();
        reference.digest().is_none().then(|| Self { host, path: reference.path().to_owned(), tag })
    }

    /// Whether the tag is the one that a reference names, at its registry or at one of the mirrors that serve it. A
    /// reference with a digest is concerned by every tag of its repository: its digest may be there only now.
    pub fn concerns(&self, reference: &ImageReference, registries: &Registries) -> bool {
        if reference.digest().is_none() && reference.tag() != Some(&self.tag) {
            return false;
        }
        let is_host = |host: &str| self.host.as_ref().is_none_or(|own| own.eq_ignore_ascii_case(host));
        if is_host(reference.host()) && self.path == reference.path() {
            return true;
        }
        let mirrors = registries.get(reference.host()).map_or(&[][..], |options| &options.mirrors);
        mirrors.iter().any(|mirror| {
            let path = match mirror.prefix.as_str() {
                "" => Some(self.path.as_str()),
                prefix => self.path.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('/')),
            };
            is_host(&mirror.host) && path == Some(reference.path())
        })
    }
}

impl std::fmt::Display for Moved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(host) = &self.host {
            write!(f, "{host}/")?;
        }
        write!(f, "{}:{}", self.path, self.tag)
    }
}

#[cfg(test)]
mod tests {
    use super::Moved;
    use crate::model::registries::{Registries, RegistryOptions};

    #[test]
    fn a_tag_concerns_the_references_that_name_it() {
        let mirror = |text: &str| RegistryOptions { mirrors: vec![text.parse().unwrap()], ..Default::default() };
        let registries = Registries(
            [
                ("quay.io".to_owned(), mirror("http://127.0.0.1:5000/quay.io")),
                ("ghcr.io".to_owned(), mirror("mirror.example.com")),
            ]
            .into(),
        );
        let digest = format!("quay.io/a/b@sha256:{}", "0".repeat(64));
        for (host, path, tag, reference, expected) in [
            (Some("quay.io"), "a/b", "1", "quay.io/a/b:1", true),
            (Some("QUAY.io"), "a/b", "1", "quay.io/a/b:1", true),
            (Some("quay.io"), "a/b", "2", "quay.io/a/b:1", false),
            (Some("quay.io"), "a/b", "1", "quay.io/a/c:1", false),
            (Some("quay.io"), "a/b", "1", "ghcr.io/a/b:1", false),
            (Some("quay.io"), "a/b", "1", &digest, true),
            // A registry that does not know how it is called.
            (None, "a/b", "1", "quay.io/a/b:1", true),
            (None, "a/b", "1", "registry.example.com:5000/a/b:1", true),
            // At a mirror.
            (None, "quay.io/a/b", "1", "quay.io/a/b:1", true),
            (None, "quay.io.evil/a/b", "1", "quay.io/a/b:1", false),
            (Some("127.0.0.1:5000"), "quay.io/a/b", "1", "quay.io/a/b:1", true),
            (Some("127.0.0.1:5000"), "a/b", "1", "quay.io/a/b:1", false),
            (Some("mirror.example.com"), "a/b", "1", "ghcr.io/a/b:1", true),
            // Docker Hub by any of its names.
            (Some("index.docker.io"), "debian", "12", "debian:12", true),
            (Some("docker.io"), "library/debian", "latest", "debian", true),
        ] {
            let moved = Moved::new(host, path, tag).unwrap_or_else(|| panic!("{path}:{tag}"));
            assert_eq!(moved.concerns(&reference.parse().unwrap(), &registries), expected, "{moved} {reference}");
        }
    }

    #[test]
    fn what_is_no_reference_is_no_news() {
        for (host, path, tag) in [
            (None, "a/b", ""),
            (None, "", "1"),
            (None, "A/B", "1"),
            (None, "a/../b", "1"),
            (None, "a b", "1"),
            (None, "a/b", "1\n2"),
            (None, "a/b", "sha256:00"),
            (None, "a/b@x", "1"),
            (Some("https://user:pass@quay.io"), "a/b", "1"),
            (Some(""), "a/b", "1"),
        ] {
            assert_eq!(Moved::new(host, path, tag), None, "{host:?} {path} {tag}");
        }
    }
}
