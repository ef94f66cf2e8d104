//! A review as lines for a terminal.

use super::{
    Held, Review,
    markdown::{plural, size, verb, word},
};
use crate::{model::plan::Action, stages::lock::describe_hold};

/// What comes before the diffs: environments and images.
pub fn lines(review: &Review) -> Vec<String> {
    let mut lines = Vec::new();
    for change in &review.environments {
        let mut line = format!("{} {}", change.id, word(change.kind));
        if !change.parts.is_empty() {
            line += &format!(": {}", change.parts.join(", "));
        }
        if let Some(pool) = &change.pool {
            line += &format!(" (pool {pool})");
        }
        if let Some(nodes) = review.nodes.get(&change.id) {
            line += &format!(" on {}", plural(*nodes, "node"));
        }
        lines.push(line);
    }
    for change in &review.images {
        let side = |held: &Option<Held>, unlocked: &str| match held {
            None => "none".to_owned(),
            Some(Held { reference, digest: Some(digest) }) => format!("{reference} ({})", digest.short()),
            Some(Held { reference, digest: None }) => format!("{reference} ({unlocked})"),
        };
        let mut line = format!(
            "{} {}: {} → {}",
            change.environment,
            change.image,
            side(&change.old, "not locked"),
            side(&change.new, "locked after the merge")
        );
        if !change.pull.is_empty() {
            let pull: Vec<_> =
                change.pull.iter().map(|pull| format!("{} {}", size(pull.bytes), pull.platform)).collect();
            line += &format!(", to pull on each node: up to {}", pull.join(", "));
        }
        lines.push(line);
    }
    lines.extend(review.holds.iter().map(describe_hold));
    lines.extend(review.shared.iter().map(|file| format!("{file} changed: it concerns all environments")));
    if review.former_problems > 0 {
        lines.push(format!("{} of before still stand", plural(review.former_problems, "problem")));
    }
    lines
}

/// `1 environment, 2 images; objects: 2 to create, 1 to change, 0 to delete`.
pub fn summary(review: &Review) -> String {
    let objects: Vec<String> = [Action::Create, Action::Configure, Action::Delete]
        .into_iter()
        .map(|action| format!("{} to {}", review.count(action), verb(action)))
        .collect();
    let (environments, images) =
        (plural(review.environments.len(), "environment"), plural(review.images.len(), "image"));
    format!("{environments}, {images}; objects: {}", objects.join(", "))
}
