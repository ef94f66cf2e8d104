//! The status in the target, for `larder status`: a ConfigMap of the cluster, or a file of the directory.

use std::{sync::Arc, time::Duration};

use tokio::{sync::watch, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::{io::cluster::Cluster, model::status::Status};

/// The least time between two writes: while nodes pull, the status changes often.
const GAP: Duration = Duration::from_secs(2);

/// How long to wait after the target did not take a status.
const AFTER_FAILURE: Duration = Duration::from_secs(30);

/// Follows the status until nobody sends one any more, and writes it down whenever it changes. The last one is written
/// before it ends.
pub fn start<C: Cluster + 'static>(
    target: C,
    mut status: watch::Receiver<Arc<Status>>,
    shutdown: &CancellationToken,
) -> JoinHandle<()> {
    let shutdown = shutdown.clone();
    tokio::spawn(async move {
        while status.changed().await.is_ok() {
            loop {
                let now = status.borrow_and_update().clone();
                let wait = if write(&target, &now).await { GAP } else { AFTER_FAILURE };
                tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = shutdown.cancelled() => {}
                }
                if wait == GAP || shutdown.is_cancelled() {
                    break;
                }
            }
        }
    })
}

/// Writes a status down; whether the target took it.
pub async fn write<C: Cluster>(target: &C, status: &Status) -> bool {
    match target.publish(status).await {
        Ok(()) => true,
        Err(problem) => {
            tracing::warn!(hint = problem.hint.as_deref(), "the status could not be written: {}", problem.message);
            false
        }
    }
}
