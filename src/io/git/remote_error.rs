//! Which [`GitError`] a library's error or a program's last words are.

use std::{error::Error, io};

use gix_transport::client::AuthenticationRequired;

use super::{GitError, redact::Redactor};

/// Sorts an error of a conversation with `remote`. `words` is what a program wrote to its error output.
pub(super) fn classify(remote: &str, redactor: &Redactor, error: &(dyn Error + 'static), words: &str) -> GitError {
    let chain = chain(error);
    let texts: Vec<String> = chain.iter().map(std::string::ToString::to_string).collect();
    let words = redactor.clean(words);
    let detail = if words.is_empty() { redactor.clean(&join(&texts)) } else { words.clone() };
    let remote = remote.to_owned();
    let says = |needles: &[&str]| needles.iter().any(|needle| words.contains(needle));
    if says(&["Host key verification failed", "REMOTE HOST IDENTIFICATION HAS CHANGED", "host key is known for"]) {
        return GitError::HostKey { remote, detail };
    }
    if says(&["Permission denied (", "Too many authentication failures", "invalid format", "error in libcrypto"]) {
        return GitError::Authentication { remote, detail };
    }
    const UNREACHED: [&str; 5] =
        ["connect to host", "Could not resolve hostname", "Connection closed", "Connection reset", "timed out"];
    if says(&UNREACHED) {
        return GitError::Network { remote, detail };
    }
    if says(&["does not appear to be a git repository", "not found", "not a git repository", "does not exist"]) {
        return GitError::NotFound { remote, detail };
    }
    if says(&["No user exists for uid"]) {
        return GitError::Program { program: "ssh".into(), detail };
    }
    let certificate = |error: &&(dyn Error + 'static)| {
        matches!(error.downcast_ref::<rustls::Error>(), Some(rustls::Error::InvalidCertificate(_)))
    };
    if let Some(error) = chain.iter().find(|error| certificate(error)) {
        return GitError::Certificate { remote, detail: redactor.clean(&error.to_string()) };
    }
    let says = |needles: &[&str]| needles.iter().any(|needle| texts.iter().any(|text| text.contains(needle)));
    if says(&["proxy authorization required", "proxy authentication required"]) {
        return GitError::Network { remote, detail: "the proxy wants a login (HTTP status 407)".into() };
    }
    // What these say is neither of the credentials nor of the network.
    let status = |code: &str| texts.iter().any(|text| text.contains(&format!("HTTP status {code}")));
    for (code, means, hint) in [
        (
            "429",
            "its rate limit is reached",
            "larder waits longer each time; ask for a higher limit, or raise --interval",
        ),
        ("503", "it is overloaded or under maintenance", "larder tries again, and waits longer each time"),
        ("413", "the request is too large", "raise the limit of the server, or of the proxy before it"),
    ] {
        if status(code) {
            let detail = format!("HTTP status {code}: {means}");
            return GitError::Status { remote, detail, hint };
        }
    }
    let unauthenticated = chain.iter().any(|error| error.is::<AuthenticationRequired>());
    if unauthenticated || says(&["HTTP status 401", "HTTP status 403", "No credentials were returned"]) {
        let detail = if says(&["HTTP status 403"]) {
            "HTTP status 403, forbidden (some forges answer so when their rate limit is reached)"
        } else {
            "HTTP status 401"
        };
        return GitError::Authentication { remote, detail: detail.into() };
    }
    if says(&["HTTP status 404", "HTTP status 410", "'smart' protocol"]) {
        return GitError::NotFound { remote, detail };
    }
    if words.is_empty() && chain.iter().any(|error| error.is::<io::Error>() || error.is::<reqwest::Error>()) {
        return GitError::Network { remote, detail };
    }
    if says(&["HTTP status"]) {
        return GitError::Network { remote, detail };
    }
    GitError::Remote { remote, detail }
}

/// The error and all that it comes from.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> Vec<&'a (dyn Error + 'static)> {
    let mut all = Vec::new();
    let mut rest = vec![error];
    while let Some(error) = rest.pop() {
        if all.len() > 64 {
            break;
        }
        all.push(error);
        // These two keep what they hold out of `source()`.
        if let Some(inner) = error.downcast_ref::<gix::Error>() {
            all.extend(inner.iter_errors());
        }
        if let Some(inner) = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            rest.push(inner);
        } else if let Some(source) = error.source() {
            rest.push(source);
        }
    }
    all
}

/// The texts in a row, each once.
fn join(texts: &[String]) -> String {
    let mut joined: Vec<&str> = Vec::new();
    for text in texts.iter().map(String::as_str).filter(|text| !text.is_empty()) {
        if !joined.iter().any(|known| known.contains(text)) {
            joined.push(text);
        }
    }
    joined.join(": ")
}
