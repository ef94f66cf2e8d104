//! How many requests a pass has sent.

use std::ops::Sub;

use serde::Serialize;

/// Requests that a pass has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Requests {
    /// To registries and their token services.
    pub registry: u64,
    /// To the API server, without those of watches; none for a directory.
    pub target: u64,
}

impl Sub for Requests {
    type Output = Self;

    /// What was sent since `before`; a counter that restarted in between counts from zero.
    fn sub(self, before: Self) -> Self {
        let since = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now);
        Self { registry: since(self.registry, before.registry), target: since(self.target, before.target) }
    }
}
