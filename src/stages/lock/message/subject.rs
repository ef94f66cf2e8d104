//! The first line of a lock commit.

use std::collections::{BTreeMap, BTreeSet};

use super::without_moves;
use crate::model::{
    lock::{HoldChange, LockChange, Move, Previous},
    name::EnvironmentId,
    text::{one_line, plural},
};

/// The longest subject in characters; what Git's own tools show without wrapping.
const LONGEST: usize = 72;

/// `lock: ` and what moved, at most 72 characters; with fewer details where they do not fit, and cut at the worst.
pub(super) fn subject(change: &LockChange) -> String {
    let subjects = what(change).into_iter().map(|what| one_line(&format!("lock: {what}")).into_owned());
    let mut shortest = String::new();
    for subject in subjects {
        if subject.chars().count() <= LONGEST {
            return subject;
        }
        shortest = subject;
    }
    shortest.chars().take(LONGEST - 1).chain(['…']).collect()
}

/// What the subject says, with the most details first.
fn what(change: &LockChange) -> Vec<String> {
    let mut moves: BTreeMap<&EnvironmentId, Vec<&Move>> = BTreeMap::new();
    for moved in &change.moves {
        moves.entry(&moved.environment).or_default().push(moved);
    }
    // An image that moves because its hold has ended is one that moves.
    let has_moved = |hold: &&HoldChange| hold.hold.is_some() || !change.moves.iter().any(|moved| is_of(hold, moved));
    let holds: Vec<&HoldChange> = change.holds.iter().filter(has_moved).collect();
    let quiet = without_moves(change);
    if let ([], []) = (change.moves.as_slice(), change.holds.as_slice())
        && let ([rename], []) = (change.renames.as_slice(), quiet.as_slice())
    {
        return vec![format!("rename {} to {}", rename.from, rename.to), format!("rename {}", rename.from)];
    }
    if change.renames.len() > 1 && change.moves.is_empty() && change.holds.is_empty() {
        return vec![format!("rename {} environments", change.renames.len())];
    }
    let changed: BTreeSet<&EnvironmentId> = moves.keys().copied().chain(quiet.iter().map(|(id, _)| id)).collect();
    let added = moves.iter().filter(|(id, moves)| is_added(change, id, moves)).count();
    let removed = change.files.values().filter(|bytes| bytes.is_none()).count() - change.renames.len();
    match change.moves.as_slice() {
        _ if !holds.is_empty() => held(change, &holds),
        _ if added == changed.len() => vec![all("add", &changed)],
        _ if removed == changed.len() => vec![all("remove", &changed)],
        [] => vec![all("trim", &changed)],
        [moved] if quiet.is_empty() => one(moved),
        all_moves => match (all_moves.len(), moves.len(), moves.keys().next()) {
            (images, 1, Some(id)) => vec![format!("{} of {id}", plural(images, "image"))],
            (images, many, _) => {
                vec![format!("{} of {}", plural(images, "image"), plural(many, "environment"))]
            }
        },
    }
}

/// What the subject says where holds are set or taken away. Where an image that is held now has moved as well, a person
/// rolled it back; what else moved in the same commit only counts.
fn held(change: &LockChange, holds: &[&HoldChange]) -> Vec<String> {
    let has_moved = |hold: &&HoldChange| change.moves.iter().any(|moved| is_of(hold, moved));
    let (back, still): (Vec<&HoldChange>, Vec<_>) = holds.iter().copied().partition(has_moved);
    let (held, released): (Vec<_>, Vec<_>) = still.into_iter().partition(|hold| hold.hold.is_some());
    let others = change.moves.len() - back.len();
    let parts = [("roll back", "to", back), ("hold", "at", held), ("release", "", released)];
    let mut parts: Vec<_> = parts.into_iter().filter(|(.., holds)| !holds.is_empty()).collect();
    if let ([(verb, word, holds)], 0) = (parts.as_slice(), others)
        && let [hold] = holds.as_slice()
    {
        let image = format!("{verb} {} {}", hold.environment, hold.image);
        let at = hold.at.reference.tag().map_or_else(|| digest(&hold.at), str::to_owned);
        let long = (!word.is_empty()).then(|| format!("{image} {word} {at}"));
        return long.into_iter().chain([image]).collect();
    }
    let count = |count: usize| plural(count, "image");
    let environments: BTreeSet<&EnvironmentId> = holds.iter().map(|hold| &hold.environment).collect();
    let moved = (others > 0).then(|| format!("move {}", count(others)));
    let verbs: Vec<String> = parts.drain(..).map(|(verb, _, holds)| format!("{verb} {}", count(holds.len()))).collect();
    let what = verbs.into_iter().chain(moved).collect::<Vec<_>>().join(", ");
    match environments.first() {
        Some(id) if environments.len() == 1 && others == 0 => vec![format!("{what} of {id}"), what],
        _ => vec![what],
    }
}

fn is_of(hold: &HoldChange, moved: &Move) -> bool {
    moved.environment == hold.environment && moved.image == hold.image
}

/// `add research/geospatial`, or `add 3 environments`.
fn all(verb: &str, environments: &BTreeSet<&EnvironmentId>) -> String {
    match (environments.len(), environments.first()) {
        (1, Some(id)) => format!("{verb} {id}"),
        (count, _) => format!("{verb} {}", plural(count, "environment")),
    }
}

/// Whether all that the environment's lockfile holds is new.
fn is_added(change: &LockChange, id: &EnvironmentId, moves: &[&Move]) -> bool {
    let lockfile = change.lock.get(id).and_then(|lockfile| lockfile.as_ref().ok());
    lockfile
        .is_some_and(|lockfile| lockfile.images.len() == moves.len() && moves.iter().all(|moved| moved.old.is_none()))
}

fn one(moved: &Move) -> Vec<String> {
    let image = format!("{} {}", moved.environment, moved.image);
    let tag = |entry: &Previous| entry.reference.tag().map_or_else(|| digest(entry), str::to_owned);
    match (&moved.old, &moved.new) {
        (Some(old), Some(new)) => {
            let (old, new) = if old.reference.repository() != new.reference.repository() {
                (named(old), named(new))
            } else if old.reference.tag() == new.reference.tag() {
                (digest(old), digest(new))
            } else {
                (tag(old), tag(new))
            };
            vec![format!("{image} {old} → {new}"), format!("{image} → {new}"), image]
        }
        (None, Some(new)) => vec![format!("add {image} {}", tag(new)), format!("add {image}")],
        (_, None) => vec![format!("remove {image}")],
    }
}

fn digest(entry: &Previous) -> String {
    entry.digest.short().to_owned()
}

/// The last part of the repository's path, and the tag.
fn named(entry: &Previous) -> String {
    let name = entry.reference.path().rsplit('/').next().unwrap_or_default();
    entry.reference.tag().map_or_else(|| name.to_owned(), |tag| format!("{name}:{tag}"))
}
