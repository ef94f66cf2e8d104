//! Webhooks of forges and registries: `POST /hooks/SENDER`, on a listener of their own.
//!
//! A delivery only says where to look. Nothing of it is believed, and nothing of it is read before its sender has shown
//! that it knows the secret.

mod answer;
mod body;
mod read;
mod replay;
mod secrets;
mod sender;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use axum::{Router, extract::Request};
use tokio_util::sync::CancellationToken;

use self::replay::Seen;
pub use self::secrets::SecretFile;
use super::listener::{self, WHOLE_TIME};
use crate::metrics::Metrics;
use crate::wake::Wake;

/// What webhooks need.
pub struct Hooks {
    secrets: SecretFile,
    wake: Wake,
    metrics: Arc<Metrics>,
    seen: Seen,
    /// How long a sender may take for all of a request.
    patience: Duration,
    /// When refusals were last logged, by outcome: clients without the secret must neither fill the log nor hide
    /// in it that there is no secret.
    complained: Mutex<BTreeMap<&'static str, Instant>>,
}

impl Hooks {
    /// Webhooks of senders that know one of these secrets, whose news go to `wake`.
    pub fn new(secrets: SecretFile, wake: Wake, metrics: Arc<Metrics>) -> Self {
        let (seen, complained) = (Seen::default(), Mutex::default());
        Self { secrets, wake, metrics, seen, patience: WHOLE_TIME, complained }
    }

    /// Gives senders so much time for a request, instead of 15 seconds.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Serves until `shutdown`.
    ///
    /// # Errors
    /// When the port cannot be had.
    pub async fn serve(self, address: SocketAddr, shutdown: CancellationToken) -> std::io::Result<SocketAddr> {
        let (patience, hooks) = (self.patience, Arc::new(self));
        let answer = move |request: Request| {
            let hooks = hooks.clone();
            async move { hooks.answer(request).await }
        };
        listener::serve(address, Router::new().fallback(answer), patience, shutdown).await
    }
}
