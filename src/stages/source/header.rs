//! How every file starts: by which kind it is.

use serde::{Deserialize, de::IgnoredAny};

use super::located::{Located, Place};
use crate::model::failure::{Category, Problem};

/// The version of larder's own kinds.
pub const API_VERSION: &str = "larder.dev/v1alpha1";

/// A kind of file.
#[derive(Clone, Copy)]
pub struct Kind {
    /// Its `apiVersion`.
    pub version: &'static str,
    /// Its `kind`.
    pub name: &'static str,
    /// The most mappings, lists and scalars of such a file, aliases expanded: a limit that a thousand times what is
    /// usual stays below, and an alias bomb does not.
    pub max_nodes: usize,
}

impl Kind {
    /// Its first two lines, for hints.
    pub fn beginning(self) -> String {
        format!("`apiVersion: {}` and `kind: {}`", self.version, self.name)
    }
}

/// How every file starts; read leniently, to tell files of other kinds.
#[derive(Debug, Deserialize)]
pub struct Header {
    /// `apiVersion`.
    #[serde(rename = "apiVersion")]
    pub api_version: Option<Located<String>>,
    /// `kind`.
    pub kind: Option<Located<String>>,
    /// What only a Submarine environment has.
    #[serde(rename = "dockerImage")]
    pub docker_image: Option<IgnoredAny>,
    /// What SOPS adds to the files that it encrypts.
    pub sops: Option<IgnoredAny>,
}

/// What is wrong with a file's first two fields, as far as they are there.
pub fn wrong_header(
    api_version: Option<&Located<String>>,
    kind: Option<&Located<String>>,
    expected: Kind,
) -> Option<(Place, Problem)> {
    let hint = format!("write {}", expected.beginning());
    match (api_version, kind) {
        (_, Some(kind)) if kind.value != expected.name => Some((
            kind.place,
            Problem::new(Category::Schema, format!("the kind `{}` does not belong here", kind.value)).hint(hint),
        )),
        (Some(version), _) if version.value != expected.version => Some((
            version.place,
            Problem::new(Category::Schema, format!("the apiVersion `{}` is not known", version.value)).hint(hint),
        )),
        _ => None,
    }
}
