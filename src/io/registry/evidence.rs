//! What a digest is: its manifest, and those of its platforms, from whichever place has them.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicUsize, Ordering},
};

use futures::{StreamExt as _, TryStreamExt as _, future::BoxFuture, stream};

use super::{
    credentials::Credentials,
    error::{Kind, RegistryError},
    fetch::{Got, Wanted},
    manifest::{Content, Entry, MAX_ENTRIES},
    places::{Lost, Places},
};
use crate::model::{
    digest::Digest,
    resolution::{ContentKind, Evidence, Platform, PlatformManifest},
};

/// How deep indexes are read: the index itself, and two levels of indexes in it.
const LEVELS: usize = 3;

/// Manifests of one image that are fetched at the same time.
const CONCURRENCY: usize = 8;

/// The walk through one image.
pub(super) struct Walk<'a, C> {
    places: Places<'a, C>,
    /// Entries of indexes seen so far.
    entries: AtomicUsize,
}

/// An entry of an index, or the digest itself.
struct Node {
    digest: Digest,
    /// The platform that the index states.
    platform: Option<Platform>,
    level: usize,
}

impl<'a, C: Credentials> Walk<'a, C> {
    pub(super) fn new(places: Places<'a, C>) -> Self {
        Self { places, entries: AtomicUsize::new(0) }
    }

    /// All that is known about the digest. A platform whose manifest is at no place has the size "unknown": partial
    /// copies are common, and what is missing may come later.
    pub(super) async fn evidence(&self, digest: &Digest) -> Result<Evidence, Lost> {
        let mut evidence = self.node(Node { digest: digest.clone(), platform: None, level: 0 }).await?;
        let sorted: BTreeSet<_> =
            evidence.platforms.into_iter().map(|found| (found.platform, found.digest, found.size)).collect();
        let manifest = |(platform, digest, size)| PlatformManifest { platform, digest, size };
        evidence.platforms = sorted.into_iter().map(manifest).collect();
        Ok(evidence)
    }

    fn node(&self, node: Node) -> BoxFuture<'_, Result<Evidence, Lost>> {
        Box::pin(async move {
            let Got::Manifest(manifest) = self.places.fetch(Wanted::Manifest(&node.digest)).await? else {
                return Err(self.places.invalid("it gives no manifest"));
            };
            let kind = manifest.content.kind();
            let found = |kind, platforms| Evidence { media_type: manifest.media_type.to_owned(), kind, platforms };
            let one = |platform: Option<Platform>, size| {
                let platform = platform.or(node.platform.clone());
                platform.map(|platform| PlatformManifest { platform, digest: node.digest.clone(), size: Some(size) })
            };
            match manifest.content {
                Content::Artifact(_) => Ok(found(kind, Vec::new())),
                Content::Image { size, .. } if node.platform.is_some() => {
                    Ok(found(kind, one(None, size).into_iter().collect()))
                }
                Content::Image { config, size } => {
                    let Got::Platform(platform) = self.places.fetch(Wanted::Platform(&config)).await? else {
                        return Err(self.places.invalid("it gives no configuration"));
                    };
                    Ok(found(kind, one(platform, size).into_iter().collect()))
                }
                Content::Index(entries) => {
                    let (kind, platforms) = self.index(entries, &node).await?;
                    Ok(found(kind, platforms))
                }
            }
        })
    }

    /// The entries of an index. It is an image unless all that is in it are artifacts.
    async fn index(&self, entries: Vec<Entry>, node: &Node) -> Result<(ContentKind, Vec<PlatformManifest>), Lost> {
        if self.entries.fetch_add(entries.len(), Ordering::Relaxed) + entries.len() > MAX_ENTRIES {
            return Err(self.places.invalid(&format!("its indexes have more than {MAX_ENTRIES} entries together")));
        }
        let all: Vec<Evidence> = stream::iter(entries)
            .map(|entry| self.child(entry, node.level + 1, node.platform.clone()))
            .buffer_unordered(CONCURRENCY)
            .try_collect()
            .await?;
        let mut kinds = all.iter().map(|evidence| &evidence.kind);
        let kind = match all.first() {
            Some(Evidence { kind: artifact @ ContentKind::Artifact(_), .. })
                if kinds.all(|kind| *kind != ContentKind::Image) =>
            {
                artifact.clone()
            }
            _ => ContentKind::Image,
        };
        Ok((kind, all.into_iter().flat_map(|evidence| evidence.platforms).collect()))
    }

    /// What is missing everywhere, or too deep, is what its index says.
    async fn child(&self, entry: Entry, level: usize, outer: Option<Platform>) -> Result<Evidence, Lost> {
        let platform = entry.platform.or(outer);
        let stated = || {
            let manifest = |platform| PlatformManifest { platform, digest: entry.digest.clone(), size: None };
            Evidence {
                media_type: String::new(),
                kind: ContentKind::Image,
                platforms: platform.clone().map(manifest).into_iter().collect(),
            }
        };
        if level > LEVELS {
            return Ok(stated());
        }
        let node = Node { digest: entry.digest.clone(), platform: platform.clone(), level };
        match self.node(node).await {
            Err(Lost::Everywhere { last: RegistryError { kind: Kind::NotFound, .. }, .. }) => {
                tracing::warn!(digest = %entry.digest, "the manifest of a platform is missing; its size stays unknown");
                Ok(stated())
            }
            result => result,
        }
    }
}
