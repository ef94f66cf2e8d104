//! From text to a canonical reference.

use crate::model::{digest::Digest, text::is_unseen};

use super::{DEFAULT_TAG, DOCKER_HUB, ImageReference, ReferenceError};

/// The longest path of a repository in characters, the host not counted: current releases of the runtimes' parser
/// (`RepositoryNameTotalLengthMax`) count so, older ones counted the host as well.
pub(super) const MAX_PATH: usize = 255;

/// The longest tag in characters.
pub(super) const MAX_TAG: usize = 128;

/// How Docker Hub was called once; the same registry.
const OLD_DOCKER_HUB: &str = "index.docker.io";

pub(super) fn parse(text: &str) -> Result<ImageReference, ReferenceError> {
    if text.is_empty() {
        return Err(ReferenceError::Empty);
    }
    if let Some(character) = text.chars().find(|c| c.is_whitespace() || is_unseen(*c)) {
        return Err(ReferenceError::Whitespace { text: text.to_owned(), character });
    }
    if text.rsplit_once('@').is_some_and(|(_, rest)| rest.contains('/')) {
        return Err(ReferenceError::User);
    }
    if text.contains("://") {
        return Err(ReferenceError::Scheme(text.to_owned()));
    }
    if is_identifier(text) {
        return Err(ReferenceError::Identifier(text.to_owned()));
    }
    let (named, digest) = match text.split_once('@') {
        Some((named, digest)) => (named, Some(parse_digest(digest, text)?)),
        None => (text, None),
    };
    let (host, rest) = split_host(named);
    let host = host.as_str();
    let (path, tag) = split_tag(rest, text)?;
    if path.is_empty() && host == DOCKER_HUB {
        return Err(ReferenceError::NoRepository(text.to_owned()));
    }
    check_host(host)?;
    check_path(path, host, text)?;
    let path = match host {
        DOCKER_HUB if !path.contains('/') => format!("library/{path}"),
        _ => path.to_owned(),
    };
    if path.len() > MAX_PATH {
        return Err(ReferenceError::TooLong(path.len()));
    }
    let tag = match (tag, &digest) {
        (None, None) => Some(DEFAULT_TAG),
        (tag, _) => tag,
    };
    Ok(ImageReference { host: host.to_owned(), path, tag: tag.map(str::to_owned), digest })
}

/// 64 hexadecimal digits, alone or as a digest without a repository.
fn is_identifier(text: &str) -> bool {
    let is_hex = |text: &str| text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    match text.split_once(':') {
        Some(("sha256", hex)) => hex.len() == 64 && is_hex(hex),
        Some(("sha512", hex)) => hex.len() == 128 && is_hex(hex),
        Some(_) => false,
        None => text.len() == 64 && is_hex(text),
    }
}

/// The first part is a host if it has a dot, a colon or upper case, or is `localhost`; a single part never is. Hosts are
/// equal whatever their case; only where upper case alone makes it a host it has to stay.
fn split_host(named: &str) -> (String, &str) {
    let by_itself = |host: &str| host == "localhost" || host.contains(['.', ':']);
    let Some((first, rest)) = named.split_once('/') else { return (DOCKER_HUB.to_owned(), named) };
    match first.to_ascii_lowercase() {
        lower if lower == OLD_DOCKER_HUB => (DOCKER_HUB.to_owned(), rest),
        lower if by_itself(&lower) => (lower, rest),
        _ if first.chars().any(char::is_uppercase) => (first.to_owned(), rest),
        _ => (DOCKER_HUB.to_owned(), named),
    }
}

fn split_tag<'a>(rest: &'a str, text: &str) -> Result<(&'a str, Option<&'a str>), ReferenceError> {
    let Some((path, tag)) = rest.split_once(':') else { return Ok((rest, None)) };
    if ["sha256:", "sha512:"].iter().any(|algorithm| tag.contains(algorithm)) {
        return Err(ReferenceError::ColonDigest { text: text.to_owned(), meant: at_digest(text) });
    }
    if tag.len() > MAX_TAG && tag.is_ascii() {
        return Err(ReferenceError::TagTooLong(tag.len()));
    }
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
    if tag.is_empty() || tag.starts_with(['.', '-']) || !tag.bytes().all(allowed) {
        return Err(ReferenceError::Tag(tag.to_owned()));
    }
    Ok((path, Some(tag)))
}

/// `app:sha256:…` as it was meant: `app@sha256:…`.
fn at_digest(text: &str) -> String {
    let named = text.split('@').next().unwrap_or(text);
    named.replacen(":sha256:", "@sha256:", 1).replacen(":sha512:", "@sha512:", 1)
}

fn parse_digest(digest: &str, text: &str) -> Result<Digest, ReferenceError> {
    digest.parse().map_err(|error| ReferenceError::Digest { text: text.to_owned(), error })
}

fn check_host(host: &str) -> Result<(), ReferenceError> {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !host.ends_with(']') => (name, Some(port)),
        _ => (host, None),
    };
    if let Some(port) = port
        && (!port.bytes().all(|b| b.is_ascii_digit()) || port.parse::<u16>().map_or(true, |port| port == 0))
    {
        return Err(ReferenceError::Port(port.to_owned()));
    }
    let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let valid = match address {
        // The runtimes' grammar has no IPv4 address at the end of one, and no zone.
        Some(address) => {
            address.bytes().all(|b| b.is_ascii_hexdigit() || b == b':') && address.parse::<std::net::Ipv6Addr>().is_ok()
        }
        None => name.split('.').all(is_label),
    };
    if valid { Ok(()) } else { Err(ReferenceError::Host(host.to_owned())) }
}

/// A label of a host name: letters, digits and inner dashes.
fn is_label(label: &str) -> bool {
    !label.is_empty()
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

fn check_path(path: &str, host: &str, text: &str) -> Result<(), ReferenceError> {
    let lower = path.to_lowercase();
    if lower != path && lower.split('/').all(is_component) {
        let lower = text.replacen(path, &lower, 1);
        return Err(ReferenceError::Uppercase { path: path.to_owned(), lower });
    }
    match path.split('/').find(|part| !is_component(part)) {
        None => Ok(()),
        Some(_) if path.is_empty() && host != DOCKER_HUB => Err(ReferenceError::NoRepository(text.to_owned())),
        Some(component) => Err(ReferenceError::Component { component: component.to_owned(), text: text.to_owned() }),
    }
}

/// Runs of `a-z0-9`, separated by one dot, one or two underscores, or any number of dashes.
fn is_component(component: &str) -> bool {
    let alphanumeric = |c: char| matches!(c, 'a'..='z' | '0'..='9');
    let separator = |text: &str| matches!(text, "." | "_" | "__") || text.bytes().all(|b| b == b'-');
    let mut rest = component;
    loop {
        let after = rest.trim_start_matches(alphanumeric);
        if after.len() == rest.len() {
            return false;
        }
        let next = after.trim_start_matches(|c| !alphanumeric(c));
        match &after[..after.len() - next.len()] {
            "" => return true,
            between if separator(between) => rest = next,
            _ => return false,
        }
    }
}
