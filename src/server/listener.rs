//! The one way in which larder listens: whatever clients do, connections, memory and time stay bounded.
//!
//! `axum::serve` has no limits of its own for connections and for the time that a request's head may take.

use std::{collections::VecDeque, net::SocketAddr, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::AbortHandle,
};
use tokio_util::sync::CancellationToken;

/// Connections that are open at most. One more closes the oldest, so that nobody can keep a probe or a delivery out by
/// holding connections.
const CONNECTIONS: usize = 64;

/// How long a client may take for the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(5);

/// The largest head of a request in bytes.
const HEAD_BYTES: usize = 64 << 10;

/// How long a client may take for a whole request, unless the listener says otherwise.
pub(super) const WHOLE_TIME: Duration = Duration::from_secs(15);

/// Serves until `shutdown`, with `patience` for each request.
///
/// # Errors
/// When the port cannot be had.
pub(super) async fn serve(
    address: SocketAddr,
    app: Router,
    patience: Duration,
    shutdown: CancellationToken,
) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await?;
    let bound = listener.local_addr()?;
    tokio::spawn(async move {
        let mut open: VecDeque<AbortHandle> = VecDeque::new();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = shutdown.cancelled() => return,
            };
            let Ok((stream, _)) = accepted else {
                // No file descriptor is left, or the peer is gone already: not to be tried again at once.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            open.retain(|connection| !connection.is_finished());
            if open.len() >= CONNECTIONS
                && let Some(oldest) = open.pop_front()
            {
                oldest.abort();
            }
            open.push_back(tokio::spawn(connection(stream, app.clone(), patience)).abort_handle());
        }
    });
    Ok(bound)
}

/// One request a connection: requests are few, and nobody holds a connection for nothing.
async fn connection(stream: TcpStream, app: Router, patience: Duration) {
    let head = HEAD_TIME.min(patience);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head)
        .keep_alive(false)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(app));
    // How a connection ends is the peer's affair.
    _ = tokio::time::timeout(head + patience + HEAD_TIME, connection).await;
}
