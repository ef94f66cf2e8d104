//! Where keyrings come from.

use std::{collections::HashMap, future::Future, sync::Arc};

use tokio::sync::{Mutex, OnceCell};

use super::keyring::Keyring;
use crate::model::{failure::Failure, resolution::CredentialSource};

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

/// Whether a keyring must be re-read.
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
                tracing::warn!(credentials = %shown(source), "{warning}");
            }
            Ok(Arc::new(keyring))
        })
        .await
        .clone()
    }
}

/// A source in a log.
fn shown(source: &CredentialSource) -> String {
    match source {
        CredentialSource::Controller => "the controller's own".to_owned(),
        CredentialSource::Secrets { namespace, names } => format!("Secret/{namespace}/{}", names.join(",")),
    }
}
