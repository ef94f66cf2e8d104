//! Which hosts asked to be left alone, and until when.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use jiff::{Timestamp, Unit};

/// What a wait may take inside a pass; longer ones end the request.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// Hosts that answered "too many requests", until when they are left alone.
#[derive(Debug, Default)]
pub(crate) struct Limits(Mutex<HashMap<String, (Instant, Timestamp)>>);

impl Limits {
    /// Until when the host is left alone, as the time of day.
    pub(crate) fn until(&self, host: &str) -> Option<Timestamp> {
        let mut limits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let &(until, shown) = limits.get(host)?;
        if until > Instant::now() {
            return Some(shown);
        }
        limits.remove(host);
        None
    }

    /// Leaves the host alone for `wait` and up to a tenth more, so that not all come back at once; returns until when.
    pub(crate) fn limit(&self, host: &str, wait: Duration) -> Timestamp {
        let wait = wait.mul_f64(1.0 + fastrand::f64() / 10.0);
        let shown = Timestamp::now() + wait;
        let shown = shown.round(Unit::Second).unwrap_or(shown);
        let entry = (Instant::now() + wait, shown);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(host.to_owned(), entry);
        shown
    }
}
