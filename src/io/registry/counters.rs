//! How many requests were sent, and how many are left, for metrics.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use reqwest::header::HeaderMap;

/// Requests by host and method since the start: registries, mirrors and token services, redirects not counted.
pub type RequestCounts = BTreeMap<(String, &'static str), u64>;

/// Requests that a host still allows in its window, by host, where it says so (`ratelimit-remaining`).
pub type RemainingQuota = BTreeMap<String, u64>;

#[derive(Debug, Default)]
pub(super) struct Counters {
    requests: Mutex<RequestCounts>,
    remaining: Mutex<RemainingQuota>,
}

impl Counters {
    pub(super) fn add(&self, host: &str, method: &'static str) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry((host.to_owned(), method)).or_default() += 1;
    }

    /// Notes what an answer says about the quota: `76;w=21600`, or the number alone.
    pub(super) fn note_remaining(&self, host: &str, headers: &HeaderMap) {
        let stated = headers.get("ratelimit-remaining").and_then(|value| value.to_str().ok());
        if let Some(number) = stated.and_then(|text| text.split(';').next()?.trim().parse().ok()) {
            self.remaining.lock().unwrap_or_else(PoisonError::into_inner).insert(host.to_owned(), number);
        }
    }

    pub(super) fn requests(&self) -> RequestCounts {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn remaining(&self) -> RemainingQuota {
        self.remaining.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
