//! HTTP with a forge: a token from its file, bounded bodies and times, errors in the forge's words.

use std::{fs, io::Read as _, path::Path, time::Duration};

use jiff::Timestamp;
use reqwest::{
    Certificate, Client, Method, StatusCode, Url,
    header::{HeaderMap, LOCATION},
};
use serde_json::Value;

use super::{Forge, Kind};
use crate::{
    io::{
        git::Redactor,
        http::{PATIENCE, Way, asked_wait},
    },
    model::{
        failure::{Category, Problem},
        redact::without_logins,
    },
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The largest answer that is read, in bytes: a page of the longest comments that forges take.
const MAX_BODY: usize = 16 * 1024 * 1024;

/// The largest answer that is not a success, in bytes.
const MAX_WORDS: usize = 4096;

/// The largest token file, in bytes.
const MAX_TOKEN: u64 = 64 * 1024;

/// How often a question is asked again when the forge is not there for a moment, and after how long.
const RETRIES: u32 = 2;
const RETRY_AFTER: Duration = Duration::from_secs(1);

pub(super) fn client(api: &Url, ca_file: Option<&Path>) -> Result<Client, Problem> {
    // Does nothing when the program has chosen one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let authorities = ca_file.map(authorities).transpose()?;
    let refuse = |error: &reqwest::Error| {
        Problem::new(Category::Forge, format!("no TLS: {error}")).hint("install the system's CA certificates")
    };
    let builder = Way::to(api, authorities).client(api).map_err(|error| refuse(&error))?;
    builder.connect_timeout(CONNECT_TIMEOUT).timeout(REQUEST_TIMEOUT).build().map_err(|error| refuse(&error))
}

fn authorities(path: &Path) -> Result<Vec<Certificate>, Problem> {
    let refuse = |problem: &str| {
        Problem::new(Category::Forge, format!("--forge-ca-file {}: {problem}", path.display()))
            .hint("it holds certificates in PEM form, starting with -----BEGIN CERTIFICATE-----")
    };
    let pem = fs::read(path).map_err(|error| refuse(&error.to_string()))?;
    match Certificate::from_pem_bundle(&pem) {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(refuse("no certificate")),
    }
}

/// The token, as it is right now.
fn token(path: &Path) -> Result<String, Problem> {
    let refuse = |problem: String| {
        Problem::new(
            Category::Credentials,
            format!("the forge's token cannot be read from {}: {problem}", path.display()),
        )
        .hint("--forge-token-file names a file with the token in its first line")
    };
    let mut text = String::new();
    fs::File::open(path)
        .and_then(|file| file.take(MAX_TOKEN).read_to_string(&mut text))
        .map_err(|error| refuse(error.to_string()))?;
    match text.lines().next().map(str::trim) {
        Some(token) if !token.is_empty() => Ok(token.to_owned()),
        _ => Err(refuse("its first line is empty".to_owned())),
    }
}

/// One call; its answer as JSON (null when there is none).
pub(super) async fn call(forge: &Forge, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Problem> {
    let host = forge.api.host_str().unwrap_or_default();
    let mut tries = 0;
    loop {
        if let Some(until) = forge.limits.until(host) {
            return Err(limited(&method, path, None, until));
        }
        // Read again each time, so that it can be rotated.
        let token = token(&forge.options.token_file)?;
        let redactor = Redactor::new("token", &token);
        let mut wait = RETRY_AFTER.mul_f64(1.0 + fastrand::f64() / 2.0);
        match once(forge, &token, &method, path, body).await {
            Ok(answer) if answer.status.is_success() => {
                if answer.body.is_empty() {
                    return Ok(Value::Null);
                }
                return serde_json::from_slice(&answer.body).map_err(|_| super::unexpected("JSON"));
            }
            Ok(answer) => match asked_wait(answer.status, &answer.headers, Timestamp::now()) {
                Some(asked) if asked <= PATIENCE && tries < RETRIES => wait = wait.max(asked),
                Some(asked) => {
                    let until = forge.limits.limit(host, asked);
                    return Err(limited(&method, path, Some((&redactor, &answer)), until));
                }
                None if method == Method::GET && is_brief(answer.status) && tries < RETRIES => {}
                None => return Err(refused(&redactor, &method, path, &answer)),
            },
            Err(error) if method == Method::GET && error.is_connect() && tries < RETRIES => {}
            Err(error) => {
                let error = error.without_url();
                let mut words = error.to_string();
                let mut source = std::error::Error::source(&error);
                while let Some(cause) = source {
                    words += &format!(": {cause}");
                    source = cause.source();
                }
                return Err(Problem::new(
                    Category::Forge,
                    format!("{host} cannot be reached: {}", redactor.clean(&words)),
                )
                .hint("check --forge-url, DNS, proxies and certificates (--forge-ca-file)"));
            }
        }
        tries += 1;
        tokio::time::sleep(wait).await;
    }
}

fn is_brief(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT)
}

/// An answer, read whole.
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

async fn once(
    forge: &Forge,
    token: &str,
    method: &Method,
    path: &str,
    body: Option<&Value>,
) -> Result<Answer, reqwest::Error> {
    let url = format!("{}/{path}", forge.api.as_str().trim_end_matches('/'));
    let mut request = forge.client.request(method.clone(), url).header("accept", "application/json");
    request = match forge.options.kind {
        Kind::Gitea => request.header("authorization", format!("token {token}")),
        Kind::Github => {
            request.header("authorization", format!("Bearer {token}")).header("x-github-api-version", "2022-11-28")
        }
        Kind::Gitlab => request.header("private-token", token),
    };
    if let Some(body) = body {
        request = request.json(body);
    }
    let mut response = request.send().await?;
    let (status, headers) = (response.status(), response.headers().clone());
    let limit = if status.is_success() { MAX_BODY } else { MAX_WORDS };
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > limit {
            // What is cut is no JSON any more, which the caller reports; of words the first are enough.
            bytes.truncate(limit);
            break;
        }
    }
    Ok(Answer { status, headers, body: bytes })
}

/// That the forge asks for fewer requests.
fn limited(method: &Method, path: &str, said: Option<(&Redactor, &Answer)>, until: Timestamp) -> Problem {
    let path = path.split('?').next().unwrap_or(path);
    let said = said.map_or_else(String::new, |(redactor, answer)| {
        format!(" (status {}{})", answer.status.as_u16(), said_by(redactor, answer))
    });
    Problem::new(
        Category::Forge,
        format!("the forge limits the rate of requests until {until}: {method} /{path}{said}"),
    )
    .hint("nothing to do: larder asks again after that; a token that nothing else uses has a limit of its own")
}

/// `: ` and the forge's own words, if it said any.
fn said_by(redactor: &Redactor, answer: &Answer) -> String {
    let words = without_logins(&redactor.clean(&words(&answer.body)));
    if words.is_empty() { words } else { format!(": {words}") }
}

fn refused(redactor: &Redactor, method: &Method, path: &str, answer: &Answer) -> Problem {
    let status = answer.status;
    let path = path.split('?').next().unwrap_or(path);
    let said = said_by(redactor, answer);
    let message = format!("the forge refuses {method} /{path} with status {}{said}", status.as_u16());
    let hint = match status.as_u16() {
        401 => "the token is not valid, or has expired; put a new one into --forge-token-file",
        403 => "give the token write access to pull requests, comments and commit statuses of this repository",
        404 => "check --forge-url, --forge-repo and the number, and that the token may see them",
        413 => "the forge, or a proxy before it, refuses a request of this size; ask its operator",
        300..=399 => "give the address after the redirect with --forge-url",
        500..=599 => "the forge has a fault of its own; try again later",
        _ => "the text comes from the forge; ask its operator if it is not clear",
    };
    let hint = match answer.headers.get(LOCATION).and_then(|value| value.to_str().ok()?.parse::<Url>().ok()) {
        Some(moved) if status.is_redirection() => {
            format!(
                "the forge has moved to {}; {hint}",
                redactor.clean(&without_logins(moved.origin().ascii_serialization().as_str()))
            )
        }
        _ => hint.to_owned(),
    };
    let category = if status == StatusCode::UNAUTHORIZED { Category::Credentials } else { Category::Forge };
    Problem::new(category, message).hint(hint)
}

/// The forge's own words of an error: `message`, `error`, and GitHub's `errors`.
fn words(bytes: &[u8]) -> String {
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else {
        return String::from_utf8_lossy(bytes).chars().take(300).collect();
    };
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let mut words: Vec<String> = ["message", "error", "error_description"].map(|key| text(&value[key])).into();
    for error in value["errors"].as_array().into_iter().flatten() {
        words.push(error["message"].as_str().map_or_else(|| text(error), str::to_owned));
    }
    words.retain(|words| !words.is_empty());
    words.join(": ")
}
