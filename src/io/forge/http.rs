//! HTTP with a forge: a token from its file, bounded bodies and times, errors in the forge's words.

use std::{fs, io::Read as _, path::Path, time::Duration};

use reqwest::{Certificate, Client, Method, StatusCode, Url, redirect};
use serde_json::Value;

use super::{Forge, Kind, dialect};
use crate::{
    io::git::Redactor,
    model::failure::{Category, Problem},
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The largest answer that is read, in bytes: a page of the longest comments that forges take.
const MAX_BODY: usize = 16 * 1024 * 1024;

/// The largest answer that is no success, in bytes.
const MAX_WORDS: usize = 4096;

/// The largest token file, in bytes.
const MAX_TOKEN: u64 = 64 * 1024;

/// How often a question is asked again when the forge is not there for a moment, and after how long.
const RETRIES: u32 = 2;
const RETRY_AFTER: Duration = Duration::from_secs(1);

pub(super) fn client(api: &Url, ca_file: Option<&Path>) -> Result<Client, Problem> {
    // Does nothing when the program has chosen one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .user_agent(concat!("larder/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(REQUEST_TIMEOUT)
        // A token must not follow to where it was not meant for.
        .redirect(redirect::Policy::none())
        .referer(false);
    if dialect::is_loopback(api) {
        builder = builder.no_proxy();
    }
    if let Some(path) = ca_file {
        let refuse = |problem: String| {
            Problem::new(Category::Forge, format!("--forge-ca-file {}: {problem}", path.display()))
                .hint("it holds certificates in PEM form, starting with -----BEGIN CERTIFICATE-----")
        };
        let pem = fs::read(path).map_err(|error| refuse(error.to_string()))?;
        let found = Certificate::from_pem_bundle(&pem).map_err(|_| refuse("no certificate".to_owned()))?;
        if found.is_empty() {
            return Err(refuse("no certificate".to_owned()));
        }
        builder = builder.tls_certs_merge(found);
    } else if api.scheme() == "http" {
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(|error| {
        Problem::new(Category::Forge, format!("no TLS: {error}")).hint("install the system's CA certificates")
    })
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
    let mut tries = 0;
    loop {
        // Read anew each time, so that it can be rotated.
        let token = token(&forge.options.token_file)?;
        let redactor = Redactor::new("token", &token);
        match once(forge, &token, &method, path, body).await {
            Ok((status, bytes)) if status.is_success() => {
                if bytes.is_empty() {
                    return Ok(Value::Null);
                }
                return serde_json::from_slice(&bytes).map_err(|_| super::unexpected("JSON"));
            }
            Ok((status, _)) if method == Method::GET && is_brief(status) && tries < RETRIES => {}
            Ok((status, bytes)) => return Err(refused(&redactor, &method, path, status, &bytes)),
            Err(error) if method == Method::GET && error.is_connect() && tries < RETRIES => {}
            Err(error) => {
                let error = error.without_url();
                let mut words = error.to_string();
                let mut source = std::error::Error::source(&error);
                while let Some(cause) = source {
                    words += &format!(": {cause}");
                    source = cause.source();
                }
                let host = forge.api.host_str().unwrap_or_default();
                return Err(Problem::new(
                    Category::Forge,
                    format!("{host} cannot be reached: {}", redactor.clean(&words)),
                )
                .hint("check --forge-url, DNS, proxies and certificates (--forge-ca-file)"));
            }
        }
        tries += 1;
        tokio::time::sleep(RETRY_AFTER.mul_f64(1.0 + fastrand::f64() / 2.0)).await;
    }
}

fn is_brief(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT)
}

async fn once(
    forge: &Forge,
    token: &str,
    method: &Method,
    path: &str,
    body: Option<&Value>,
) -> Result<(StatusCode, Vec<u8>), reqwest::Error> {
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
    let status = response.status();
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
    Ok((status, bytes))
}

fn refused(redactor: &Redactor, method: &Method, path: &str, status: StatusCode, bytes: &[u8]) -> Problem {
    let words = redactor.clean(&words(bytes));
    let path = path.split('?').next().unwrap_or(path);
    let mut message = format!("the forge refuses {method} /{path} with status {}", status.as_u16());
    if !words.is_empty() {
        message += &format!(": {words}");
    }
    let hint = match status.as_u16() {
        401 => "the token is not valid (any more); put a new one into --forge-token-file",
        403 => "give the token the right to write to pull requests, comments and commit statuses of this repository",
        404 => "check --forge-url, --forge-repo and the number, and that the token may see them",
        300..=399 => "give the address after the redirect with --forge-url",
        429 => "the forge asks for fewer requests; try again later",
        500..=599 => "the forge has a fault of its own; try again later",
        _ => "the text comes from the forge; ask its operator if it is not clear",
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
