//! Texts from remotes and libraries, made fit to be shown: no secrets, no control characters, a bounded length.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::shown::{self, MASK};
use crate::model::text::lines;

/// The longest text of a remote that is kept, in bytes.
const MAX_TEXT: usize = 2048;

/// The forms in which one remote's secret could come back in an error's text.
#[derive(Clone, Default)]
pub(crate) struct Redactor {
    secrets: Vec<String>,
}

impl Redactor {
    /// A redactor for a secret that is used by `user`.
    pub(crate) fn new(user: &str, secret: &str) -> Self {
        if secret.is_empty() {
            return Self::default();
        }
        let encoded = utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string();
        let lower = encoded.to_ascii_lowercase();
        let shell = secret.replace('\'', r"'\''");
        let basic = STANDARD.encode(format!("{user}:{secret}"));
        let mut secrets = vec![secret.to_owned(), encoded, lower, shell, basic, STANDARD.encode(secret)];
        // Longest first, so that no form leaves a rest of another.
        secrets.sort_by_key(|text| std::cmp::Reverse(text.len()));
        secrets.dedup();
        Self { secrets }
    }

    /// A redactor for the secrets of both.
    pub(super) fn and(mut self, other: Self) -> Self {
        self.secrets.extend(other.secrets);
        self.secrets.sort_by_key(|text| std::cmp::Reverse(text.len()));
        self
    }

    /// `text` without secrets and control characters, at most about 2 KiB long.
    pub(crate) fn clean(&self, text: &str) -> String {
        let mut text = printable(text);
        for secret in &self.secrets {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), MASK);
            }
        }
        shorten(urls(&text))
    }
}

/// The text with its lines, trimmed, and without anything that is not seen.
pub(super) fn printable(text: &str) -> String {
    lines(text).trim().to_owned()
}

/// An address of a repository, as it may be shown.
pub(super) fn address(text: &str) -> String {
    shorten(shown::address(&printable(text)))
}

/// Masks user information and queries in each URL.
fn urls(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(colon) = rest.find("://") {
        let is_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let start = rest[..colon].trim_end_matches(is_scheme).len();
        let end = rest[colon..].find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>'));
        let end = end.map_or(rest.len(), |end| colon + end);
        out.push_str(&rest[..start]);
        out.push_str(&shown::url(&rest[start..end]));
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

/// Cuts at a character's border.
fn shorten(mut text: String) -> String {
    if text.len() > MAX_TEXT {
        let mut end = MAX_TEXT;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{MAX_TEXT, Redactor};

    #[test]
    fn no_form_of_a_secret_survives() {
        let redactor = Redactor::new("u", "s3cr@t'x");
        for text in [
            "failed: https://u:s3cr%40t%27x@git.example.com/x.git",
            "failed: https://u:s3cr@t'x@git.example.com/x.git",
            "argument 's3cr@t'\\''x'",
            "Authorization: Basic dTpzM2NyQHQneA==",
            "token=s3cr@t'x&",
            "s3cr%40t%27x",
        ] {
            let clean = redactor.clean(text);
            assert!(!clean.contains("s3cr") && !clean.contains("dTpz"), "{clean}");
            assert!(clean.contains("***"), "{clean}");
        }
    }

    #[test]
    fn urls_lose_their_user_information() {
        let redactor = Redactor::default();
        for (text, expected) in [
            ("see https://u:s3cr%40t@git.example.com/x.git now", "see https://***@git.example.com/x.git now"),
            ("https://ghp_token@github.com/x", "https://***@github.com/x"),
            ("ssh://git@host/x and ssh://git:pw@host/x", "ssh://git@host/x and ssh://***@host/x"),
            ("http://a:b@c@h/x", "http://***@h/x"),
            ("'https://u:p@h'", "'https://***@h'"),
            ("see https://h/x?token=s3cr#a, then", "see https://h/x?*** then"),
            ("'https://u:s3c/r@h/x'", "'https://***@h/***'"),
            ("https://h:8443/x: no", "https://h:8443/x: no"),
            ("nothing here :// @", "nothing here :// @"),
        ] {
            assert_eq!(redactor.clean(text), expected);
        }
    }

    #[test]
    fn control_characters_go_and_length_is_bounded() {
        let clean = Redactor::default().clean("POLICY: need ticket \u{1b}[31mred\u{7}\r\nsecond\u{202e}\0");
        assert_eq!(clean, "POLICY: need ticket \u{fffd}[31mred\u{fffd}\nsecond\u{fffd}\u{fffd}");
        let long = Redactor::default().clean(&"ä".repeat(5000));
        assert!(long.len() <= MAX_TEXT + '…'.len_utf8() && long.ends_with('…'));
    }
}
