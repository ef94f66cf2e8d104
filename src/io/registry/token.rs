//! Bearer tokens: asked for at the address that the registry names, kept while they are valid.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use reqwest::{
    Method, StatusCode, Url,
    header::{AUTHORIZATION, HeaderMap, HeaderValue},
};
use serde_json::Value;

use super::{
    endpoint::Endpoint,
    error::{Kind, RegistryError},
    keyring::Credential,
    transport::{Ask, Transport, host_of, shown},
};
use crate::io::http::Reach;

/// How long a token is valid at least, and when the service does not say: <https://distribution.github.io/distribution/spec/auth/token/>.
const MIN_LIFE: Duration = Duration::from_secs(60);

/// How long a token is kept at most, whatever the service says.
const MAX_LIFE: Duration = Duration::from_secs(3600);

/// The most tokens that are kept.
const MAX_TOKENS: usize = 512;

/// The largest answer of a token service, in bytes.
const MAX_ANSWER: usize = 64 << 10;

/// What a token is for. The credential is part of it, so that one user's token never serves another's request.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct TokenKey {
    /// The registry or mirror that the token is sent to.
    pub(super) origin: String,
    /// The token service's address.
    pub(super) realm: Url,
    /// From where the registry that named it can be reached.
    pub(super) named_by: Reach,
    pub(super) service: Option<String>,
    pub(super) scopes: Vec<String>,
    pub(super) credential: Option<Arc<Credential>>,
}

#[derive(Clone)]
struct Token {
    header: HeaderValue,
    /// By the monotonic clock since receipt: no other machine's clock counts.
    expires: Instant,
}

type Slot = Arc<tokio::sync::Mutex<Option<Token>>>;

/// The tokens that are kept.
#[derive(Default)]
pub(super) struct Tokens(Mutex<HashMap<TokenKey, Slot>>);

impl Tokens {
    /// The token to send, as a header: the kept one unless it is `refused`, else a new one. Those who want the same
    /// token at the same time share one request.
    pub(super) async fn get(
        &self,
        transport: &Transport,
        endpoint: &Endpoint,
        key: TokenKey,
        refused: Option<&HeaderValue>,
    ) -> Result<HeaderValue, RegistryError> {
        let slot = self.slot(&key);
        let mut slot = slot.lock().await;
        if let Some(token) = &*slot
            && token.expires > Instant::now()
            && Some(&token.header) != refused
        {
            return Ok(token.header.clone());
        }
        *slot = None;
        let token = fetch(transport, endpoint, &key).await?;
        let header = token.header.clone();
        *slot = Some(token);
        Ok(header)
    }

    /// The kept token, if it is still valid.
    pub(super) fn kept(&self, key: &TokenKey) -> Option<HeaderValue> {
        let slot = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key)?.clone();
        let token = slot.try_lock().ok()?.clone()?;
        (token.expires > Instant::now()).then_some(token.header)
    }

    /// Drops what has expired.
    pub(super) fn tidy(&self) {
        let now = Instant::now();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, slot| match slot.try_lock() {
            Ok(token) => token.as_ref().is_some_and(|token| token.expires > now),
            Err(_) => true,
        });
    }

    fn slot(&self, key: &TokenKey) -> Slot {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.len() >= MAX_TOKENS && !slots.contains_key(key) {
            slots.clear();
        }
        slots.entry(key.clone()).or_default().clone()
    }
}

/// The scopes to ask for: what the registry named, and in any case to pull from the repository.
pub(super) fn scopes(challenge: &str, path: &str) -> Vec<String> {
    let mut scopes: Vec<String> = challenge.split_whitespace().map(str::to_owned).collect();
    if !scopes.iter().any(|scope| scope.starts_with("repository:")) {
        scopes.push(format!("repository:{path}:pull"));
    }
    scopes
}

/// The address of a token service, which may be relative to the registry's own. The error shows nothing of it.
pub(super) fn realm_of(registry: &Url, realm: &str) -> Result<Url, &'static str> {
    registry.join(realm).map_err(|_| "it sends to a token service whose address is not valid")
}

async fn fetch(transport: &Transport, endpoint: &Endpoint, key: &TokenKey) -> Result<Token, RegistryError> {
    let unusable = |why: &str| {
        let message = format!("it sends to {} for a token, {why}", shown(&key.realm));
        RegistryError::new(Kind::Invalid, &endpoint.host, message)
    };
    let mut url = key.realm.clone();
    match url.scheme() {
        "https" => {}
        "http" if endpoint.plain_http => {}
        "http" => {
            return Err(
                unusable("over plain http").hint("a registry that is asked over https must name an https address")
            );
        }
        _ => return Err(unusable("which is not an http address")),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(unusable("with a login in the address"));
    }
    let mut parameters: Vec<(&str, &str)> = key.service.iter().map(|service| ("service", service.as_str())).collect();
    parameters.extend(key.scopes.iter().map(|scope| ("scope", scope.as_str())));
    let mut headers = HeaderMap::new();
    let credential = key.credential.as_deref();
    let refresh = credential.and_then(|credential| credential.identity_token.as_deref());
    let form = if let Some(refresh) = refresh {
        parameters.extend([("grant_type", "refresh_token"), ("client_id", "larder"), ("refresh_token", refresh)]);
        Some(encode(&parameters))
    } else {
        url.query_pairs_mut().extend_pairs(&parameters);
        if let Some(header) = credential.and_then(basic) {
            headers.insert(AUTHORIZATION, header);
        }
        None
    };
    let host = host_of(&url);
    let method = if form.is_some() { Method::POST } else { Method::GET };
    let options_of = if host == endpoint.host { &endpoint.options_of } else { &host };
    let ask =
        Ask { method, url: url.clone(), headers, form, options_of, limit: MAX_ANSWER, named_by: Some(key.named_by) };
    let reply = transport.send(ask).await?;
    let place = format!("the token service {}{}", host, url.path());
    match reply.status {
        status if status.is_success() => {}
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST if credential.is_some() => {
            let message = format!("{place} refused the credentials (status {})", reply.status.as_u16());
            return Err(RegistryError::refused(&endpoint.host, message));
        }
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            let message = format!("{place} gives no token without credentials (status {})", reply.status.as_u16());
            return Err(RegistryError::unauthenticated(&endpoint.host, message));
        }
        status => {
            // Not the body's words: the service has seen the credentials.
            let message = format!("{place} failed with status {}", status.as_u16());
            return Err(RegistryError::new(Kind::Unavailable, &endpoint.host, message)
                .hint("it is tried again; if it stays so, check the repository's path, some token services fail on one that cannot exist"));
        }
    }
    parse(&reply.body).ok_or_else(|| {
        RegistryError::new(Kind::Invalid, &endpoint.host, format!("{place} answered without a token that can be read"))
            .hint("it may be another service, or a proxy's page; open the address in a browser")
    })
}

/// `Basic …` for a user's name and password.
pub(super) fn basic(credential: &Credential) -> Option<HeaderValue> {
    if credential.username.is_empty() && credential.password.is_empty() {
        return None;
    }
    let text = STANDARD.encode(format!("{}:{}", credential.username, credential.password));
    secret_header(&format!("Basic {text}"))
}

fn secret_header(text: &str) -> Option<HeaderValue> {
    let mut header = HeaderValue::from_str(text).ok()?;
    header.set_sensitive(true);
    Some(header)
}

fn encode(parameters: &[(&str, &str)]) -> String {
    // An address's query has the form's encoding; the address itself is never used.
    Url::parse("http://form.invalid/")
        .map(|mut url| {
            url.query_pairs_mut().extend_pairs(parameters);
            url.query().unwrap_or_default().to_owned()
        })
        .unwrap_or_default()
}

/// The first of `token` and `access_token` that is a text and not empty.
fn parse(body: &[u8]) -> Option<Token> {
    let answer: Value = serde_json::from_slice(body).ok()?;
    let mut texts = Vec::new();
    for name in ["token", "access_token"] {
        match answer.get(name) {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) => texts.push(text.trim()),
            Some(_) => return None,
        }
    }
    let token = texts.into_iter().find(|text| !text.is_empty())?;
    let seconds = match answer.get("expires_in") {
        Some(Value::String(text)) => text.trim().parse().ok(),
        Some(number) => number.as_u64().or_else(|| number.as_f64().map(|seconds| seconds.max(0.0) as u64)),
        None => None,
    };
    let life = seconds.map_or(MIN_LIFE, Duration::from_secs).clamp(MIN_LIFE, MAX_LIFE);
    // A tenth is left for the way.
    Some(Token { header: secret_header(&format!("Bearer {token}"))?, expires: Instant::now() + life.mul_f64(0.9) })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{encode, parse, scopes};

    #[test]
    fn token_answers() {
        let cases = [
            (r#"{"access_token":"A"}"#, Some("A")),
            (r#"{"token":"T","access_token":"A"}"#, Some("T")),
            (r#"{"token":"","access_token":"A"}"#, Some("A")),
            (r#"{"token":null,"access_token":"A"}"#, Some("A")),
            (r#"{"token":300}"#, None),
            (r#"{"token":{"a":1}}"#, None),
            (r#"{"token":300,"access_token":"A"}"#, None),
            (r#"{"token":""}"#, None),
            (r#"{"token":"a\nb"}"#, None),
            ("{}", None),
            ("[]", None),
            ("<html>502</html>", None),
            ("", None),
        ];
        for (body, expected) in cases {
            let token = parse(body.as_bytes()).map(|token| token.header.to_str().unwrap().to_owned());
            assert_eq!(token, expected.map(|token| format!("Bearer {token}")), "{body}");
        }
    }

    #[test]
    fn token_lives() {
        // never forever, never by another clock
        let cases = [
            (r#"{"token":"T"}"#, 54),
            (r#"{"token":"T","expires_in":0}"#, 54),
            (r#"{"token":"T","expires_in":-5}"#, 54),
            (r#"{"token":"T","expires_in":"300"}"#, 270),
            (r#"{"token":"T","expires_in":300.5}"#, 270),
            (r#"{"token":"T","expires_in":null}"#, 54),
            (r#"{"token":"T","expires_in":5,"issued_at":"2031-01-01T00:00:00Z"}"#, 54),
            (r#"{"token":"T","expires_in":99999999999}"#, 3240),
        ];
        for (body, seconds) in cases {
            let life = parse(body.as_bytes()).unwrap().expires - Instant::now();
            let expected = Duration::from_secs(seconds);
            assert!(life <= expected && life + Duration::from_secs(5) > expected, "{body}: {life:?}");
        }
    }

    #[test]
    fn scopes_always_pull() {
        assert_eq!(scopes("", "team/app"), ["repository:team/app:pull"]);
        assert_eq!(scopes("aws", "team/app"), ["aws", "repository:team/app:pull"]);
        assert_eq!(scopes("repository:team/app:pull", "team/app"), ["repository:team/app:pull"]);
        assert_eq!(scopes("repository:a:pull repository:b:pull", "a"), ["repository:a:pull", "repository:b:pull"]);
    }

    #[test]
    fn forms_are_encoded() {
        assert_eq!(encode(&[("a", "b c"), ("d", "e&f=g")]), "a=b+c&d=e%26f%3Dg");
    }
}
