//! Observes the nodes between passes, so that no pass waits for them: the second input of the status.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    io::cluster::KubeCluster,
    model::{failure::Problem, lock::Lock, manifest::Manifests, status::Status},
    pipeline::Pass,
    stages::{coverage, status},
};

/// Between two observations while something is on its way; doubled as long as nothing changes.
const SHORTEST: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_secs(60);

/// What nodes are compared with: the outcome of a pass.
struct Wanted {
    commit: Option<String>,
    lock: Lock,
    manifests: Manifests,
}

impl Wanted {
    fn of(pass: &Pass) -> Self {
        Self { commit: pass.status.commit.clone(), lock: pass.lock.lock.clone(), manifests: pass.manifests.clone() }
    }
}

/// An observer at work.
pub(super) struct Observer(watch::Sender<Option<Arc<Wanted>>>);

impl Observer {
    /// Observes until `shutdown`, and adds what it sees to the status.
    pub(super) fn start(
        cluster: KubeCluster,
        status: watch::Sender<Arc<Status>>,
        shutdown: &CancellationToken,
    ) -> Self {
        let (sender, receiver) = watch::channel(None);
        tokio::spawn(run(cluster, status, receiver, shutdown.clone()));
        Self(sender)
    }

    /// Observes the nodes of that pass from now on. Does not wait.
    pub(super) fn observe(&self, pass: &Pass) {
        self.0.send_replace(Some(Arc::new(Wanted::of(pass))));
    }
}

/// The pass's status with its nodes as they are now.
///
/// # Errors
/// When the cluster does not answer.
pub async fn observed(cluster: &KubeCluster, pass: &Pass) -> Result<Status, Problem> {
    let coverage = coverage::coverage(&pass.lock.lock, &pass.manifests, &cluster.observe().await?);
    let mut status = pass.status.clone();
    status::observe(&mut status, coverage);
    Ok(status)
}

async fn run(
    cluster: KubeCluster,
    status: watch::Sender<Arc<Status>>,
    mut wanted: watch::Receiver<Option<Arc<Wanted>>>,
    shutdown: CancellationToken,
) {
    let mut wait = SHORTEST;
    loop {
        let now = wanted.borrow_and_update().clone();
        let seen = match &now {
            Some(wanted) => observe(&cluster, &status, wanted).await,
            None => Seen::Settled,
        };
        wait = if seen == Seen::Changed { SHORTEST } else { (wait * 2).min(LONGEST) };
        tokio::select! {
            () = shutdown.cancelled() => return,
            changed = wanted.changed() => {
                if changed.is_err() {
                    return;
                }
                wait = SHORTEST;
            }
            () = tokio::time::sleep(wait), if seen != Seen::Settled => {}
        }
    }
}

/// The result of an observation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// Nothing more is expected before the next pass.
    Settled,
    /// More is expected; the status is as before.
    Same,
    /// More is expected, and the status has changed.
    Changed,
}

async fn observe(cluster: &KubeCluster, status: &watch::Sender<Arc<Status>>, wanted: &Wanted) -> Seen {
    let observation = match cluster.observe().await {
        Ok(observation) => observation,
        Err(problem) => {
            tracing::warn!(hint = problem.hint.as_deref(), "nodes cannot be observed: {}", problem.message);
            return Seen::Same;
        }
    };
    let coverage = coverage::coverage(&wanted.lock, &wanted.manifests, &observation);
    let changed = status.send_if_modified(|current| {
        // A later pass has other pullers.
        if current.commit != wanted.commit {
            return false;
        }
        let mut next = Status::clone(current);
        status::observe(&mut next, coverage);
        let changed = next != **current;
        if changed {
            *current = Arc::new(next);
        }
        changed
    });
    match changed {
        true if status.borrow().is_reconciling() => Seen::Changed,
        false if status.borrow().is_reconciling() => Seen::Same,
        _ => Seen::Settled,
    }
}
