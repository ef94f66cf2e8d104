//! The JSON Schemas (draft 2020-12) of all kinds of files, from the types that read them.

use schemars::{Schema, schema_for};
use serde_json::Value;

use super::{
    super::lockfile,
    file::{
        environment::EnvironmentFile, jupyter_image_puller::JupyterImagePullerFile, settings::SettingsFile,
        submarine::SubmarineFile,
    },
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
