//! When a pass runs: at each new tip, when a reference is due, when the target drifted, and again after a failure. The tip
//! is looked at again and again, and when there is news of it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    io::{
        cluster::{Cluster, KubeCluster},
        git::{CommitId, Tip},
        registry::Credentials,
        repository::no_commit,
    },
    metrics::Metrics,
    model::{
        failure::{Category, Failure, Problem},
        plan::Action,
        status::Status,
    },
    pipeline::{self, Memory, Pass, RunError, World},
    stages::status,
    wake::Wake,
};

mod attention;
mod log;
mod observer;

use attention::Attention;
use log::Log;
use observer::Observer;
pub use observer::observed;

/// The longest wait before a failed pass is tried again.
const LONGEST_RETRY: Duration = Duration::from_secs(15 * 60);

/// The least time between two passes on the same commit: another writer who keeps reverting our objects must not
/// keep the controller busy.
const SHORTEST_GAP: Duration = Duration::from_secs(2);

/// How often the loop shows that it runs.
const SIGN_OF_LIFE: Duration = Duration::from_secs(2);

/// A controller of one environment repository and one target. It owns the status; everything that tells about it is a
/// subscriber.
pub struct Controller<C, K> {
    world: World<C, K>,
    interval: Duration,
    metrics: Arc<Metrics>,
    memory: Memory,
    last: Option<Last>,
    /// Passes in a row that left something to try again.
    failures: u32,
    status: watch::Sender<Arc<Status>>,
    observer: Option<Observer>,
    log: Log,
    attention: Attention,
}

/// The last pass.
struct Last {
    /// The commit that it came to.
    commit: Option<CommitId>,
    ended: Instant,
    /// Whether it could start. What is due or has drifted waits while it cannot.
    started: bool,
    /// When it is tried again, if it left something to try.
    retry_at: Option<Instant>,
}

impl<C: Cluster, K: Credentials> Controller<C, K> {
    /// A controller that polls the branch every `interval`, a tenth more or less.
    pub fn new(world: World<C, K>, interval: Duration) -> Self {
        let (status, receiver) = watch::channel(Arc::default());
        Self {
            world,
            interval,
            metrics: Arc::new(Metrics::new(receiver)),
            memory: Memory::default(),
            last: None,
            failures: 0,
            status,
            observer: None,
            log: Log::default(),
            attention: Attention::new(Wake::default()),
        }
    }

    /// Also looks when there is news.
    #[must_use]
    pub fn with_news(mut self, wake: Wake) -> Self {
        self.attention = Attention::new(wake);
        self
    }

    /// Also observes the nodes of this cluster after each pass that has changed something, until they have everything.
    #[must_use]
    pub fn with_nodes(mut self, cluster: KubeCluster, shutdown: &CancellationToken) -> Self {
        self.observer = Some(Observer::start(cluster, self.status.clone(), shutdown));
        self
    }

    /// Its metrics.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// The status, now and from now on.
    pub fn subscribe(&self) -> watch::Receiver<Arc<Status>> {
        self.status.subscribe()
    }

    /// Runs one pass on the branch's tip. None when the repository holds no commit yet.
    ///
    /// # Errors
    /// When the pass cannot start, the branch being gone included.
    pub async fn once(&mut self, cancel: &CancellationToken) -> Result<Pass, RunError> {
        let tip = tokio::select! {
            tip = self.tip() => tip?,
            () = cancel.cancelled() => {
                return Err(Problem::new(Category::Git, "ended before the repository answered").into());
            }
        };
        match tip {
            Tip::Commit(tip) => self.pass(&tip, cancel).await,
            Tip::Empty => Err(no_commit().into()),
            Tip::Gone { branch } => Err(gone(&branch).into()),
        }
    }

    /// Runs passes until `shutdown`. A pass that is under way then ends its in-flight write and leaves the rest.
    pub async fn run(&mut self, shutdown: &CancellationToken) {
        while !shutdown.is_cancelled() {
            let suspected = self.memory.suspect(self.attention.take());
            if suspected > 0 {
                tracing::info!(references = suspected, "references are resolved again because of registry events");
            }
            let tip = tokio::select! {
                tip = self.tip() => tip,
                () = shutdown.cancelled() => return,
            };
            let mut found = Vec::new();
            let polled = match tip {
                Ok(Tip::Commit(tip)) => {
                    self.poll_ended(None);
                    found.push(tip);
                    if self.must_pass(&tip) {
                        let _ = self.pass(&tip, shutdown).await;
                        found.extend(self.last.as_ref().and_then(|last| last.commit));
                    }
                    true
                }
                Ok(Tip::Empty) => {
                    tracing::warn!("the repository has no branch yet: the target stays as it is");
                    self.poll_ended(Some(&no_commit().into()));
                    false
                }
                Ok(Tip::Gone { branch }) => {
                    let failure = gone(&branch).into();
                    self.log.cannot_start(&failure);
                    self.poll_ended(Some(&failure));
                    false
                }
                Err(error) => {
                    self.log.cannot_start(&error.0);
                    self.poll_ended(Some(&error.0));
                    false
                }
            };
            self.attention.looked(found, self.world.repository.branch().await);
            self.wait(polled, shutdown).await;
        }
    }

    /// Where the branch is: one `ls-refs`.
    async fn tip(&self) -> Result<Tip, RunError> {
        let tip = self.world.repository.tip().await.map_err(Problem::from)?;
        self.metrics.polled();
        Ok(tip)
    }

    fn must_pass(&self, tip: &CommitId) -> bool {
        let Some(last) = &self.last else { return true };
        let due = || self.memory.until_due().is_some_and(|wait| wait.is_zero());
        let rested = last.ended.elapsed() >= SHORTEST_GAP;
        last.commit.as_ref() != Some(tip)
            || last.retry_at.is_some_and(|at| Instant::now() >= at)
            || (last.started && rested && (due() || self.world.cluster.has_drifted()))
    }

    async fn pass(&mut self, tip: &CommitId, cancel: &CancellationToken) -> Result<Pass, RunError> {
        let begun = Instant::now();
        let result = pipeline::pass(&self.world, &mut self.memory, tip, cancel).await;
        let (commit, started, complete) = match &result {
            Ok(pass) => {
                let done = |action| pass.applied.count(action);
                let writes = done(Action::Create) + done(Action::Configure) + done(Action::Delete);
                let took = begun.elapsed();
                self.metrics.pass_ended(&pass.status, took, writes, pass.requests);
                self.log.pass(pass, took);
                self.publish(pass);
                let commit = pass.status.commit.as_deref().and_then(|commit| commit.parse().ok());
                (commit, true, pass.is_complete())
            }
            Err(error) => {
                self.metrics.pass_failed();
                self.log.cannot_start(&error.0);
                let previous = self.status.borrow().clone();
                self.send(status::cannot_start(&previous, Some(tip.to_string()), &error.0));
                (Some(*tip), false, false)
            }
        };
        self.failures = if complete { 0 } else { self.failures + 1 };
        let retry_at = (!complete).then(|| {
            let wait = self.interval.saturating_mul(1 << (self.failures - 1).min(10));
            Instant::now() + wait.min(LONGEST_RETRY.max(self.interval))
        });
        self.last = Some(Last { commit, ended: Instant::now(), started, retry_at });
        result
    }

    /// Makes the pass's outcome part of the status, and has its nodes observed.
    fn publish(&self, pass: &Pass) {
        let mut status = pass.status.clone();
        status::keep_observed(&mut status, &self.status.borrow());
        let is_new = self.send(status);
        if let (Some(observer), true) = (&self.observer, is_new) {
            observer.observe(pass);
        }
    }

    /// Makes a poll's failure part of the status until the next poll that succeeds.
    fn poll_ended(&self, failure: Option<&Failure>) {
        let previous = self.status.borrow().clone();
        self.send(status::polled(&previous, failure));
    }

    /// Hands the status to all subscribers, unless it is what they have; whether it is new.
    fn send(&self, status: Status) -> bool {
        self.status.send_if_modified(|current| {
            let is_new = **current != status;
            if is_new {
                *current = Arc::new(status);
            }
            is_new
        })
    }

    /// Waits for the next poll. What is due or has drifted comes sooner, unless the repository could not be asked or the
    /// last pass could not start: then it would only be asked again and again.
    async fn wait(&mut self, polled: bool, shutdown: &CancellationToken) {
        let sooner = async {
            match &self.last {
                Some(last) if polled && last.started => {
                    let due = self.memory.until_due().unwrap_or(Duration::MAX);
                    tokio::select! {
                        () = tokio::time::sleep(due) => {}
                        () = self.world.cluster.drifted() => {}
                    }
                    tokio::time::sleep_until((last.ended + SHORTEST_GAP).into()).await;
                }
                _ => std::future::pending().await,
            }
        };
        let gap = self.last.as_ref().map(|last| (last.ended + SHORTEST_GAP).into());
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = tokio::time::sleep(with_jitter(self.interval, fastrand::f64())) => {}
            () = sooner => {}
            () = self.attention.until_news(gap) => {}
            // Only here, so that a step that never returns is noticed.
            () = signs_of_life(&self.metrics) => {}
        }
    }
}

/// Tells that the loop is waiting for something to do.
async fn signs_of_life(metrics: &Metrics) {
    loop {
        metrics.alive();
        tokio::time::sleep(SIGN_OF_LIFE).await;
    }
}

/// A tenth more or less, so that many controllers do not all ask at the same time. `random` is from 0 to 1.
fn with_jitter(interval: Duration, random: f64) -> Duration {
    interval.mul_f64(random.mul_add(0.2, 0.9))
}

fn gone(branch: &str) -> Problem {
    Problem::new(Category::Git, format!("the repository has no branch `{branch}`; the target stays as it is"))
        .hint("name another with --branch, or push it again")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_are_a_tenth_sooner_or_later() {
        let minute = Duration::from_secs(60);
        for (random, seconds) in [(0.0, 54.0), (0.5, 60.0), (1.0, 66.0)] {
            assert!((with_jitter(minute, random).as_secs_f64() - seconds).abs() < 1e-6, "{random}");
        }
    }
}
