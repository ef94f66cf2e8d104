//! The document of `larder status --target dir:PATH --output json`.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Document, Problem};

/// Whether a directory holds the manifests that the lock leads to.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DirectoryStatus {
    /// Each environment, in order.
    pub environments: Vec<Environment>,
}

impl Document for DirectoryStatus {
    const KIND: &'static str = "DirectoryStatus";
}

/// One environment.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Environment {
    /// Which one: `tenant/name`.
    pub environment: String,
    /// What the directory has of it.
    pub state: State,
    /// What is wrong with it.
    pub problems: Vec<Problem>,
}

/// What a directory has of an environment.
#[derive(Debug, Serialize, JsonSchema)]
pub enum State {
    /// All manifests that the lock leads to.
    Applied,
    /// Other manifests, or none.
    NotApplied,
    /// Its file suspends it: what the directory has stays.
    Suspended,
    /// Its file or lockfile is broken, or a file in the directory is not larder's.
    Failed,
}
