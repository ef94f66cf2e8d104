//! Deliveries of GitHub, Gitea and GitLab.

use serde::Deserialize;

use super::{Malformed, Message, news};
use crate::model::news::{Moved, News};

/// A push, as all three tell it.
#[derive(Deserialize)]
struct Push {
    #[serde(rename = "ref")]
    reference: String,
    /// Where it is now; zeros when it is gone.
    after: Option<String>,
}

impl Push {
    fn message(self) -> Message {
        let name = self.reference.strip_prefix("refs/heads/").map(str::to_owned);
        let is_commit = |text: &String| {
            text.len() == 40 && text.bytes().all(|b| b.is_ascii_hexdigit()) && text.bytes().any(|b| b != b'0')
        };
        let commit = self.after.filter(is_commit).map(|commit| commit.to_ascii_lowercase());
        news(name.map(|name| News::Branch { name: Some(name), commit }))
    }
}

/// Source: <https://docs.github.com/en/webhooks/webhook-events-and-payloads>.
pub(super) fn github(event: Option<&str>, json: &[u8]) -> Result<Message, Malformed> {
    match event {
        Some("push") => Ok(serde_json::from_slice::<Push>(json)?.message()),
        Some("ping") => Ok(Message::Ping),
        Some("package" | "registry_package") => Ok(serde_json::from_slice::<GitHubPackage>(json)?.message()),
        Some(_) => Ok(Message::Nothing),
        None => Err(Malformed),
    }
}

/// `package` or `registry_package`.
#[derive(Deserialize)]
struct GitHubPackage {
    action: String,
    #[serde(alias = "registry_package")]
    package: GitHubPackagePart,
}

#[derive(Deserialize)]
struct GitHubPackagePart {
    name: String,
    namespace: Option<String>,
    package_type: Option<String>,
    package_version: Option<PackageVersion>,
}

#[derive(Deserialize)]
struct PackageVersion {
    /// `ghcr.io/owner/name:tag`; with no tag, or a digest, where the version has none.
    package_url: Option<String>,
    container_metadata: Option<ContainerMetadata>,
}

#[derive(Deserialize)]
struct ContainerMetadata {
    tag: Option<ContainerTag>,
}

#[derive(Deserialize)]
struct ContainerTag {
    #[serde(default)]
    name: String,
}

impl GitHubPackage {
    fn message(self) -> Message {
        let is_container =
            self.package.package_type.as_deref().is_some_and(|kind| kind.eq_ignore_ascii_case("container"));
        if !is_container || !matches!(self.action.as_str(), "published" | "updated") {
            return Message::Nothing;
        }
        let version = self.package.package_version;
        let tag = version.as_ref().and_then(|version| version.container_metadata.as_ref()?.tag.as_ref());
        let by_name = self.package.namespace.zip(tag).and_then(|(owner, tag)| {
            let path = format!("{owner}/{}", self.package.name).to_lowercase();
            Moved::new(Some("ghcr.io"), &path, &tag.name)
        });
        let url = version.as_ref().and_then(|version| version.package_url.as_deref());
        let moved = by_name.or_else(|| {
            let (host, rest) = url?.trim_start_matches("https://").split_once('/')?;
            let (path, tag) = rest.rsplit_once(':')?;
            Moved::new(Some(host), &path.to_lowercase(), tag)
        });
        news(moved.map(News::Moved))
    }
}

/// Source: <https://docs.gitea.com/usage/webhooks>; Forgejo sends the same.
pub(super) fn gitea(event: Option<&str>, json: &[u8]) -> Result<Message, Malformed> {
    match event {
        Some("push") => Ok(serde_json::from_slice::<Push>(json)?.message()),
        Some("package") => Ok(serde_json::from_slice::<GiteaPackage>(json)?.message()),
        Some(_) => Ok(Message::Nothing),
        None => Err(Malformed),
    }
}

/// Gitea's own container registry.
#[derive(Deserialize)]
struct GiteaPackage {
    action: String,
    package: GiteaPackagePart,
}

#[derive(Deserialize)]
struct GiteaPackagePart {
    #[serde(rename = "type")]
    kind: String,
    name: String,
    /// The tag; a digest for what has none.
    version: String,
    owner: GiteaOwner,
}

#[derive(Deserialize)]
struct GiteaOwner {
    login: String,
}

impl GiteaPackage {
    fn message(self) -> Message {
        let Self { action, package } = self;
        if action != "created" || package.kind != "container" {
            return Message::Nothing;
        }
        let path = format!("{}/{}", package.owner.login, package.name).to_lowercase();
        news(Moved::new(None, &path, &package.version).map(News::Moved))
    }
}

/// Source: <https://docs.gitlab.com/user/project/integrations/webhook_events/>. The body says what happened, also for
/// hooks of groups and of the whole GitLab.
pub(super) fn gitlab(json: &[u8]) -> Result<Message, Malformed> {
    #[derive(Deserialize)]
    struct Kind {
        event_name: Option<String>,
        object_kind: Option<String>,
    }
    let kind: Kind = serde_json::from_slice(json)?;
    match kind.event_name.or(kind.object_kind).as_deref() {
        Some("push") => Ok(serde_json::from_slice::<Push>(json)?.message()),
        Some(_) => Ok(Message::Nothing),
        None => Err(Malformed),
    }
}
