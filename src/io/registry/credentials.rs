//! Where keyrings come from.

use std::{collections::HashMap, future::Future, path::PathBuf, sync::Arc};

use tokio::sync::{Mutex, OnceCell};

use super::keyring::Keyring;
use crate::model::{
    failure::{Category, Failure, Problem},
    resolution::CredentialSource,
};

/// Gives keyrings to the registry client; the cluster's adapter gives those of Secrets.
pub trait Credentials: Sync {
    /// The keyring of a source. `fresh`: a credential was refused, so that nothing cached will do.
    ///
    /// A Secret that does not exist is best an empty keyring with a warning: the image may be public, and the kubelet
    /// pulls it then as well.
    ///
    /// # Errors
    /// When the source cannot be read; every image that needs it fails then.
    fn keyring(&self, source: &CredentialSource, fresh: bool) -> impl Future<Output = Result<Keyring, Failure>> + Send;
}

/// The controller's own credentials: a docker config file, or none.
#[derive(Clone, Debug, Default)]
pub struct ControllerCredentials {
    /// The file, read anew for each pass and after a refusal.
    pub docker_config: Option<PathBuf>,
}

impl Credentials for ControllerCredentials {
    async fn keyring(&self, source: &CredentialSource, _fresh: bool) -> Result<Keyring, Failure> {
        let path = match (source, &self.docker_config) {
            (CredentialSource::Secrets { .. }, _) => {
                return Err(Problem::new(
                    Category::Credentials,
                    "pull secrets are read from a cluster, and there is none here",
                )
                .hint("give a kubeconfig, or a docker config file that has the same credentials")
                .into());
            }
            (CredentialSource::Controller, None) => return Ok(Keyring::default()),
            (CredentialSource::Controller, Some(path)) => path,
        };
        let bytes = tokio::fs::read(path).await.map_err(|error| {
            Problem::new(
                Category::Credentials,
                format!("the docker config file {} cannot be read: {error}", path.display()),
            )
            .hint("check the path, and that the controller's user may read it")
        })?;
        Keyring::parse_dockerconfigjson(&bytes).map_err(|error| {
            let mut problem = Problem::from(error);
            problem.message = format!("{}: {}", path.display(), problem.message);
            problem.into()
        })
    }
}

/// Whether a keyring must be read anew.
type Fresh = bool;

/// The keyrings of one pass: each source is read once, and once more after a refusal.
pub(super) struct Keyrings<'a, C> {
    credentials: &'a C,
    read: Mutex<HashMap<(CredentialSource, Fresh), Slot>>,
}

type Slot = Arc<OnceCell<Result<Arc<Keyring>, Failure>>>;

impl<'a, C: Credentials> Keyrings<'a, C> {
    pub(super) fn new(credentials: &'a C) -> Self {
        Self { credentials, read: Mutex::default() }
    }

    pub(super) async fn get(&self, source: &CredentialSource, fresh: Fresh) -> Result<Arc<Keyring>, Failure> {
        let slot = self.read.lock().await.entry((source.clone(), fresh)).or_default().clone();
        slot.get_or_init(|| async {
            let keyring = self.credentials.keyring(source, fresh).await?;
            for warning in keyring.warnings().iter().filter(|_| !fresh) {
                tracing::warn!(?source, "{warning}");
            }
            Ok(Arc::new(keyring))
        })
        .await
        .clone()
    }
}
