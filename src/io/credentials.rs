//! Credentials for registries: pull secrets from the cluster, and a docker config file.

use std::path::{Path, PathBuf};

use super::{
    cluster::KubeCluster,
    registry::{Credentials, Keyring},
};
use crate::model::{
    failure::{Category, Failure, Problem},
    resolution::CredentialSource,
};

/// Where credentials are kept. They are read anew for each use, so that they can be rotated.
pub struct StoredCredentials {
    cluster: Option<KubeCluster>,
    config_file: Option<PathBuf>,
}

impl StoredCredentials {
    /// Pull secrets come from `cluster`; without one, their images use the docker config file as well, as a person's own
    /// `docker login` would. Fails when that file cannot be read now.
    pub fn new(cluster: Option<KubeCluster>, config_file: Option<&Path>) -> Result<Self, Failure> {
        let credentials = Self { cluster, config_file: config_file.map(Path::to_owned) };
        credentials.controller()?;
        Ok(credentials)
    }

    /// The controller's own credentials, or none.
    fn controller(&self) -> Result<Keyring, Failure> {
        let Some(path) = &self.config_file else {
            return Ok(Keyring::default());
        };
        let bytes = std::fs::read(path).map_err(|error| {
            Problem::new(Category::Credentials, format!("{} cannot be read: {error}", path.display()))
                .hint("--registry-config names a docker config.json")
        })?;
        Keyring::parse_dockerconfigjson(&bytes).map_err(|error| {
            Problem::new(Category::Credentials, format!("{}: {error}", path.display()))
                .hint("a docker config.json has an object `auths` by registry host")
                .into()
        })
    }
}

impl Credentials for StoredCredentials {
    async fn keyring(&self, source: &CredentialSource, _fresh: bool) -> Result<Keyring, Failure> {
        match (source, &self.cluster) {
            (CredentialSource::Secrets { namespace, names }, Some(cluster)) => {
                let mut keyring = Keyring::default();
                for name in names {
                    keyring.merge(cluster.pull_secret(namespace, name).await?);
                }
                Ok(keyring)
            }
            _ => self.controller(),
        }
    }
}
