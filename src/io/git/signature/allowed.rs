//! The list of SSH keys whose signatures count, in OpenSSH's form.
//!
//! Source: ssh-keygen(1), ALLOWED SIGNERS <https://man.openbsd.org/ssh-keygen.1#ALLOWED_SIGNERS>: on each line principals,
//! options and a public key. A line that cannot be read is an error, not a key less.

use std::path::Path;

use jiff::{civil::DateTime, tz::TimeZone};
use ssh_key::{PublicKey, public::KeyData};

use super::{GitError, Untrusted, ssh};

/// The keys of a list.
#[derive(Debug)]
pub(super) struct Allowed(Vec<Line>);

/// A key and what it counts for.
#[derive(Debug)]
struct Line {
    principals: String,
    key: KeyData,
    /// Patterns, separated by commas; none: any namespace.
    namespaces: Option<String>,
    /// From when to when, in seconds since 1970, both included.
    after: Option<i64>,
    before: Option<i64>,
}

impl Allowed {
    /// Reads a list.
    ///
    /// # Errors
    /// [`GitError::Keys`] with the line that is wrong, or when there is no key at all.
    pub(super) fn parse(file: &Path, bytes: &[u8]) -> Result<Self, GitError> {
        let wrong = |detail: String, hint: &str| GitError::Keys {
            path: file.display().to_string(),
            detail,
            hint: hint.to_owned(),
        };
        let form = "a line is `NAME [namespaces=\"git\",valid-before=\"20270101\"] ssh-ed25519 AAAA…`; see ALLOWED SIGNERS \
                    in ssh-keygen(1)";
        let text = std::str::from_utf8(bytes).map_err(|_| wrong("it is no text".into(), form))?;
        let mut lines = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let line = Line::parse(line).map_err(|error| {
                let hint = match error {
                    LineError::Authority => "list the keys themselves: signatures with certificates are not checked",
                    _ => form,
                };
                wrong(format!("its line {}: {error}", number + 1), hint)
            })?;
            lines.push(line);
        }
        if lines.is_empty() {
            return Err(wrong("it lists no key".into(), form));
        }
        Ok(Self(lines))
    }

    /// How many keys there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whose key this is, if its signatures of commits count at that time.
    ///
    /// # Errors
    /// [`Untrusted::Unknown`] or [`Untrusted::Unfit`].
    pub(super) fn find(&self, key: &KeyData, seconds: i64) -> Result<String, Untrusted> {
        let mut why = Untrusted::Unknown { key: ssh::shown(key) };
        for line in self.0.iter().filter(|line| line.key == *key) {
            match line.unfit(seconds) {
                None => return Ok(line.principals.clone()),
                Some(text) => why = Untrusted::Unfit { key: ssh::shown(key), why: text },
            }
        }
        Err(why)
    }
}

/// What is wrong with a line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum LineError {
    #[error("there is no key")]
    NoKey,
    #[error("a quote is not closed")]
    Quote,
    #[error("the key cannot be read: {0}")]
    Key(ssh_key::Error),
    #[error("`cert-authority` is not supported")]
    Authority,
    #[error("the option `{0}` is not known")]
    Option(String),
    #[error("`{0}` is not a time: YYYYMMDD or YYYYMMDDHHMM[SS], with a Z for UTC, is expected")]
    Time(String),
}

impl Line {
    fn parse(line: &str) -> Result<Self, LineError> {
        let (principals, rest) = word(line)?;
        let mut found = Self {
            principals: super::super::redact::printable(principals.trim_matches('"')),
            key: KeyData::Ed25519(ssh_key::public::Ed25519PublicKey([0; 32])),
            namespaces: None,
            after: None,
            before: None,
        };
        let (first, after) = word(rest)?;
        if first.is_empty() {
            return Err(LineError::NoKey);
        }
        // Where the options should be, there may be the key already.
        let rest = if is_kind(first) {
            rest
        } else {
            found.options(first)?;
            after
        };
        let (kind, rest) = word(rest)?;
        let (key, _comment) = word(rest)?;
        if !is_kind(kind) || key.is_empty() {
            return Err(LineError::NoKey);
        }
        found.key = PublicKey::from_openssh(&format!("{kind} {key}")).map_err(LineError::Key)?.key_data().clone();
        Ok(found)
    }

    fn options(&mut self, text: &str) -> Result<(), LineError> {
        for option in split(text) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
            match name.to_ascii_lowercase().as_str() {
                "namespaces" if !value.is_empty() => self.namespaces = Some(value.to_owned()),
                "valid-after" => self.after = Some(time(value)?),
                "valid-before" => self.before = Some(time(value)?),
                "cert-authority" => return Err(LineError::Authority),
                _ => return Err(LineError::Option(super::super::redact::printable(option))),
            }
        }
        Ok(())
    }

    /// Why the key does not count at that time; none when it does.
    fn unfit(&self, seconds: i64) -> Option<String> {
        if self.namespaces.as_ref().is_some_and(|patterns| !matches_list(ssh::NAMESPACE, patterns)) {
            return Some("is listed for other namespaces than `git`".to_owned());
        }
        if self.after.is_some_and(|after| seconds < after) {
            return Some("was not valid yet when it was committed (valid-after)".to_owned());
        }
        let expired = self.before.is_some_and(|before| seconds > before);
        expired.then(|| "was not valid any more when it was committed (valid-before)".to_owned())
    }
}

fn is_kind(word: &str) -> bool {
    ["ssh-", "ecdsa-", "sk-", "rsa-"].iter().any(|prefix| word.starts_with(prefix))
}

/// The first word, quotes holding words together, and the rest.
fn word(text: &str) -> Result<(&str, &str), LineError> {
    let text = text.trim_start();
    let mut quoted = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            ' ' | '\t' if !quoted => return Ok((&text[..at], &text[at..])),
            _ => {}
        }
    }
    if quoted { Err(LineError::Quote) } else { Ok((text, "")) }
}

/// What is between commas that are not quoted.
fn split(text: &str) -> Vec<&str> {
    let mut quoted = false;
    text.split(|c| {
        quoted ^= c == '"';
        c == ',' && !quoted
    })
    .collect()
}

/// A time in seconds since 1970.
fn time(text: &str) -> Result<i64, LineError> {
    let wrong = || LineError::Time(super::super::redact::printable(text));
    let (digits, zone) = match text.strip_suffix(['Z', 'z']) {
        Some(digits) => (digits, TimeZone::UTC),
        None => (text, TimeZone::system()),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) || !matches!(digits.len(), 8 | 12 | 14) {
        return Err(wrong());
    }
    let part =
        |from: usize, to: usize| digits.get(from..to).map_or(Ok(0), |part| part.parse::<i8>().map_err(|_| wrong()));
    let year = digits[..4].parse::<i16>().map_err(|_| wrong())?;
    let time = DateTime::new(year, part(4, 6)?, part(6, 8)?, part(8, 10)?, part(10, 12)?, part(12, 14)?, 0);
    let time = time.and_then(|time| time.to_zoned(zone)).map_err(|_| wrong())?;
    Ok(time.timestamp().as_second())
}

/// Whether one of the patterns matches and none that begins with `!` does (ssh_config(5), PATTERNS).
fn matches_list(text: &str, patterns: &str) -> bool {
    let mut found = false;
    for pattern in patterns.split(',').map(str::trim) {
        match pattern.strip_prefix('!') {
            Some(pattern) if matches(text.as_bytes(), pattern.as_bytes()) => return false,
            Some(_) => {}
            None => found |= matches(text.as_bytes(), pattern.as_bytes()),
        }
    }
    found
}

/// `*` is any text, `?` any one character.
fn matches(text: &[u8], pattern: &[u8]) -> bool {
    match (text, pattern) {
        ([], []) => true,
        (_, [b'*', rest @ ..]) => (0..=text.len()).any(|skip| matches(&text[skip..], rest)),
        ([first, text @ ..], [wanted, pattern @ ..]) => (*wanted == b'?' || first == wanted) && matches(text, pattern),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ssh_key::PublicKey;

    use super::{Allowed, Line, LineError, matches_list, time};
    use crate::io::git::signature::Untrusted;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti";

    fn find(line: &str, seconds: i64) -> Result<String, Untrusted> {
        let key = PublicKey::from_openssh(KEY).unwrap();
        Allowed::parse(Path::new("signers"), line.as_bytes()).unwrap().find(key.key_data(), seconds)
    }

    #[test]
    fn lines_as_ssh_keygen_reads_them() {
        for (line, name) in [
            (format!("a@example.com {KEY}"), "a@example.com"),
            (format!("# who\n\n  a,*@example.com,!b\t{KEY}   a comment \"of\" theirs\r\n"), "a,*@example.com,!b"),
            (format!("\"a b\" namespaces=\"file,git\" {KEY}"), "a b"),
            (format!("a namespaces=\"g?t\",valid-after=\"20200101Z\",valid-before=\"203001010000Z\" {KEY}"), "a"),
            (format!("a NAMESPACES=\"*,!file\" {}", KEY.replace(' ', "\t ")), "a"),
            // The line that counts is enough.
            (format!("a namespaces=\"file\" {KEY}\nb {KEY}"), "b"),
        ] {
            assert_eq!(find(&line, 1_700_000_000).as_deref(), Ok(name), "{line}");
        }
        for (line, words) in [
            (format!("a namespaces=\"file\" {KEY}"), "other namespaces"),
            (format!("a namespaces=\"*,!git\" {KEY}"), "other namespaces"),
            (format!("a valid-after=\"20231115Z\" {KEY}"), "not valid yet"),
            (format!("a valid-before=\"20231114221319Z\" {KEY}"), "not valid any more"),
        ] {
            let error = find(&line, 1_700_000_000).unwrap_err();
            assert!(matches!(error, Untrusted::Unfit { .. }) && error.to_string().contains(words), "{error}");
            assert!(error.to_string().contains("ED25519 SHA256:"), "{error}");
        }
        let other = KEY.replace("SqtI", "xxxx").replace("FSqti", "FSqtA");
        assert!(matches!(find(&format!("a {other}"), 0), Err(Untrusted::Unknown { .. })));
    }

    #[test]
    fn a_line_that_cannot_be_read_is_an_error() {
        for (line, expected) in [
            ("a".to_owned(), LineError::NoKey),
            ("a ssh-ed25519".to_owned(), LineError::NoKey),
            (format!("a namespaces=\"git {KEY}"), LineError::Quote),
            (format!("a cert-authority {KEY}"), LineError::Authority),
            (format!("a verify-required {KEY}"), LineError::Option("verify-required".into())),
            (format!("a namespaces= {KEY}"), LineError::Option("namespaces=".into())),
            (format!("a valid-before=\"2027\" {KEY}"), LineError::Time("2027".into())),
            (format!("a valid-before=\"20271301\" {KEY}"), LineError::Time("20271301".into())),
        ] {
            assert_eq!(Line::parse(&line).unwrap_err(), expected, "{line}");
        }
        assert!(matches!(Line::parse("a ssh-ed25519 AAAA"), Err(LineError::Key(_))));
        let text = format!("a {KEY}\n\nb cert-authority {KEY}\n");
        let error = Allowed::parse(Path::new("signers"), text.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), "signers cannot be used: its line 3: `cert-authority` is not supported");
        for empty in ["", "# nothing\n"] {
            assert!(Allowed::parse(Path::new("signers"), empty.as_bytes()).is_err());
        }
    }

    #[test]
    fn times_and_patterns() {
        for (text, expected) in [("19700102Z", 86_400), ("197001010102Z", 3_720), ("19700101000003z", 3)] {
            assert_eq!(time(text), Ok(expected));
        }
        for text in ["", "Z", "1970-01-02", "19700101é", "197001010", "19700101250000Z"] {
            assert!(time(text).is_err(), "{text}");
        }
        for (patterns, expected) in
            [("git", true), ("*", true), ("g*t", true), ("?i?", true), ("", false), ("gi", false), ("!git,*", false)]
        {
            assert_eq!(matches_list("git", patterns), expected, "{patterns}");
        }
    }
}
