//! What is counted, in OpenMetrics' text form. Labels are static words, never names of users' things or errors.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};

use crate::model::report::{Condition, PassReport, Requests};

/// The counters and gauges of one controller.
pub struct Metrics {
    registry: Mutex<Registry>,
    polls: Counter,
    passes: Family<Ended, Counter>,
    pass_seconds: Gauge<f64, AtomicU64>,
    lock_commits: Counter,
    writes: Counter,
    registry_requests: Counter,
    target_requests: Counter,
    environments: Family<Standing, Gauge>,
    webhooks: Family<Delivery, Counter>,
    since_progress: Gauge<f64, AtomicU64>,
    started: Instant,
    /// Milliseconds from `started` to the end of the last poll or pass.
    progress: AtomicU64,
    ready: AtomicBool,
    patience: Duration,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Ended {
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Standing {
    condition: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Delivery {
    sender: &'static str,
    outcome: &'static str,
}

impl Metrics {
    /// Nothing counted yet. Without progress for `patience`, the controller counts as stalled.
    pub fn new(patience: Duration) -> Self {
        let metrics = Self {
            registry: Mutex::default(),
            polls: Counter::default(),
            passes: Family::default(),
            pass_seconds: Gauge::default(),
            lock_commits: Counter::default(),
            writes: Counter::default(),
            registry_requests: Counter::default(),
            target_requests: Counter::default(),
            environments: Family::default(),
            webhooks: Family::default(),
            since_progress: Gauge::default(),
            started: Instant::now(),
            progress: AtomicU64::new(0),
            ready: AtomicBool::new(false),
            patience,
        };
        let mut registry = Registry::with_prefix("larder");
        registry.register("polls", "Looks at the branch's tip", metrics.polls.clone());
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
        registry.register("environments", "Environments by condition", metrics.environments.clone());
        registry.register("webhooks", "Webhooks by sender and what became of them", metrics.webhooks.clone());
        registry.register_with_unit(
            "since_progress",
            "Time since a poll or pass ended",
            Unit::Seconds,
            metrics.since_progress.clone(),
        );
        metrics.registry.lock().map(|mut slot| *slot = registry).unwrap_or_default();
        metrics
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

    /// A pass was carried out: what it came to, how long it took, how many objects it wrote, and what it has asked.
    pub fn pass_ended(&self, report: &PassReport, took: Duration, writes: usize, requests: Requests) {
        self.passes.get_or_create(&Ended { result: "carried-out" }).inc();
        self.pass_seconds.set(took.as_secs_f64());
        self.writes.inc_by(writes as u64);
        self.registry_requests.inc_by(requests.registry);
        self.target_requests.inc_by(requests.target);
        if report.lock_commit.is_some() {
            self.lock_commits.inc();
        }
        for (condition, word) in [
            (Condition::Applied, "applied"),
            (Condition::Degraded, "degraded"),
            (Condition::Failed, "failed"),
            (Condition::Suspended, "suspended"),
            (Condition::Blocked, "blocked"),
        ] {
            let count = report.environments.values().filter(|environment| environment.condition == condition).count();
            self.environments.get_or_create(&Standing { condition: word }).set(count as i64);
        }
        self.ready.store(true, Ordering::Relaxed);
        self.progressed();
    }

    /// A webhook came in: from which kind of sender, and what became of it.
    pub(super) fn webhook(&self, sender: &'static str, outcome: &'static str) {
        self.webhooks.get_or_create(&Delivery { sender, outcome }).inc();
    }

    /// Whether a pass has been carried out.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed)
    }

    /// Seconds without progress, when they are too many.
    pub fn stalled_for(&self) -> Option<u64> {
        let since = self.since_progress();
        (since > self.patience).then_some(since.as_secs())
    }

    /// All of it as OpenMetrics text.
    pub fn encode(&self) -> String {
        self.since_progress.set(self.since_progress().as_secs_f64());
        let mut text = String::new();
        if let Ok(registry) = self.registry.lock() {
            // Writing to a String cannot fail.
            let _ = encode(&mut text, &registry);
        }
        text
    }

    fn progressed(&self) {
        let elapsed = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.progress.store(elapsed, Ordering::Relaxed);
    }

    fn since_progress(&self) -> Duration {
        self.started.elapsed().saturating_sub(Duration::from_millis(self.progress.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_encoded_and_a_stall_is_seen() {
        let metrics = Metrics::new(Duration::from_secs(3600));
        metrics.polled();
        metrics.pass_failed();
        let text = metrics.encode();
        assert!(text.contains("larder_polls_total 1"), "{text}");
        assert!(text.contains("larder_passes_total{result=\"failed\"} 1"), "{text}");
        assert!(text.contains("larder_since_progress_seconds"), "{text}");
        assert_eq!(metrics.stalled_for(), None);
        assert!(!metrics.is_ready());
        assert!(Metrics::new(Duration::ZERO).stalled_for().is_some());
    }
}
