//! Submarine's environment, as its REST interface has it and as it stands.

use schemars::JsonSchema;
use serde::{Deserialize, de::IgnoredAny};

use super::auth::Auth;
use crate::stages::source::located::{Located, anything};

/// Submarine's environment, read as an environment with one image. It has no kind: it is told by `dockerImage`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "SubmarineEnvironment")]
pub struct SubmarineFile {
    /// The image's name.
    pub name: Located<String>,
    /// What to pull: `host/path:tag`.
    pub docker_image: Located<String>,
    /// Credentials.
    pub docker_auth_spec: Option<Auth>,
    /// A sentence for menus.
    pub description: Option<Located<String>>,
    /// Conda's and pip's packages; not used: images are pulled, not built.
    #[serde(default)]
    #[schemars(schema_with = "anything")]
    #[expect(dead_code, reason = "documents a field that is not used")]
    pub kernel_spec: IgnoredAny,
}
