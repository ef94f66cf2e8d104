//! How long a server asks to be left alone.

use std::time::Duration;

use jiff::{Timestamp, fmt::rfc2822};
use reqwest::{
    StatusCode,
    header::{HeaderMap, RETRY_AFTER},
};

/// When a server asks for fewer requests and does not say for how long, or not in a way that can be read.
const DEFAULT_WAIT: Duration = Duration::from_secs(60);

/// The longest time for which a host is left alone, whatever it says.
const MAX_WAIT: Duration = Duration::from_secs(3600);

/// The smallest number that is a point in time and not a number of seconds from now.
const EPOCH: u64 = 1_000_000_000;

/// How long to wait before the next request; none when the answer has nothing to do with a limit of requests.
///
/// `Retry-After` counts first, as seconds or as a date (RFC 9110). Then `x-ratelimit-reset` (GitHub, Gitea) and
/// `ratelimit-reset` (GitLab, and the IETF draft), where no request is left.
pub(crate) fn asked_wait(status: StatusCode, headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let exhausted = ["x-ratelimit-remaining", "ratelimit-remaining"]
        .iter()
        .any(|name| text(name).is_some_and(|left| left.split(';').next().map(str::trim) == Some("0")));
    let stated = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let is_limit = match status {
        StatusCode::TOO_MANY_REQUESTS => true,
        StatusCode::FORBIDDEN => stated.is_some() || exhausted,
        StatusCode::SERVICE_UNAVAILABLE => stated.is_some(),
        _ => false,
    };
    if !is_limit {
        return None;
    }
    if stated.is_some() {
        return Some(retry_after(stated, now));
    }
    let reset = ["x-ratelimit-reset", "ratelimit-reset"].iter().find_map(|name| text(name)?.parse::<u64>().ok());
    Some(match reset.filter(|_| exhausted) {
        Some(at) if at >= EPOCH => {
            let now = u64::try_from(now.as_second()).unwrap_or_default();
            // The second itself belongs to the old window.
            Duration::from_secs(at.saturating_sub(now).saturating_add(1)).min(MAX_WAIT)
        }
        Some(seconds) => Duration::from_secs(seconds).min(MAX_WAIT),
        None => DEFAULT_WAIT,
    })
}

/// How long to wait by the value of `Retry-After`: seconds or an HTTP date, at most an hour.
pub(crate) fn retry_after(value: Option<&str>, now: Timestamp) -> Duration {
    let Some(value) = value.map(str::trim) else { return DEFAULT_WAIT };
    if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) {
        return value.parse().map_or(MAX_WAIT, Duration::from_secs).min(MAX_WAIT);
    }
    match rfc2822::DateTimeParser::new().relaxed_weekday(true).parse_timestamp(value) {
        Ok(until) => Duration::try_from(until.duration_since(now)).unwrap_or(Duration::ZERO).min(MAX_WAIT),
        Err(_) => DEFAULT_WAIT,
    }
}

#[cfg(test)]
mod tests {
    use reqwest::{
        StatusCode,
        header::{HeaderMap, HeaderName},
    };

    use super::{asked_wait, retry_after};

    #[test]
    fn waits() {
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

    #[test]
    fn limits_are_told_from_refusals() {
        let now = "2026-12-01T00:00:00Z".parse().unwrap();
        const SOON: &str = "1796083230"; // half a minute later
        type Case = (u16, &'static [(&'static str, &'static str)], Option<u64>);
        let cases: [Case; 12] = [
            (429, &[], Some(60)),
            (429, &[("retry-after", "7")], Some(7)),
            (429, &[("ratelimit-remaining", "0;w=60"), ("ratelimit-reset", "9")], Some(9)),
            (429, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", SOON)], Some(31)),
            (403, &[("retry-after", "60")], Some(60)),
            (403, &[("retry-after", "Tue, 01 Dec 2026 00:00:20 GMT")], Some(20)),
            (403, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", SOON)], Some(31)),
            (403, &[("x-ratelimit-remaining", "12"), ("x-ratelimit-reset", SOON)], None),
            (403, &[], None),
            (503, &[("retry-after", "3")], Some(3)),
            (503, &[], None),
            (401, &[("retry-after", "3")], None),
        ];
        for (status, headers, expected) in cases {
            let headers: HeaderMap =
                headers.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect();
            let wait = asked_wait(StatusCode::from_u16(status).unwrap(), &headers, now);
            assert_eq!(wait.map(|wait| wait.as_secs()), expected, "{status} {headers:?}");
        }
    }
}
