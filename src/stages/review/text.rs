//! A review as lines for a terminal, and the words that it shares with Markdown.

use super::{Digests, EnvironmentChange, EnvironmentChangeKind as Kind, Held, ImageChange, Nodes, Review};
use crate::{
    model::{
        plan::Action,
        text::{plural, size},
    },
    stages::lock::describe_hold,
};

/// What comes after the summary and before the diffs: images and environments.
pub fn lines(review: &Review) -> Vec<String> {
    let mut lines: Vec<String> = review.images.iter().map(|change| image(review, change)).collect();
    lines.extend(review.environments.iter().map(|change| environment(review, change)));
    lines.extend(review.holds.iter().map(describe_hold));
    lines.extend(review.shared.iter().map(|file| format!("{file} changed: it concerns all environments")));
    if review.former_problems > 0 {
        lines.push(still_there(review.former_problems));
    }
    lines
}

fn image(review: &Review, change: &ImageChange) -> String {
    let side = |held: &Option<Held>, unknown: &str| match held {
        None => "none".to_owned(),
        Some(Held { reference, digest: Some(digest) }) => format!("{reference} ({})", digest.short()),
        Some(Held { reference, digest: None }) => format!("{reference} ({unknown})"),
    };
    let (old, new) = (side(&change.old, NOT_LOCKED), side(&change.new, unknown_digest(review)));
    let mut line = format!("{} {}: {old} → {new}", change.environment, change.image);
    if !change.pull.is_empty() {
        let pull: Vec<_> = change.pull.iter().map(|pull| format!("{} {}", size(pull.bytes), pull.platform)).collect();
        line += &format!(", to pull on each node: up to {}", pull.join(", "));
    }
    line
}

fn environment(review: &Review, change: &EnvironmentChange) -> String {
    let mut line = format!("{} {}", change.id, words(change));
    match &change.nodes {
        Nodes::Pool(pool) => line += &format!(" (pool {pool})"),
        Nodes::All => line += " (all Linux nodes)",
        Nodes::Selected => line += " (its own node selection)",
        Nodes::Unknown => {}
    }
    if let Some(nodes) = review.nodes.get(&change.id) {
        line += &format!(" on {}", plural(*nodes, "node"));
    }
    line
}

/// What the old side of an image says that its lock does not hold.
pub(super) const NOT_LOCKED: &str = "not locked";

/// What stands in the place of a new digest that is not known.
pub(super) fn unknown_digest(review: &Review) -> &'static str {
    match review.digests {
        Digests::Locked => "locked after the merge",
        Digests::Resolved => "not resolved",
    }
}

/// `changed: images, display name`.
pub(super) fn words(change: &EnvironmentChange) -> String {
    match &change.kind {
        Kind::Added => "added".to_owned(),
        Kind::Changed => format!("changed: {}", change.parts.join(", ")),
        Kind::Renamed(from) if change.parts.is_empty() => format!("renamed from {from}"),
        Kind::Renamed(from) => format!("renamed from {from}, changed: {}", change.parts.join(", ")),
        Kind::Removed => "removed".to_owned(),
        Kind::Broken => "broken: what it has stays".to_owned(),
        Kind::Repaired => "repaired".to_owned(),
    }
}

/// That problems are not this change's.
pub(super) fn still_there(count: usize) -> String {
    format!("{} that this change did not cause", plural(count, "problem"))
}

/// `1 environment, 2 images; objects: 2 to create, 1 to change, 0 to delete`.
pub fn summary(review: &Review) -> String {
    let (environments, images) =
        (plural(review.environments.len(), "environment"), plural(review.images.len(), "image"));
    format!("{environments}, {images}; {}", objects(review))
}

/// What becomes of the objects, as far as it is known.
pub(super) fn objects(review: &Review) -> String {
    let known: Vec<String> =
        [(Action::Create, "to create"), (Action::Configure, "to change"), (Action::Delete, "to delete")]
            .into_iter()
            .map(|(action, words)| format!("{} {words}", review.count(action)))
            .collect();
    let known = format!("objects: {}", known.join(", "));
    match (review.unknown_digests(), review.digests, review.objects.is_empty()) {
        (0, ..) => known,
        (count, Digests::Resolved, _) => format!("{known}; {} not resolved", plural(count, "image")),
        (count, Digests::Locked, true) => {
            format!("objects change once {} known (`--resolve` asks the registries)", digests(count))
        }
        (count, Digests::Locked, false) => {
            format!("{known}, and more once {} known (`--resolve` asks the registries)", digests(count))
        }
    }
}

fn digests(count: usize) -> String {
    if count == 1 { "the new digest is".to_owned() } else { format!("{count} new digests are") }
}
