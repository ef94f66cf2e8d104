//! From a reference to a digest, at one place with one credential.

use std::collections::BTreeSet;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use reqwest::{Method, StatusCode};

use super::{
    error::{Kind, RegistryError},
    manifest::{Content, Entry, Manifest, config_platform, digest_like, parse, stated_digest, stated_type},
    session::Session,
    transport::Reply,
};
use crate::model::{
    digest::Digest,
    reference::ImageReference,
    resolution::{PlatformManifest, ResolvedImage},
};

/// Asks with a HEAD, and with GETs for what the HEAD leaves open.
///
/// `known` is the digest that the lock holds. If it is still right, nothing more is asked.
pub(super) async fn resolve(
    session: &Session<'_>,
    reference: &ImageReference,
    known: Option<&Digest>,
) -> Result<ResolvedImage, RegistryError> {
    let pinned = reference.digest();
    let name = pinned.map(Digest::as_str).or(reference.tag()).unwrap_or("latest");
    let head = session.manifest(Method::HEAD, name).await?;
    match head.status {
        StatusCode::OK => {}
        // Some registries refuse HEAD, or answer it wrongly, or say why only to a GET: one GET decides.
        StatusCode::BAD_REQUEST | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => {
            return get(session, name, pinned, known).await;
        }
        _ => return Err(failed(session, &head)),
    }
    let stated = stated_digest(&head.headers);
    if let (Some(pinned), Some(stated)) = (pinned, &stated)
        && pinned != stated
    {
        return Err(mismatch(session, pinned, stated));
    }
    // What a pinned reference names is known; that it was found is all there is to learn.
    match pinned.cloned().or(stated) {
        Some(digest) if Some(&digest) == known => Ok(answer(digest, stated_type(&head.headers), None)),
        Some(digest) => match get(session, digest.as_str(), Some(&digest), known).await {
            // The tag may have moved since, and the old digest be gone.
            Err(error) if error.kind == Kind::NotFound && pinned.is_none() => {
                tracing::info!(%reference, %digest, "the tag moved while it was resolved");
                get(session, name, None, known).await
            }
            result => result,
        },
        None => get(session, name, None, known).await,
    }
}

fn answer(digest: Digest, media_type: &str, platforms: Option<Vec<PlatformManifest>>) -> ResolvedImage {
    ResolvedImage { digest, media_type: media_type.to_owned(), platforms, warnings: Vec::new() }
}

/// The manifest by tag or digest, its bytes hashed. The answer is taken whole: digest and content are of one body.
async fn get(
    session: &Session<'_>,
    name: &str,
    asked: Option<&Digest>,
    known: Option<&Digest>,
) -> Result<ResolvedImage, RegistryError> {
    let reply = session.manifest(Method::GET, name).await?;
    if reply.status != StatusCode::OK {
        return Err(failed(session, &reply));
    }
    let stated = stated_digest(&reply.headers);
    let expected = asked.or(stated.as_ref());
    let digest = digest_like(expected, &reply.body);
    let manifest = read(session, &reply)?;
    if let Some(expected) = expected
        && *expected != digest
    {
        return Err(mismatch(session, expected, &digest));
    }
    let media_type = manifest.media_type.to_owned();
    if known == Some(&digest) {
        return Ok(answer(digest, &media_type, None));
    }
    let platforms = match manifest.content {
        Content::Index(entries) => index(session, entries).await?,
        Content::Image { config: Some(config), size } => {
            image(session, &digest, &config, size).await?.into_iter().collect()
        }
        Content::Image { config: None, .. } => Vec::new(),
    };
    Ok(answer(digest, &media_type, Some(platforms)))
}

/// The platforms of an index, with the size of each.
async fn index(session: &Session<'_>, entries: Vec<Entry>) -> Result<Vec<PlatformManifest>, RegistryError> {
    let asked = stream::iter(entries).map(|entry| child(session, entry)).buffer_unordered(8);
    let found: BTreeSet<_> = asked
        .try_filter_map(async |found| Ok(found))
        .map_ok(|found| (found.platform, found.digest, found.size))
        .try_collect()
        .await?;
    Ok(found.into_iter().map(|(platform, digest, size)| PlatformManifest { platform, digest, size }).collect())
}

/// One entry of an index. None where it is no image, or is not there: mirrors may keep some platforms only.
async fn child(session: &Session<'_>, entry: Entry) -> Result<Option<PlatformManifest>, RegistryError> {
    let reply = session.manifest(Method::GET, entry.digest.as_str()).await?;
    if reply.status == StatusCode::NOT_FOUND {
        tracing::warn!(host = session.endpoint.host, digest = %entry.digest, "a platform of an index is not there, it is left out");
        return Ok(None);
    }
    let manifest = read_verified(session, &reply, &entry.digest)?;
    match (manifest.content, entry.platform) {
        (Content::Image { size, .. }, Some(platform)) => {
            Ok(Some(PlatformManifest { platform, digest: entry.digest, size }))
        }
        (Content::Image { config: Some(config), size }, None) => image(session, &entry.digest, &config, size).await,
        _ => Ok(None),
    }
}

/// An image whose platform is only in its configuration.
async fn image(
    session: &Session<'_>,
    digest: &Digest,
    config: &Digest,
    size: u64,
) -> Result<Option<PlatformManifest>, RegistryError> {
    let reply = session.blob(config.as_str()).await?;
    if reply.status != StatusCode::OK {
        return Err(failed(session, &reply));
    }
    let found = digest_like(Some(config), &reply.body);
    if found != *config {
        return Err(mismatch(session, config, &found));
    }
    Ok(config_platform(&reply.body).map(|platform| PlatformManifest { platform, digest: digest.clone(), size }))
}

fn read_verified(session: &Session<'_>, reply: &Reply, digest: &Digest) -> Result<Manifest, RegistryError> {
    if reply.status != StatusCode::OK {
        return Err(failed(session, reply));
    }
    let found = digest_like(Some(digest), &reply.body);
    if found == *digest { read(session, reply) } else { Err(mismatch(session, digest, &found)) }
}

fn read(session: &Session<'_>, reply: &Reply) -> Result<Manifest, RegistryError> {
    parse(&reply.body, stated_type(&reply.headers))
        .map_err(|error| RegistryError::new(Kind::Invalid, &session.endpoint.host, error.to_string()))
}

/// An answer that is no success, as an error.
fn failed(session: &Session<'_>, reply: &Reply) -> RegistryError {
    let host = &session.endpoint.host;
    match reply.status {
        StatusCode::NOT_FOUND => RegistryError::new(Kind::NotFound, host, reply.words()).hint(
            "check the repository's path and the tag; a deleted tag keeps its lock entry until the reference changes",
        ),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => session.unauthorized(&reply.words()),
        _ => RegistryError::new(Kind::Unavailable, host, reply.words())
            .hint("it is tried again; the lock stays as it is"),
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
