//! Requests that an overloaded API server puts off are sent again, as it asks, and not forever.

use std::time::Duration;

use http::{Request, Response, StatusCode, header::RETRY_AFTER};
use jiff::Timestamp;
use kube::client::Body;
use tower::{BoxError, retry::Policy};

use crate::io::http::retry_after;

/// How often a request is sent again.
const ATTEMPTS: u32 = 5;

/// The longest wait before one attempt, whatever `Retry-After` says. A pass that waits longer is better ended and
/// begun again.
const LONGEST: Duration = Duration::from_secs(20);

/// Sends again what was answered with 429 or 503, after `Retry-After` and some jitter.
#[derive(Clone, Debug, Default)]
pub(super) struct Overload {
    sent: u32,
}

impl<B> Policy<Request<Body>, Response<B>, BoxError> for Overload {
    type Future = tokio::time::Sleep;

    fn retry(&mut self, _: &mut Request<Body>, result: &mut Result<Response<B>, BoxError>) -> Option<Self::Future> {
        let response = result.as_ref().ok()?;
        if !matches!(response.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE)
            || self.sent >= ATTEMPTS
        {
            return None;
        }
        let stated = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let asked = stated.map(|stated| retry_after(Some(stated), Timestamp::now()).as_secs());
        let wait = delay(self.sent, asked, fastrand::f64());
        self.sent += 1;
        tracing::debug!(
            status = response.status().as_u16(),
            wait_ms = wait.as_millis() as u64,
            "the API server asks to come back later"
        );
        Some(tokio::time::sleep(wait))
    }

    fn clone_request(&mut self, request: &Request<Body>) -> Option<Request<Body>> {
        let mut copy = Request::new(request.body().try_clone()?);
        *copy.method_mut() = request.method().clone();
        *copy.uri_mut() = request.uri().clone();
        *copy.version_mut() = request.version();
        *copy.headers_mut() = request.headers().clone();
        *copy.extensions_mut() = request.extensions().clone();
        Some(copy)
    }
}

/// The wait before the attempt after `sent` others: at least the seconds that the server asks for, up to half as much
/// again, so that many clients do not come back together. `random` is between 0 and 1.
fn delay(sent: u32, asked: Option<u64>, random: f64) -> Duration {
    let base = match asked {
        Some(seconds) => Duration::from_secs(seconds.max(1)),
        None => Duration::from_millis(200 << sent.min(6)),
    };
    base.min(LONGEST).mul_f64(1.0 + random / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_as_asked_with_jitter_and_a_bound() {
        let seconds = |sent, asked, random| delay(sent, asked, random).as_secs_f64();
        assert_eq!(seconds(0, Some(3), 0.0), 3.0);
        assert_eq!(seconds(0, Some(3), 1.0), 4.5);
        assert_eq!(seconds(0, Some(0), 0.0), 1.0);
        assert_eq!(seconds(0, Some(u64::MAX), 0.0), 20.0);
        assert_eq!(seconds(0, None, 0.0), 0.2);
        assert_eq!(seconds(3, None, 0.0), 1.6);
        assert_eq!(seconds(u32::MAX, None, 0.0), 12.8);
    }
}
