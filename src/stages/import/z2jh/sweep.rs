//! The places of a file that hold an image and that nobody has read: nothing is left out in silence.

use std::collections::BTreeSet;

use super::super::{
    cursor::Cursor,
    document::Value,
    draft::Collected,
    image::{self, Found},
};
use super::state::IMAGE;

/// The most places that are named; a file with more is something else.
const MOST: usize = 500;

/// Parts of the chart that run once, and why their images are not brought over.
const CORE: [&str; 4] = ["hub", "proxy", "scheduling", "prePuller"];

/// Names every image that is not among `seen`.
pub fn sweep(root: &Cursor<'_>, seen: &BTreeSet<String>, collected: &mut Collected) {
    let before = collected.left_out.len();
    visit(root, seen, collected, before);
}

fn visit(place: &Cursor<'_>, seen: &BTreeSet<String>, collected: &mut Collected, before: usize) {
    if collected.left_out.len() - before > MOST || seen.contains(place.path()) {
        return;
    }
    for (key, value) in place.entries() {
        // Read with its option, which names it.
        if key == "unlisted_choice" || super::is_holder(key) {
            continue;
        }
        if IMAGE.contains(&key) && looks_like_one(&value) && !seen.contains(value.path()) {
            let why = match image::read(&value) {
                Found::Skipped(why) => why,
                Found::Image(reference, _) => format!("{reference}: {}", reason(value.path())),
            };
            collected.leave_out(&value, why);
        } else {
            visit(&value, seen, collected, before);
        }
    }
    place.items().iter().for_each(|item| visit(item, seen, collected, before));
}

fn looks_like_one(value: &Cursor<'_>) -> bool {
    match &value.node.value {
        Value::Text(_) => true,
        Value::Map(_) => ["name", "repository", "tag"].iter().any(|key| value.text_of(key).is_some()),
        _ => false,
    }
}

fn reason(path: &str) -> &'static str {
    let parts: Vec<&str> = path.split('.').collect();
    if parts.iter().any(|part| CORE.contains(part)) {
        "a part of the hub itself, which is not started on every node"
    } else {
        "not a place of users' pods that is known; if they do run it, add it to an environment"
    }
}
