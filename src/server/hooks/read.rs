//! What a delivery says, as news. Pure: bytes in, news out.

mod forge;
mod registry;
#[cfg(test)]
mod tests;

use super::sender::Sender;
use crate::model::news::News;

/// What a delivery says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// That something may have changed.
    News(Vec<News>),
    /// That the sender wants to know whether it is heard.
    Ping,
    /// Nothing that concerns larder.
    Nothing,
}

/// Not what the sender sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

impl From<serde_json::Error> for Malformed {
    fn from(_: serde_json::Error) -> Self {
        Self
    }
}

/// Reads the JSON of a delivery; `event` is the header that says what happened.
pub(super) fn read(sender: Sender, event: Option<&str>, json: &[u8]) -> Result<Message, Malformed> {
    match sender {
        Sender::GitHub | Sender::Ghcr => forge::github(event, json),
        Sender::Gitea => forge::gitea(event, json),
        Sender::GitLab => forge::gitlab(json),
        Sender::Registry => registry::distribution(json),
        Sender::Harbor => registry::harbor(json),
        Sender::Quay => registry::quay(json),
        Sender::DockerHub => registry::docker_hub(json),
    }
}

/// News, or nothing when there are none.
fn news(all: impl IntoIterator<Item = News>) -> Message {
    let all: Vec<News> = all.into_iter().collect();
    if all.is_empty() { Message::Nothing } else { Message::News(all) }
}
