//! One thing that is fetched, at one place with one credential.

use reqwest::{Method, StatusCode};

use super::{
    error::{Kind, RegistryError},
    manifest::{Manifest, config_platform, digest_like, parse, stated_digest, stated_type},
    session::Session,
    transport::Reply,
};
use crate::model::{digest::Digest, reference::ImageReference, resolution::Platform};

/// What is fetched.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wanted<'a> {
    /// The digest that a reference names.
    Digest(&'a ImageReference),
    /// The manifest or index with this digest.
    Manifest(&'a Digest),
    /// The platform in the configuration with this digest.
    Platform(&'a Digest),
}

/// What was fetched, in the same order.
#[derive(Clone, Debug)]
pub(super) enum Got {
    Digest(Digest),
    Manifest(Manifest),
    Platform(Option<Platform>),
}

/// Fetches it. What has a digest is hashed.
pub(super) async fn fetch(session: &Session<'_>, wanted: Wanted<'_>) -> Result<Got, RegistryError> {
    match wanted {
        Wanted::Digest(reference) => named(session, reference).await.map(Got::Digest),
        Wanted::Manifest(digest) => {
            let reply = session.manifest(Method::GET, digest.as_str()).await?;
            verified(session, &reply, digest)?;
            read(session, &reply).map(Got::Manifest)
        }
        Wanted::Platform(config) => {
            let reply = session.blob(config.as_str()).await?;
            verified(session, &reply, config)?;
            Ok(Got::Platform(config_platform(&reply.body)))
        }
    }
}

/// Asks with a HEAD, and with a GET for what the HEAD leaves open.
async fn named(session: &Session<'_>, reference: &ImageReference) -> Result<Digest, RegistryError> {
    let pinned = reference.digest();
    let name = pinned.map(Digest::as_str).or(reference.tag()).unwrap_or("latest");
    let head = session.manifest(Method::HEAD, name).await?;
    match head.status {
        StatusCode::OK => {}
        // Some registries refuse HEAD, or answer it wrongly, or say why only to a GET: one GET decides.
        StatusCode::BAD_REQUEST | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => {
            return hashed(session, name, pinned).await;
        }
        _ => return Err(failed(session, &head)),
    }
    match (pinned, stated_digest(&head.headers)) {
        (Some(pinned), Some(stated)) if *pinned != stated => Err(mismatch(session, pinned, &stated)),
        // What a pinned reference names is known; that it was found is all there is to learn.
        (Some(pinned), _) => Ok(pinned.clone()),
        (None, Some(stated)) => Ok(stated),
        (None, None) => hashed(session, name, None).await,
    }
}

/// The digest of the manifest's bytes, which must be the one that was asked for or is stated.
async fn hashed(session: &Session<'_>, name: &str, pinned: Option<&Digest>) -> Result<Digest, RegistryError> {
    let reply = session.manifest(Method::GET, name).await?;
    if reply.status != StatusCode::OK {
        return Err(failed(session, &reply));
    }
    let stated = stated_digest(&reply.headers);
    let expected = pinned.or(stated.as_ref());
    let digest = digest_like(expected, &reply.body);
    read(session, &reply)?;
    match expected {
        Some(expected) if *expected != digest => Err(mismatch(session, expected, &digest)),
        _ => Ok(digest),
    }
}

fn verified(session: &Session<'_>, reply: &Reply, digest: &Digest) -> Result<(), RegistryError> {
    if reply.status != StatusCode::OK {
        return Err(failed(session, reply));
    }
    let found = digest_like(Some(digest), &reply.body);
    if found == *digest { Ok(()) } else { Err(mismatch(session, digest, &found)) }
}

fn read(session: &Session<'_>, reply: &Reply) -> Result<Manifest, RegistryError> {
    parse(&reply.body, stated_type(&reply.headers))
        .map_err(|error| RegistryError::new(Kind::Invalid, &session.endpoint.host, error.to_string()))
}

/// An answer that is not a success, as an error.
fn failed(session: &Session<'_>, reply: &Reply) -> RegistryError {
    let host = &session.endpoint.host;
    match reply.status {
        StatusCode::NOT_FOUND => RegistryError::new(Kind::NotFound, host, reply.words()).hint(
            "check the repository's path and the tag; a deleted tag keeps its lock entry until the reference changes",
        ),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => session.unauthorized(&reply.words()),
        StatusCode::PAYLOAD_TOO_LARGE => RegistryError::new(Kind::Unavailable, host, reply.words())
            .hint("the registry, or a proxy before it, refuses a request of this size; ask its operator"),
        _ => RegistryError::new(Kind::Unavailable, host, reply.words())
            .hint("the registry has a fault of its own; it is asked again, and the lock stays unchanged"),
    }
}

fn mismatch(session: &Session<'_>, expected: &Digest, found: &Digest) -> RegistryError {
    RegistryError::new(
        Kind::Invalid,
        &session.endpoint.host,
        format!("it serves {found} where {expected} was asked for"),
    )
    .hint("a proxy or a mirror may change or mix up answers; nothing is locked from it")
}
