//! The document of `larder validate --output json`.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Document, Problem};

/// What `larder validate` found.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Validation {
    /// Environments that are valid.
    pub valid: usize,
    /// Files under `environments/` whose name begins with a dot, or whose directory's does: they are ignored.
    pub ignored: usize,
    /// What is wrong.
    pub errors: Vec<Problem>,
    /// What is allowed and looks like a mistake.
    pub warnings: Vec<Problem>,
}

impl Document for Validation {
    const KIND: &'static str = "Validation";
}
