//! One request, from its path to an answer: who sends it, whether it knows the secret, whether it is new, what it says.

use std::{
    sync::PoisonError,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use axum::body::Body;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};

use super::{
    Hooks,
    body::{self, Broken, Content, KEPT},
    read::{self, Malformed, Message},
    replay,
    sender::{self, Proof, Sender},
};
use crate::model::news::News;

/// How far a signed time may be from ours, in seconds: what Standard Webhooks recommend.
const TOLERANCE: u64 = 300;

/// Between two lines in the log about refused requests.
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);

/// What became of a request. Its word is a label of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Told,
    Pinged,
    Repeated,
    Ignored,
    NotFound,
    WrongMethod,
    Unauthorized,
    WrongType,
    Malformed,
    TooLarge,
    TooSlow,
    Aborted,
    NoSecret,
}

impl Outcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::Told => "told",
            Self::Pinged => "pinged",
            Self::Repeated => "repeated",
            Self::Ignored => "ignored",
            Self::NotFound => "not-found",
            Self::WrongMethod => "wrong-method",
            Self::Unauthorized => "unauthorized",
            Self::WrongType => "wrong-type",
            Self::Malformed => "malformed",
            Self::TooLarge => "too-large",
            Self::TooSlow => "too-slow",
            Self::Aborted => "aborted",
            Self::NoSecret => "no-secret",
        }
    }

    fn status(self) -> StatusCode {
        match self {
            Self::Told => StatusCode::ACCEPTED,
            Self::Pinged | Self::Repeated | Self::Ignored => StatusCode::OK,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::WrongMethod => StatusCode::METHOD_NOT_ALLOWED,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::WrongType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Malformed | Self::Aborted => StatusCode::BAD_REQUEST,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::NoSecret => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl Hooks {
    /// Answers one request; whatever it is, in bounded time.
    pub(super) async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let found = Sender::of_path(request.uri().path());
        let sender = found.as_ref().map_or("unknown", |(sender, _)| sender.as_str());
        let outcome = match found {
            None => Outcome::NotFound,
            Some(_) if request.method() != Method::POST => Outcome::WrongMethod,
            Some((sender, token)) => {
                let received = self.receive(sender, token.as_deref(), request);
                tokio::time::timeout(self.patience, received).await.unwrap_or(Outcome::TooSlow)
            }
        };
        self.metrics.webhook(sender, outcome.as_str());
        self.note(sender, outcome);
        let mut response = Response::new(Body::from(format!("{}\n", outcome.as_str())));
        *response.status_mut() = outcome.status();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/plain; charset=utf-8"));
        if outcome == Outcome::WrongMethod {
            headers.insert(header::ALLOW, header::HeaderValue::from_static("POST"));
        }
        response
    }

    async fn receive(&self, sender: Sender, token: Option<&str>, request: Request<Body>) -> Outcome {
        let (head, body) = request.into_parts();
        let secrets = match self.secrets.read().await {
            Ok(secrets) => secrets,
            Err(problem) => {
                if self.may_complain(Outcome::NoSecret) {
                    tracing::error!(%problem, "webhooks are refused");
                }
                return Outcome::NoSecret;
            }
        };
        let proof = sender.proof(&head.headers, token);
        // A wrong token is refused before anything of the body is taken in; a signature needs the body.
        let (content, signed) = match proof {
            Some(Proof::Token(token)) if secrets.hold(&token) => (body::read(body, None).await, None),
            Some(Proof::Signature { before, any_of }) => {
                let mut verifier = secrets.verifier(sender, &before);
                let content = body::read(body, Some(&mut verifier)).await;
                if content.is_ok() && !verifier.accept(&any_of) {
                    return Outcome::Unauthorized;
                }
                (content, Some(before))
            }
            _ => return Outcome::Unauthorized,
        };
        let content = match content {
            Ok(content) => content,
            Err(Broken::TooLong) => return Outcome::TooLarge,
            Err(Broken::Aborted) => return Outcome::Aborted,
        };
        if signed.is_some() && !is_timely(&head.headers) {
            return Outcome::Unauthorized;
        }
        let mut marks = Vec::new();
        marks.extend(sender.delivery(&head.headers).map(|id| replay::of_delivery(sender, id)));
        if let Some(before) = signed {
            // A header with an identity can be made up by anyone who replays a request; what is signed cannot.
            marks.push(replay::of_signed(&before, &content.hash));
        }
        if !self.seen.is_new(&marks) {
            return Outcome::Repeated;
        }
        match message(sender, &head.headers, &content) {
            Ok(Message::News(news)) => self.tell(sender, news),
            Ok(Message::Ping) => Outcome::Pinged,
            Ok(Message::Nothing) => Outcome::Ignored,
            Err(outcome) => outcome,
        }
    }

    fn tell(&self, sender: Sender, news: Vec<News>) -> Outcome {
        let mut outcome = Outcome::Ignored;
        for news in news {
            match &news {
                News::Branch { name: Some(name), .. } if !self.wake.follows(name) => continue,
                News::Branch { commit, .. } => {
                    tracing::info!(sender = sender.as_str(), commit, "webhook: the branch may have moved");
                }
                News::Moved(tag) => tracing::info!(sender = sender.as_str(), %tag, "webhook: a tag may have moved"),
            }
            self.wake.tell(news);
            outcome = Outcome::Told;
        }
        outcome
    }

    /// Logs what an operator may have to fix; not each time.
    fn note(&self, sender: &'static str, outcome: Outcome) {
        if outcome.status().is_success() || matches!(outcome, Outcome::NotFound | Outcome::WrongMethod) {
            tracing::debug!(sender, outcome = outcome.as_str(), "webhook");
            return;
        }
        // Why there is no secret was logged already.
        if outcome != Outcome::NoSecret && self.may_complain(outcome) {
            tracing::warn!(sender, outcome = outcome.as_str(), "a webhook was refused; more of them are only counted");
        }
    }

    /// Whether that outcome was not logged lately. It is from now on.
    fn may_complain(&self, outcome: Outcome) -> bool {
        let mut complained = self.complained.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = complained.get(outcome.as_str()).is_none_or(|at| at.elapsed() >= COMPLAIN_EVERY);
        if is_due {
            complained.insert(outcome.as_str(), Instant::now());
        }
        is_due
    }
}

/// Whether a signed time, where there is one, is near to ours.
fn is_timely(headers: &HeaderMap) -> bool {
    let Some(time) = sender::header(headers, "webhook-timestamp") else { return true };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    time.parse::<u64>().is_ok_and(|time| time.abs_diff(now) <= TOLERANCE)
}

/// What an authentic delivery says.
fn message(sender: Sender, headers: &HeaderMap, content: &Content) -> Result<Message, Outcome> {
    let Some(body) = &content.kept else {
        // A push of thousands of commits: that there was one is all that counts.
        tracing::debug!(sender = sender.as_str(), "a webhook's body of more than {KEPT} bytes is not read");
        let look = || Message::News(vec![News::Branch { name: None, commit: None }]);
        return if sender.is_forge() { Ok(look()) } else { Err(Outcome::TooLarge) };
    };
    let form = match media_type(headers).as_str() {
        "application/x-www-form-urlencoded" if matches!(sender, Sender::GitHub | Sender::Ghcr | Sender::Gitea) => {
            let payload = form_urlencoded::parse(body).find(|(key, _)| key == "payload");
            Some(payload.ok_or(Outcome::Malformed)?.1.into_owned().into_bytes())
        }
        kind if kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json")) => None,
        _ => return Err(Outcome::WrongType),
    };
    let json = form.as_ref().unwrap_or(body);
    read::read(sender, sender.event(headers), json).map_err(|Malformed| Outcome::Malformed)
}

fn media_type(headers: &HeaderMap) -> String {
    let value = sender::header(headers, "content-type").unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}
