//! Submarine's environment, as its REST interface has it and as it stands.

use schemars::JsonSchema;
use serde::{Deserialize, de::IgnoredAny};

use super::{super::located::Located, anything};

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
    #[serde(default)]
    pub docker_auth_spec: Option<DockerAuthSpec>,
    /// A sentence for menus.
    #[serde(default)]
    pub description: Option<Located<String>>,
    /// Conda's and pip's packages; not used: images are pulled, not built.
    #[serde(default)]
    #[schemars(schema_with = "anything")]
    #[expect(dead_code, reason = "documents a field that is not used")]
    pub kernel_spec: IgnoredAny,
}

/// Credentials, by the name of a Secret. A password in Git is refused, with the command that makes a Secret of it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct DockerAuthSpec {
    /// `secret`; `password` is refused.
    #[serde(default, rename = "type")]
    pub kind: Option<Located<DockerAuthType>>,
    /// A Secret of the tenant's namespace with registry credentials.
    #[serde(default)]
    pub secret: Option<Located<String>>,
    /// Refused, like the password that it comes with.
    #[serde(default)]
    pub username: Option<Located<String>>,
    /// Refused: credentials must not be committed to Git.
    #[serde(default)]
    pub password: Option<Located<String>>,
    /// Not used.
    #[serde(default)]
    #[schemars(schema_with = "anything")]
    #[expect(dead_code, reason = "documents a field that is not used")]
    pub email: IgnoredAny,
}

/// How the credentials are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DockerAuthType {
    /// By the name of a Secret.
    Secret,
    /// By user name and password.
    Password,
}
