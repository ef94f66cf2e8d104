//! What is counted, in OpenMetrics' text form. Labels are static words, never names of users' things or errors.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, info::Info},
    registry::{Registry, Unit},
};
use tokio::sync::watch;

use crate::model::{requests::Requests, status::Status};

/// Without a sign of life for this long, the controller's loop counts as stalled. It gives one every few seconds while it waits
/// for something to do, and at the end of each poll and pass; no pass takes this long, since every request in it has a deadline.
const STALLED_AFTER: Duration = Duration::from_secs(60 * 60);

/// The counters and gauges of one controller.
pub struct Metrics {
    registry: Mutex<Registry>,
    status: watch::Receiver<Arc<Status>>,
    polls: Counter,
    passes: Family<Ended, Counter>,
    pass_seconds: Gauge<f64, AtomicU64>,
    lock_commits: Counter,
    writes: Counter,
    registry_requests: Counter,
    target_requests: Counter,
    environments: Family<Ready, Gauge>,
    problems: Family<Wrong, Gauge>,
    webhooks: Family<Delivery, Counter>,
    since_progress: Gauge<f64, AtomicU64>,
    progress: Since,
    life: Since,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Build {
    version: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Ended {
    result: &'static str,
}

/// The reason of the `Ready` condition, and the state that it stands for.
#[derive(Clone, Debug, Hash, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct Ready {
    state: &'static str,
    reason: &'static str,
}

/// The reason of a problem of the controller itself.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Wrong {
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Delivery {
    sender: &'static str,
    outcome: &'static str,
}

/// The time since something happened last.
struct Since {
    started: Instant,
    /// Milliseconds from `started` to when it happened.
    last: AtomicU64,
}

impl Since {
    fn now() -> Self {
        Self { started: Instant::now(), last: AtomicU64::new(0) }
    }

    fn happened(&self) {
        let elapsed = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(elapsed, Ordering::Relaxed);
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed().saturating_sub(Duration::from_millis(self.last.load(Ordering::Relaxed)))
    }
}

impl Metrics {
    /// Nothing counted yet; environments are counted by the latest status.
    pub fn new(status: watch::Receiver<Arc<Status>>) -> Self {
        let metrics = Self {
            registry: Mutex::default(),
            status,
            polls: Counter::default(),
            passes: Family::default(),
            pass_seconds: Gauge::default(),
            lock_commits: Counter::default(),
            writes: Counter::default(),
            registry_requests: Counter::default(),
            target_requests: Counter::default(),
            environments: Family::default(),
            problems: Family::default(),
            webhooks: Family::default(),
            since_progress: Gauge::default(),
            progress: Since::now(),
            life: Since::now(),
        };
        let mut registry = Registry::with_prefix("larder");
        registry.register(
            "build",
            "The version of this larder",
            Info::new(Build { version: env!("CARGO_PKG_VERSION") }),
        );
        registry.register("polls", "Polls of the branch's tip", metrics.polls.clone());
        registry.register("passes", "Passes by how they ended", metrics.passes.clone());
        registry.register_with_unit(
            "last_pass",
            "Duration of the last pass",
            Unit::Seconds,
            metrics.pass_seconds.clone(),
        );
        registry.register("lock_commits", "Lock commits pushed", metrics.lock_commits.clone());
        registry.register("object_writes", "Objects written or deleted", metrics.writes.clone());
        registry.register("registry_requests", "Requests to registries", metrics.registry_requests.clone());
        registry.register("target_requests", "Requests to the API server", metrics.target_requests.clone());
        registry.register(
            "environments",
            "Environments by state and by the reason of their Ready condition",
            metrics.environments.clone(),
        );
        registry.register(
            "problems",
            "Problems of no environment and no tenant in particular, by reason",
            metrics.problems.clone(),
        );
        registry.register("webhooks", "Webhooks by sender and outcome", metrics.webhooks.clone());
        registry.register_with_unit(
            "since_progress",
            "Time since a poll or pass ended",
            Unit::Seconds,
            metrics.since_progress.clone(),
        );
        metrics.registry.lock().map(|mut slot| *slot = registry).unwrap_or_default();
        metrics
    }

    /// The controller's loop is waiting for something to do.
    pub fn alive(&self) {
        self.life.happened();
    }

    /// A poll ended: the branch's tip is known.
    pub fn polled(&self) {
        self.polls.inc();
        self.progressed();
    }

    /// A pass could not start, or ended early.
    pub fn pass_failed(&self) {
        self.passes.get_or_create(&Ended { result: "failed" }).inc();
        self.progressed();
    }

    /// A pass was carried out: its status, how long it took, how many objects it wrote, and what it has asked.
    pub fn pass_ended(&self, status: &Status, took: Duration, writes: usize, requests: Requests) {
        self.passes.get_or_create(&Ended { result: "carried-out" }).inc();
        self.pass_seconds.set(took.as_secs_f64());
        self.writes.inc_by(writes as u64);
        self.registry_requests.inc_by(requests.registry);
        self.target_requests.inc_by(requests.target);
        if status.last_pass.lock_commit.is_some() {
            self.lock_commits.inc();
        }
        self.progressed();
    }

    /// A poll or pass ended.
    fn progressed(&self) {
        self.life.happened();
        self.progress.happened();
    }

    /// A webhook came in: from which kind of sender, and with which outcome.
    pub(crate) fn webhook(&self, sender: &'static str, outcome: &'static str) {
        self.webhooks.get_or_create(&Delivery { sender, outcome }).inc();
    }

    /// Whether a pass has been carried out.
    pub fn is_ready(&self) -> bool {
        self.status.borrow().commit.is_some()
    }

    /// Seconds without a sign of life, when they are too many.
    pub fn stalled_for(&self) -> Option<u64> {
        let since = self.life.elapsed();
        (since > STALLED_AFTER).then_some(since.as_secs())
    }

    /// All of it as OpenMetrics text.
    pub fn encode(&self) -> String {
        self.since_progress.set(self.progress.elapsed().as_secs_f64());
        self.count_environments();
        self.count_problems();
        let mut text = String::new();
        if let Ok(registry) = self.registry.lock() {
            // Writing to a String cannot fail.
            let _ = encode(&mut text, &registry);
        }
        text
    }

    fn count_problems(&self) {
        self.problems.clear();
        for finding in &self.status.borrow().problems {
            self.problems.get_or_create(&Wrong { reason: finding.reason.as_str() }).inc();
        }
    }

    fn count_environments(&self) {
        let mut counts: BTreeMap<Ready, i64> = BTreeMap::new();
        for environment in self.status.borrow().environments.values() {
            let ready = Ready { state: environment.state().as_str(), reason: environment.reason().as_str() };
            *counts.entry(ready).or_default() += 1;
        }
        self.environments.clear();
        for (ready, count) in counts {
            self.environments.get_or_create(&ready).set(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        failure::{Category, Problem},
        status::{EnvironmentStatus, Finding, Reason},
    };

    #[test]
    fn counts_are_encoded() {
        let environments = [("t/a".parse().unwrap(), EnvironmentStatus::default())].into();
        let problems = vec![Finding::new(Reason::PollFailed, Problem::new(Category::Git, "no answer"))];
        let (sender, receiver) = watch::channel(Arc::new(Status { environments, problems, ..Status::default() }));
        let metrics = Metrics::new(receiver);
        metrics.polled();
        metrics.pass_failed();
        let text = metrics.encode();
        for line in [
            "larder_polls_total 1",
            "larder_passes_total{result=\"failed\"} 1",
            "larder_since_progress_seconds",
            concat!("larder_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
            "larder_environments{state=\"NotApplied\",reason=\"NoPass\"} 1",
            "larder_problems{reason=\"PollFailed\"} 1",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(!metrics.is_ready());
        sender.send_replace(Arc::new(Status { commit: Some("a".repeat(40)), ..Status::default() }));
        assert!(metrics.is_ready() && !metrics.encode().contains("larder_environments{"));
    }

    #[test]
    fn only_a_loop_without_a_sign_of_life_is_stalled() {
        let mut metrics = Metrics::new(watch::channel(Arc::default()).1);
        assert_eq!(metrics.stalled_for(), None);
        metrics.progress.started -= Duration::from_secs(59 * 60);
        metrics.life.started -= Duration::from_secs(59 * 60);
        assert_eq!(metrics.stalled_for(), None, "a pass may wait for slow registries");
        metrics.progress.started -= Duration::from_secs(120);
        metrics.life.started -= Duration::from_secs(120);
        assert!(metrics.stalled_for().is_some());
        metrics.alive();
        assert_eq!(metrics.stalled_for(), None);
        assert!(metrics.progress.elapsed() > Duration::from_secs(600), "which shows in the metrics");
    }
}
