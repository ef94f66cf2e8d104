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

/// Where credentials are kept. They are re-read for each use, so that they can be rotated.
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
            (CredentialSource::Secrets { .. }, None) => {
                let mut keyring = self.controller()?;
                if self.config_file.is_none() {
                    keyring.warn(
                        "pull secrets are not read, as there is no usable kubeconfig here: give one with --kubeconfig, or \
                         a docker config.json with --registry-config",
                    );
                }
                Ok(keyring)
            }
            (CredentialSource::Controller, _) => self.controller(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CredentialSource, Credentials as _, StoredCredentials};

    #[tokio::test]
    async fn without_a_cluster_pull_secrets_are_said_not_to_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.json");
        std::fs::write(&file, "{}").unwrap();
        let secrets = CredentialSource::Secrets { namespace: "a".to_owned(), names: vec!["pull".to_owned()] };
        for (file, source, expected) in [
            (None, &secrets, true),
            (None, &CredentialSource::Controller, false),
            (Some(file.as_path()), &secrets, false),
        ] {
            let keyring = StoredCredentials::new(None, file).unwrap().keyring(source, false).await.unwrap();
            let said = keyring.warnings().iter().any(|warning| warning.contains("--kubeconfig"));
            assert_eq!(said, expected, "{source:?}");
            // Nothing is known of Secrets that were not looked at.
            assert_eq!(keyring.unusable(&"quay.io/a/b".parse().unwrap()), None);
        }
    }
}
