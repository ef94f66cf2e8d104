//! Deliveries of registries.

use serde::Deserialize;

use super::{Malformed, Message, news};
use crate::model::news::{Moved, News};

/// Docker distribution, of which many registries are made. Most events are pulls, and pushes of layers and of manifests
/// without a tag: they are nothing. The host is what the pusher called the registry, so it does not count.
///
/// Source: <https://distribution.github.io/distribution/about/notifications/>.
pub(super) fn distribution(json: &[u8]) -> Result<Message, Malformed> {
    #[derive(Deserialize)]
    struct Envelope {
        events: Vec<Event>,
    }
    #[derive(Deserialize)]
    struct Event {
        action: String,
        #[serde(default)]
        target: Target,
    }
    #[derive(Default, Deserialize)]
    struct Target {
        #[serde(default)]
        repository: String,
        #[serde(default)]
        tag: String,
    }
    let envelope: Envelope = serde_json::from_slice(json)?;
    let pushed = envelope.events.iter().filter(|event| event.action == "push");
    let moved = pushed.filter_map(|event| Moved::new(None, &event.target.repository, &event.target.tag));
    Ok(news(moved.map(News::Moved)))
}

/// Harbor, in both of its formats. Its address as it knows it itself may not be the one that references use.
///
/// Source: <https://goharbor.io/docs/latest/working-with-projects/project-configuration/configure-webhooks/>.
pub(super) fn harbor(json: &[u8]) -> Result<Message, Malformed> {
    #[derive(Deserialize)]
    struct Notification {
        #[serde(rename = "type")]
        kind: String,
        #[serde(alias = "data", default)]
        event_data: Option<serde_json::Value>,
    }
    #[derive(Deserialize)]
    struct Data {
        #[serde(default)]
        resources: Vec<Resource>,
        repository: Repository,
    }
    #[derive(Deserialize)]
    struct Resource {
        /// A digest where there is no tag.
        #[serde(default)]
        tag: String,
    }
    #[derive(Deserialize)]
    struct Repository {
        repo_full_name: String,
    }
    let notification: Notification = serde_json::from_slice(json)?;
    if !matches!(notification.kind.as_str(), "PUSH_ARTIFACT" | "harbor.artifact.pushed") {
        return Ok(Message::Nothing);
    }
    let data: Data = serde_json::from_value(notification.event_data.ok_or(Malformed)?)?;
    let path = &data.repository.repo_full_name;
    Ok(news(data.resources.iter().filter_map(|resource| Moved::new(None, path, &resource.tag)).map(News::Moved)))
}

/// Quay's "Push to Repository". Source: <https://docs.quay.io/guides/notifications.html>.
pub(super) fn quay(json: &[u8]) -> Result<Message, Malformed> {
    #[derive(Deserialize)]
    struct Notification {
        /// `quay.io/namespace/name`.
        #[serde(default)]
        docker_url: String,
        /// Tags; of an old Quay, tags with the identities of their images.
        #[serde(default)]
        updated_tags: serde_json::Value,
    }
    let notification: Notification = serde_json::from_slice(json)?;
    let tags: Vec<&str> = match &notification.updated_tags {
        serde_json::Value::Array(tags) => tags.iter().filter_map(serde_json::Value::as_str).collect(),
        serde_json::Value::Object(tags) => tags.keys().map(String::as_str).collect(),
        // Another notification: a build, a finding.
        _ => return Ok(Message::Nothing),
    };
    let (host, path) = notification.docker_url.split_once('/').ok_or(Malformed)?;
    Ok(news(tags.into_iter().filter_map(|tag| Moved::new(Some(host), path, tag)).map(News::Moved)))
}

/// Docker Hub. Source: <https://docs.docker.com/docker-hub/repos/manage/webhooks/>.
pub(super) fn docker_hub(json: &[u8]) -> Result<Message, Malformed> {
    #[derive(Deserialize)]
    struct Notification {
        push_data: PushData,
        repository: Repository,
    }
    #[derive(Deserialize)]
    struct PushData {
        tag: String,
    }
    #[derive(Deserialize)]
    struct Repository {
        repo_name: String,
    }
    let Notification { push_data, repository } = serde_json::from_slice(json)?;
    let moved = Moved::new(Some("docker.io"), &repository.repo_name, &push_data.tag);
    Ok(news(moved.map(News::Moved)))
}
