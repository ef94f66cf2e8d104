//! References that are allowed and yet look like a mistake.

use std::fmt;

use super::{DOCKER_HUB, ImageReference};

/// What looks like a mistake in a reference that is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReferenceLint {
    /// `example.com:5000`: a single part is a repository of Docker Hub, whatever it looks like.
    DottedName(String),
    /// `my_host/app`: Docker Hub has no organization with an underscore, and no host has one.
    Underscore(String),
    /// `harbor.example.com/5000/app`: was `harbor.example.com:5000/app` meant?
    NumericPath {
        /// The host.
        host: String,
        /// The first part of the path, all digits.
        part: String,
    },
}

impl fmt::Display for ReferenceLint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DottedName(name) => write!(
                f,
                "`{name}` is a repository of Docker Hub, not a registry; did you mean a registry? Then the repository's path is missing behind it"
            ),
            Self::Underscore(part) => write!(
                f,
                "`{part}` is an organization of Docker Hub, which allows no underscore there; did you mean a registry? A host name has no underscore either"
            ),
            Self::NumericPath { host, part } => {
                write!(f, "the path at {host} starts with `{part}`, all digits; did you mean `{host}:{part}`?")
            }
        }
    }
}

pub(super) fn lints(reference: &ImageReference) -> Vec<ReferenceLint> {
    let first = reference.path().split('/').next().unwrap_or_default();
    if reference.host() != DOCKER_HUB {
        let numeric = !first.is_empty() && first.bytes().all(|b| b.is_ascii_digit());
        return if numeric && !reference.host().contains(':') {
            vec![ReferenceLint::NumericPath { host: reference.host().to_owned(), part: first.to_owned() }]
        } else {
            Vec::new()
        };
    }
    match reference.path().strip_prefix("library/") {
        Some(name) => {
            let numeric_tag = reference.tag().is_some_and(|tag| tag.bytes().all(|b| b.is_ascii_digit()));
            let host_like = name.contains('.') || (numeric_tag && name == "localhost");
            if host_like { vec![ReferenceLint::DottedName(name.to_owned())] } else { Vec::new() }
        }
        None if first.contains('_') => vec![ReferenceLint::Underscore(first.to_owned())],
        None => Vec::new(),
    }
}
