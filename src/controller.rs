//! When a pass runs: at each new tip, when a reference is due, when the target drifted, and again after a failure. The tip
//! is looked at again and again, and when there is news of it.

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
        repository::no_commit,
    },
    model::{
        failure::{Category, Problem},
        plan::Action,
        report::PassReport,
    },
    pipeline::{self, Memory, Pass, RunError, World},
    server::Metrics,
    wake::Wake,
};

mod attention;

use attention::Attention;

/// The longest wait before a failed pass is tried again.
const LONGEST_RETRY: Duration = Duration::from_secs(15 * 60);

/// The least time between two passes on the same tip: somebody who changes our objects back again and again must not
/// keep the controller busy.
const SHORTEST_GAP: Duration = Duration::from_secs(2);

/// A controller of one environment repository and one target.
pub struct Controller<C, K> {
    world: World<C, K>,
    interval: Duration,
    metrics: Arc<Metrics>,
    memory: Memory,
    last: Option<Last>,
    /// Passes in a row that left something to try again.
    failures: u32,
    /// What was written down last, so that it is written again only when it says something else.
    published: Option<PassReport>,
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
    /// A controller that looks at the branch's tip every `interval`, a tenth more or less.
    pub fn new(world: World<C, K>, interval: Duration, metrics: Arc<Metrics>) -> Self {
        let (memory, attention) = (Memory::default(), Attention::new(Wake::default()));
        Self { world, interval, metrics, memory, last: None, failures: 0, published: None, attention }
    }

    /// Also looks when there is news.
    #[must_use]
    pub fn with_news(mut self, wake: Wake) -> Self {
        self.attention = Attention::new(wake);
        self
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

    /// Runs passes until `shutdown`. A pass that is under way then ends its present write and leaves the rest.
    /// `observe` sees each pass, or why it could not start, and the tip that it was started on, if that is known.
    pub async fn run(
        &mut self,
        shutdown: &CancellationToken,
        mut observe: impl FnMut(Option<&CommitId>, &Result<Pass, RunError>),
    ) {
        while !shutdown.is_cancelled() {
            let suspected = self.memory.suspect(self.attention.take());
            if suspected > 0 {
                tracing::info!(references = suspected, "asked again: news of their registries");
            }
            let tip = tokio::select! {
                tip = self.tip() => tip,
                () = shutdown.cancelled() => return,
            };
            let mut found = Vec::new();
            let polled = match tip {
                Ok(Tip::Commit(tip)) => {
                    found.push(tip);
                    if self.must_pass(&tip) {
                        let result = self.pass(&tip, shutdown).await;
                        observe(Some(&tip), &result);
                        found.extend(self.last.as_ref().and_then(|last| last.commit));
                    }
                    true
                }
                Ok(Tip::Empty) => {
                    tracing::warn!("the repository has no branch: nothing is done, and the target stays as it is");
                    false
                }
                Ok(Tip::Gone { branch }) => {
                    observe(None, &Err(gone(&branch).into()));
                    false
                }
                Err(error) => {
                    observe(None, &Err(error));
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
                self.metrics.pass_ended(&pass.report, begun.elapsed(), writes, pass.requests);
                tracing::info!(
                    commit = pass.report.commit,
                    environments = pass.report.environments.len(),
                    created = done(Action::Create),
                    changed = done(Action::Configure),
                    deleted = done(Action::Delete),
                    unchanged = done(Action::Unchanged),
                    milliseconds = begun.elapsed().as_millis() as u64,
                    "pass"
                );
                self.publish(pass.report.clone()).await;
                let commit = pass.report.commit.as_deref().and_then(|commit| commit.parse().ok());
                (commit, true, pass.is_complete())
            }
            Err(error) => {
                self.metrics.pass_failed();
                let cannot_start = error.0.problems().to_vec();
                self.publish(PassReport { cannot_start, ..self.published.clone().unwrap_or_default() }).await;
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

    /// Writes down what a pass came to, when it says something else than before.
    async fn publish(&mut self, mut report: PassReport) {
        // Which pass made the lock commit is no matter of where things stand.
        report.lock_commit = None;
        if self.published.as_ref() == Some(&report) {
            return;
        }
        match self.world.cluster.publish(&report).await {
            Ok(()) => self.published = Some(report),
            Err(problem) => tracing::warn!(%problem, "what the pass came to could not be written down"),
        }
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
        }
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
