//! The message of a lock commit: a subject that says what moved, old → new in the body, and trailers for `git log`.

mod subject;
#[cfg(test)]
mod tests;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use crate::{
    model::{
        digest::Digest,
        lock::{Hold, HoldChange, LockChange, Move, Previous, Rename},
        name::EnvironmentId,
        text::one_line,
    },
    stages::lockfile::environment_of,
};

/// Lines about images that the body has at most. The trailers name all of them.
const BODY_LINES: usize = 200;

/// What a trailer says where there is no digest: the image is new, or gone.
const NONE: &str = "none";

/// The message of the commit that writes `change.files`; `version` is larder's.
///
/// The last paragraph holds nothing but trailers, so that `git log --format='%(trailers:key=Larder-New-Digest)'` finds
/// them: four for each image that moved or whose hold changed (`Larder-Environment`, `Larder-Image`, `Larder-Old-Digest`,
/// `Larder-New-Digest`), followed by `Larder-Hold` with the reason for the hold (as a JSON string where it could be taken
/// for something else) where one was set, or `none` where one was taken away,
/// `Larder-Environment` alone for a lockfile that changed without either, or with `Larder-Renamed-From` for one that moved
/// with its environment's file, and `Larder-Version`.
/// <https://git-scm.com/docs/git-interpret-trailers>
pub fn message(change: &LockChange, version: &str) -> String {
    let quiet = without_moves(change);
    let mut lines: Vec<String> = change.moves.iter().map(|moved| format!("- {}", describe(moved))).collect();
    lines.extend(change.holds.iter().map(|hold| format!("- {}", describe_hold(hold))));
    lines.extend(change.renames.iter().map(|rename| format!("- {}", describe_rename(rename))));
    lines.extend(quiet.iter().map(|(id, what)| format!("- {id}: {what}")));
    if lines.len() > BODY_LINES {
        let more = lines.len() - BODY_LINES;
        lines.truncate(BODY_LINES);
        lines.push(format!("- and {more} more; the trailers name all of them"));
    }
    let trailers: Vec<String> = images(&change.moves, &change.holds)
        .into_iter()
        .flat_map(|(moved, hold)| {
            let hold = hold.map(|hold| trailer("Hold", &hold_value(hold)));
            trailers(&moved).into_iter().chain(hold)
        })
        .chain(change.renames.iter().flat_map(|Rename { from, to }| {
            [trailer("Environment", &to.to_string()), trailer("Renamed-From", &from.to_string())]
        }))
        .chain(quiet.iter().map(|(id, _)| trailer("Environment", &id.to_string())))
        .chain([trailer("Version", version)])
        .collect();
    let body: Vec<_> = lines.iter().map(|line| one_line(line)).collect();
    format!("{}\n\n{}\n\n{}\n", subject::subject(change), body.join("\n"), trailers.join("\n"))
}

/// The same message with one trailer more: the digest of all manifests that the commit leads to.
pub fn with_manifests(message: &str, digest: &Digest) -> String {
    format!("{message}{}\n", trailer("Manifests", digest.as_str()))
}

/// Environments whose lockfile changes although no image moves.
fn without_moves(change: &LockChange) -> Vec<(EnvironmentId, &'static str)> {
    let moved = change.moves.iter().map(|moved| &moved.environment);
    let renamed = change.renames.iter().flat_map(|rename| [&rename.from, &rename.to]);
    let moved: BTreeSet<&EnvironmentId> =
        moved.chain(change.holds.iter().map(|hold| &hold.environment)).chain(renamed).collect();
    let files = change.files.iter().filter_map(|(path, bytes)| Some((environment_of(path)?, bytes)));
    files
        .filter(|(id, _)| !moved.contains(id))
        .map(|(id, bytes)| (id, if bytes.is_some() { "as many previous digests as are retained" } else { "removed" }))
        .collect()
}

/// One image's change in a line, for people: `research/geo notebook: quay.io/a:1 (sha256:…) → quay.io/a:2 (sha256:…)`.
pub fn describe(moved: &Move) -> String {
    let side = |side: &Option<Previous>| {
        side.as_ref().map_or_else(|| NONE.to_owned(), |entry| format!("{} ({})", entry.reference, entry.digest.short()))
    };
    one_line(&format!("{} {}: {} → {}", moved.environment, moved.image, side(&moved.old), side(&moved.new)))
        .into_owned()
}

/// A hold in a line, for people: `research/geo notebook: held at quay.io/a:1 (sha256:…): "why"`.
pub fn describe_hold(hold: &HoldChange) -> String {
    let HoldChange { environment, image, at, hold } = hold;
    let place = format!("{} ({})", at.reference, at.digest.short());
    one_line(&match hold {
        Some(Hold { reason, until: Some(until), .. }) => {
            format!("{environment} {image}: held at {place} until {until}: {reason}")
        }
        Some(Hold { reason, .. }) => format!("{environment} {image}: held at {place}: {reason}"),
        None => format!("{environment} {image}: released at {place}"),
    })
    .into_owned()
}

/// The value of the trailer of a hold: its reason, or `none` where it is taken away.
pub fn hold_value(hold: &HoldChange) -> String {
    hold.reason().map_or_else(|| NONE.to_owned(), unambiguous)
}

/// A rename in a line, for people.
pub fn describe_rename(rename: &Rename) -> String {
    one_line(&format!("{}: renamed to {}", rename.from, rename.to)).into_owned()
}

/// A reason as the value of a trailer: as it is, or as a JSON string where it could be taken for [`NONE`] or for such a
/// string.
fn unambiguous(reason: &str) -> String {
    let trimmed = reason.trim();
    if trimmed == NONE || trimmed.starts_with('"') || trimmed != reason {
        serde_json::Value::from(one_line(reason)).to_string()
    } else {
        reason.to_owned()
    }
}

/// The images that moved or whose hold changed, in order; what did not move is there as a move to the same.
pub fn images<'a>(moves: &'a [Move], holds: &'a [HoldChange]) -> Vec<(Cow<'a, Move>, Option<&'a HoldChange>)> {
    let mut holds: BTreeMap<_, _> = holds.iter().map(|hold| ((&hold.environment, &hold.image), hold)).collect();
    let moved = moves.iter().map(|moved| (Cow::Borrowed(moved), holds.remove(&(&moved.environment, &moved.image))));
    let mut images: Vec<_> = moved.collect();
    if !holds.is_empty() {
        images.extend(holds.into_values().map(|hold| {
            let (environment, image, at) = (hold.environment.clone(), hold.image.clone(), Some(hold.at.clone()));
            (Cow::Owned(Move { environment, image, old: at.clone(), new: at }), Some(hold))
        }));
        images.sort_by(|(a, _), (b, _)| (&a.environment, &a.image).cmp(&(&b.environment, &b.image)));
    }
    images
}

/// Whether a commit's message says that this very move is what larder made the commit for.
pub fn accounts_for(message: &str, moved: &Move) -> bool {
    message.contains(&trailers(moved).join("\n"))
}

fn trailers(moved: &Move) -> [String; 4] {
    let digest = |side: &Option<Previous>| side.as_ref().map_or(NONE.to_owned(), |entry| entry.digest.to_string());
    [
        trailer("Environment", &moved.environment.to_string()),
        trailer("Image", moved.image.as_str()),
        trailer("Old-Digest", &digest(&moved.old)),
        trailer("New-Digest", &digest(&moved.new)),
    ]
}

fn trailer(key: &str, value: &str) -> String {
    format!("Larder-{key}: {}", one_line(value))
}
