//! The controller's HTTP side: `/healthz`, `/readyz` and `/metrics`; webhooks on a listener of their own.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::IntoResponse,
    routing::get,
};
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;

mod hooks;
mod listener;

pub use hooks::{Hooks, SecretFile};

/// Serves until `shutdown`.
///
/// # Errors
/// When the port cannot be had.
pub async fn serve(
    address: SocketAddr,
    metrics: Arc<Metrics>,
    shutdown: CancellationToken,
) -> std::io::Result<SocketAddr> {
    listener::serve(address, router(metrics), listener::WHOLE_TIME, shutdown).await
}

fn router(metrics: Arc<Metrics>) -> Router {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(text))
        .with_state(metrics)
}

/// 200 while the controller's loop runs, however long a pass takes; 503 when it hangs, so that it is restarted.
async fn healthz(State(metrics): State<Arc<Metrics>>) -> impl IntoResponse {
    match metrics.stalled_for() {
        None => (StatusCode::OK, "ok\n".to_owned()),
        Some(seconds) => (StatusCode::SERVICE_UNAVAILABLE, format!("no sign of life for {seconds} s\n")),
    }
}

/// 200 once a pass has been carried out.
async fn readyz(State(metrics): State<Arc<Metrics>>) -> impl IntoResponse {
    if metrics.is_ready() {
        (StatusCode::OK, "ok\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "no pass has been carried out yet\n")
    }
}

async fn text(State(metrics): State<Arc<Metrics>>) -> impl IntoResponse {
    let content_type = [(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")];
    (content_type, metrics.encode())
}
