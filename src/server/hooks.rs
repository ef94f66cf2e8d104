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
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use axum::body::Body;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{net::TcpListener, sync::Semaphore};
use tokio_util::sync::CancellationToken;

use self::replay::Seen;
pub use self::secrets::SecretFile;
use crate::metrics::Metrics;
use crate::wake::Wake;

/// Connections that are open at most; others wait to be accepted.
const CONNECTIONS: usize = 64;

/// How long a sender may take for the head of a request, and for all of it.
const HEAD_TIME: Duration = Duration::from_secs(5);
const WHOLE_TIME: Duration = Duration::from_secs(15);

/// What webhooks need.
pub struct Hooks {
    secrets: SecretFile,
    wake: Wake,
    metrics: Arc<Metrics>,
    seen: Seen,
    /// How long a sender may take for all of a request.
    patience: Duration,
    /// When refusals were last logged, by outcome: whoever knocks without the secret must neither fill the log nor hide
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
        let listener = TcpListener::bind(address).await?;
        let bound = listener.local_addr()?;
        tokio::spawn(accept(listener, Arc::new(self), shutdown));
        Ok(bound)
    }
}

async fn accept(listener: TcpListener, hooks: Arc<Hooks>, shutdown: CancellationToken) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        // The semaphore is never closed.
        let Ok(permit) = room.clone().acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.cancelled() => return,
        };
        let Ok((stream, _)) = accepted else {
            // No file descriptor is left, or the peer is gone already: not to be tried again at once.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let hooks = hooks.clone();
        let (head, whole) = (HEAD_TIME.min(hooks.patience), hooks.patience);
        tokio::spawn(async move {
            let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
                let hooks = hooks.clone();
                async move { Ok::<_, Infallible>(hooks.answer(request.map(Body::new)).await) }
            });
            // One request a connection: deliveries are few, and nobody holds a connection for nothing.
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(head)
                .keep_alive(false)
                .max_buf_size(64 << 10)
                .serve_connection(TokioIo::new(stream), service);
            // How a connection ends is the peer's affair.
            let _ = tokio::time::timeout(head + whole + HEAD_TIME, connection).await;
            drop(permit);
        });
    }
}
