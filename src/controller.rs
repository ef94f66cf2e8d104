//! When a pass runs: at each new tip, when a reference is due, when the target drifted, and again after a failure.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio_util::sync::CancellationToken;

use crate::{
    io::{
        cluster::Cluster,
        git::{CommitId, Tip},
        registry::Credentials,
    },
    model::{plan::Action, report::PassReport},
    pipeline::{self, Memory, Pass, RunError, World},
    server::Metrics,
};

/// The longest wait after a failure.
const LONGEST_RETRY: Duration = Duration::from_secs(15 * 60);

/// A controller of one environment repository and one target.
pub struct Controller<C, K> {
    world: World<C, K>,
    interval: Duration,
    metrics: Arc<Metrics>,
    memory: Memory,
    /// The commit whose pass had nothing left to try again.
    passed: Option<CommitId>,
    /// Passes that failed in a row, and when the next may start.
    failures: u32,
    retry_at: Option<Instant>,
    /// What was written down last, so that it is written again only when it says something else.
    published: Option<PassReport>,
}

impl<C: Cluster, K: Credentials> Controller<C, K> {
    /// A controller that looks at the branch's tip every `interval`, a tenth more or less.
    pub fn new(world: World<C, K>, interval: Duration, metrics: Arc<Metrics>) -> Self {
        let memory = Memory::default();
        Self { world, interval, metrics, memory, passed: None, failures: 0, retry_at: None, published: None }
    }

    /// Runs one pass on the branch's tip. None when the repository holds no commit yet.
    pub async fn once(&mut self, cancel: &CancellationToken) -> Result<Option<Pass>, RunError> {
        match self.tip().await? {
            Some(tip) => self.pass(&tip, cancel).await.map(Some),
            None => Ok(None),
        }
    }

    /// Runs passes until `shutdown`. A pass that is under way then ends its present write and leaves the rest.
    /// `observe` sees each pass, or why it could not start.
    pub async fn run(&mut self, shutdown: &CancellationToken, mut observe: impl FnMut(&Result<Pass, RunError>)) {
        while !shutdown.is_cancelled() {
            match self.tip().await {
                Ok(Some(tip)) if self.must_pass(&tip) => {
                    let result = self.pass(&tip, shutdown).await;
                    observe(&result);
                }
                Ok(_) => {}
                Err(error) => observe(&Err(error)),
            }
            self.wait(shutdown).await;
        }
    }

    /// The branch's tip: one `ls-refs`. None when there is nothing to do: an empty repository, or a branch that is gone,
    /// in which case everything stays as it is.
    async fn tip(&mut self) -> Result<Option<CommitId>, RunError> {
        let tip = self.world.repository.tip().await.map_err(crate::model::failure::Problem::from)?;
        self.metrics.polled();
        match tip {
            Tip::Commit(commit) => Ok(Some(commit)),
            Tip::Empty => {
                tracing::warn!("the repository has no commit yet: no environments");
                Ok(None)
            }
            Tip::Gone { branch } => {
                tracing::error!(branch, "the branch is gone; the cluster stays as it is");
                Ok(None)
            }
        }
    }

    fn must_pass(&self, tip: &CommitId) -> bool {
        let due = self.memory.until_due().is_some_and(|wait| wait.is_zero());
        match self.retry_at {
            // A failure is tried again after its wait, or at once when the tip has moved.
            Some(at) => Instant::now() >= at || self.passed.as_ref() != Some(tip),
            None => self.passed.as_ref() != Some(tip) || due || self.world.cluster.has_drifted(),
        }
    }

    async fn pass(&mut self, tip: &CommitId, cancel: &CancellationToken) -> Result<Pass, RunError> {
        let started = Instant::now();
        let result = pipeline::pass(&self.world, &mut self.memory, tip, cancel).await;
        let complete = match &result {
            Ok(pass) => {
                let done = |action| pass.applied.count(action);
                let writes = done(Action::Create) + done(Action::Configure) + done(Action::Delete);
                self.metrics.pass_ended(&pass.report, started.elapsed(), writes, pass.requests);
                tracing::info!(
                    commit = pass.report.commit,
                    environments = pass.report.environments.len(),
                    created = done(Action::Create),
                    changed = done(Action::Configure),
                    deleted = done(Action::Delete),
                    unchanged = done(Action::Unchanged),
                    milliseconds = started.elapsed().as_millis() as u64,
                    "pass"
                );
                self.publish(pass.report.clone()).await;
                self.passed = pass.report.commit.as_deref().and_then(|commit| commit.parse().ok());
                pass.is_complete()
            }
            Err(error) => {
                self.metrics.pass_failed();
                let cannot_start = error.0.problems().to_vec();
                self.publish(PassReport { cannot_start, ..self.published.clone().unwrap_or_default() }).await;
                self.passed = Some(*tip);
                false
            }
        };
        if complete {
            self.failures = 0;
            self.retry_at = None;
        } else {
            self.failures += 1;
            let wait =
                self.interval.saturating_mul(1 << (self.failures - 1).min(10)).min(LONGEST_RETRY.max(self.interval));
            self.retry_at = Some(Instant::now() + wait);
        }
        result
    }

    /// Writes down what a pass came to, when it says something else than before.
    async fn publish(&mut self, report: PassReport) {
        if self.published.as_ref() == Some(&report) {
            return;
        }
        match self.world.cluster.publish(&report).await {
            Ok(()) => self.published = Some(report),
            Err(problem) => tracing::warn!(%problem, "what the pass came to could not be written down"),
        }
    }

    /// Waits for the next poll, a due reference, a drifted target or the end.
    async fn wait(&self, shutdown: &CancellationToken) {
        let jitter = self.interval.mul_f64(fastrand::f64().mul_add(0.2, 0.9));
        let due = self.memory.until_due().filter(|_| self.retry_at.is_none()).unwrap_or(Duration::MAX);
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = tokio::time::sleep(jitter.min(due)) => {}
            () = self.world.cluster.drifted(), if self.retry_at.is_none() => {}
        }
    }
}
