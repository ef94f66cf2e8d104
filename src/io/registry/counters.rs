//! How many requests were sent, for metrics.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

/// Requests by host and method since the start: registries, mirrors and token services, redirects not counted.
pub type RequestCounts = BTreeMap<(String, &'static str), u64>;

#[derive(Debug, Default)]
pub(super) struct Counters(Mutex<RequestCounts>);

impl Counters {
    pub(super) fn add(&self, host: &str, method: &'static str) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry((host.to_owned(), method)).or_default() += 1;
    }

    pub(super) fn snapshot(&self) -> RequestCounts {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
