//! `Retry-After`, and which hosts are left alone until when.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use jiff::{Timestamp, Unit, fmt::rfc2822};

/// What a wait may take inside a pass; longer ones end the request.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// When the registry does not say how long, or not in a way that can be read.
const DEFAULT_WAIT: Duration = Duration::from_secs(60);

/// The longest time for which a host is left alone, whatever it says.
const MAX_WAIT: Duration = Duration::from_secs(3600);

/// How long to wait, from the header's value: seconds or an HTTP date, at most an hour.
pub(super) fn retry_after(value: Option<&str>, now: Timestamp) -> Duration {
    let Some(value) = value.map(str::trim) else { return DEFAULT_WAIT };
    if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) {
        return value.parse().map_or(MAX_WAIT, Duration::from_secs).min(MAX_WAIT);
    }
    match rfc2822::DateTimeParser::new().relaxed_weekday(true).parse_timestamp(value) {
        Ok(until) => Duration::try_from(until.duration_since(now)).unwrap_or(Duration::ZERO).min(MAX_WAIT),
        Err(_) => DEFAULT_WAIT,
    }
}

/// Hosts that answered "too many requests", until when they are left alone.
#[derive(Debug, Default)]
pub(super) struct Limits(Mutex<HashMap<String, (Instant, Timestamp)>>);

impl Limits {
    /// Until when the host is left alone, as the time of day.
    pub(super) fn until(&self, host: &str) -> Option<Timestamp> {
        let mut limits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let &(until, shown) = limits.get(host)?;
        if until > Instant::now() {
            return Some(shown);
        }
        limits.remove(host);
        None
    }

    /// Leaves the host alone for `wait` and up to a tenth more, so that not all come back at once; returns until when.
    pub(super) fn limit(&self, host: &str, wait: Duration) -> Timestamp {
        let wait = wait.mul_f64(1.0 + fastrand::f64() / 10.0);
        let shown = Timestamp::now() + wait;
        let shown = shown.round(Unit::Second).unwrap_or(shown);
        let entry = (Instant::now() + wait, shown);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(host.to_owned(), entry);
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::retry_after;

    #[test]
    fn waits() {
        // B30
        let now = "2026-12-31T23:59:50Z".parse().unwrap();
        let cases = [
            (Some("5"), 5),
            (Some(" 0 "), 0),
            (Some("3600"), 3600),
            (Some("99999999999999999999999"), 3600),
            (Some("Fri, 01 Jan 2027 00:00:00 GMT"), 10),
            (Some("Wed, 01 Jan 2031 00:00:00 GMT"), 3600),
            (Some("Wed, 01 Jan 2020 00:00:00 GMT"), 0),
            (Some("-1"), 60),
            (Some("banana"), 60),
            (Some(""), 60),
            (None, 60),
        ];
        for (value, seconds) in cases {
            assert_eq!(retry_after(value, now).as_secs(), seconds, "{value:?}");
        }
    }
}
