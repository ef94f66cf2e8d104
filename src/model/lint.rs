//! What is allowed and yet looks like a mistake: the lints by name.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A lint. Its name is what a file allows it by; `docs/reference/lints.md` explains each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Lint {
    /// A reference without a tag, or with the tag `latest`.
    MutableTag,
    /// A path that begins with digits only, as in `harbor.example.com/5000/app`.
    PortAsPath,
    /// A repository of Docker Hub whose name looks like a host.
    RegistryMeant,
    /// Two environments of a tenant that bring the same image to the same nodes.
    SameImage,
    /// A pool that no environment uses.
    UnusedPool,
    /// Nearly as many pullers on a node as a node can hold pods.
    ManyPullers,
    /// References that are resolved more often than once a minute.
    ShortRefresh,
    /// A confirmed removal of something that is still there.
    StaleConfirmation,
}

impl Lint {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::MutableTag,
        Self::PortAsPath,
        Self::RegistryMeant,
        Self::SameImage,
        Self::UnusedPool,
        Self::ManyPullers,
        Self::ShortRefresh,
        Self::StaleConfirmation,
    ];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MutableTag => "mutable-tag",
            Self::PortAsPath => "port-as-path",
            Self::RegistryMeant => "registry-meant",
            Self::SameImage => "same-image",
            Self::UnusedPool => "unused-pool",
            Self::ManyPullers => "many-pullers",
            Self::ShortRefresh => "short-refresh",
            Self::StaleConfirmation => "stale-confirmation",
        }
    }
}

impl fmt::Display for Lint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::Lint;

    #[test]
    fn names_are_those_of_files() {
        for lint in Lint::ALL {
            assert_eq!(serde_json::to_value(lint).unwrap(), lint.as_str());
        }
    }
}
