//! The JSON Schemas (draft 2020-12) of all kinds of files, from the types that read them.

use schemars::{Schema, schema_for};
use serde_json::Value;

use super::{
    environment::{
        dialect::{jupyter_image_puller::JupyterImagePullerFile, submarine::SubmarineFile},
        file::EnvironmentFile,
    },
    lockfile,
    settings::file::SettingsFile,
};

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// `larder.yaml`.
    Settings,
    /// `environments/<tenant>/<name>.yaml`.
    Environment,
    /// `lock/<tenant>/<name>.yaml`.
    Lockfile,
    /// Submarine's list of images, in an environment's place.
    JupyterImagePuller,
    /// Submarine's environment, in an environment's place.
    SubmarineEnvironment,
}

impl FileKind {
    /// All of them, the most important first.
    pub const ALL: [Self; 5] =
        [Self::Settings, Self::Environment, Self::Lockfile, Self::JupyterImagePuller, Self::SubmarineEnvironment];

    /// Its name in commands and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Settings => "settings",
            Self::Environment => "environment",
            Self::Lockfile => "lockfile",
            Self::JupyterImagePuller => "jupyter-image-puller",
            Self::SubmarineEnvironment => "submarine-environment",
        }
    }

    /// Where such files are in an environment repository.
    pub fn place(self) -> &'static str {
        match self {
            Self::Settings => "larder.yaml",
            Self::Environment | Self::JupyterImagePuller => "environments/<tenant>/<name>.yaml",
            Self::Lockfile => "lock/<tenant>/<name>.yaml",
            Self::SubmarineEnvironment => "environments/<tenant>/<name>.json",
        }
    }

    /// Its JSON Schema.
    pub fn schema(self) -> Value {
        let schema: Schema = match self {
            Self::Settings => schema_for!(SettingsFile),
            Self::Environment => schema_for!(EnvironmentFile),
            Self::Lockfile => lockfile::schema(),
            Self::JupyterImagePuller => schema_for!(JupyterImagePullerFile),
            Self::SubmarineEnvironment => schema_for!(SubmarineFile),
        };
        schema.to_value()
    }
}

#[cfg(test)]
mod tests {
    use super::{EnvironmentFile, SettingsFile};

    #[test]
    fn schemas_are_those_of_the_values() {
        let schema = serde_json::to_value(schemars::schema_for!(EnvironmentFile)).unwrap();
        assert_eq!(schema["title"], "Environment");
        let image = &schema["$defs"]["ImageEntry"];
        assert_eq!(image["properties"]["image"]["type"], "string");
        assert_eq!(image["required"], serde_json::json!(["name", "image"]));
        assert_eq!(image["additionalProperties"], false);
        let schema = serde_json::to_value(schemars::schema_for!(SettingsFile)).unwrap();
        assert_eq!(schema["$defs"]["Tenant"]["properties"]["namespace"]["type"], "string");
        let tenants = &schema["$defs"]["SettingsSpec"]["properties"]["tenants"];
        assert!(tenants.to_string().contains("additionalProperties"), "{tenants}");
    }
}
