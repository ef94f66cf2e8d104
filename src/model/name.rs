//! Names of tenants, environments and images, and the identity of an environment.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::text::is_unseen;

/// The tenant of `environments/<name>.yaml`, a file without a tenant's directory.
pub const DEFAULT_TENANT: &str = "default";

/// The longest name that is taken, in bytes. Object names derive from it with a hash, so this only bounds what is shown.
pub const MAX_NAME: usize = 200;

/// A name with no slash, no character that is not seen and no dot at its start: a tenant, an environment or an image.
///
/// It may hold upper case, dots and letters beyond ASCII; object names are slugs of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

/// Why a text is no [`Name`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing, or only white space.
    #[error("a name cannot be empty")]
    Empty,
    /// `.`, `..`, or a name that starts with a dot.
    #[error("the name `{0}` starts with a dot")]
    Dots(String),
    /// A slash, a character that is not seen, or white space at an end.
    #[error("the name {0:?} holds {1:?}, which is not allowed in a name")]
    Character(String, char),
    /// Longer than [`MAX_NAME`] bytes.
    #[error("the name `{0}…` has {1} bytes, at most {MAX_NAME} are allowed")]
    TooLong(String, usize),
}

impl Name {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        if text.trim().is_empty() {
            return Err(NameError::Empty);
        }
        if text.len() > MAX_NAME {
            return Err(NameError::TooLong(text.chars().take(40).collect(), text.len()));
        }
        if text.starts_with('.') {
            return Err(NameError::Dots(text.to_owned()));
        }
        let forbidden = |c: char| c == '/' || c == '\\' || is_unseen(c) || (c.is_whitespace() && c != ' ');
        let at_an_end = [text.chars().next(), text.chars().last()].into_iter().flatten().find(|c| c.is_whitespace());
        match text.chars().find(|&c| forbidden(c)).or(at_an_end) {
            Some(c) => Err(NameError::Character(text.to_owned(), c)),
            None => Ok(Self(text.to_owned())),
        }
    }
}

impl TryFrom<String> for Name {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The identity of an environment: where its file is. Shown as `tenant/name`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EnvironmentId {
    /// The directory under `environments/`, or [`DEFAULT_TENANT`].
    pub tenant: Name,
    /// The file's name without `.yaml`.
    pub name: Name,
}

impl EnvironmentId {
    /// The environment `name` of `tenant`.
    pub fn new(tenant: Name, name: Name) -> Self {
        Self { tenant, name }
    }

    /// Where its lockfile is, from the root of the environment repository.
    pub fn lock_path(&self) -> String {
        format!("lock/{}/{}.yaml", self.tenant, self.name)
    }
}

impl fmt::Display for EnvironmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.tenant, self.name)
    }
}

impl FromStr for EnvironmentId {
    type Err = NameError;

    /// Reads `tenant/name`, or `name` of the tenant `default`.
    fn from_str(text: &str) -> Result<Self, NameError> {
        let (tenant, name) = text.split_once('/').unwrap_or((DEFAULT_TENANT, text));
        Ok(Self { tenant: tenant.parse()?, name: name.parse()? })
    }
}

impl TryFrom<String> for EnvironmentId {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<EnvironmentId> for String {
    fn from(id: EnvironmentId) -> Self {
        id.to_string()
    }
}
