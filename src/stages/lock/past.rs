//! What the lock's history says about images: that a person took one back, that one was released, what it was before.

#[cfg(test)]
mod tests;
mod wishes;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::message::accounts_for;
use crate::{
    model::{
        batch::{Batch, succeeded},
        digest::Digest,
        environment::{Environment, Image},
        history::{CommitInfo, LockStep},
        lock::{Lock, LockChange, LockedImage, Lockfile, Move},
        name::{EnvironmentId, Name},
        reference::ImageReference,
        text::one_line,
    },
    stages::lockfile::{Images, Lockfiles, diff::locked_as, environment_of},
};

pub use wishes::Wishes;

/// As much of a person's name as a reason holds, in characters.
const LONGEST_NAME: usize = 60;

/// What is known of images, by environment and name.
pub type Past = BTreeMap<EnvironmentId, BTreeMap<Name, ImagePast>>;

/// Images whose history matters.
pub type Questions = BTreeMap<EnvironmentId, BTreeMap<Name, Question>>;

/// What an image's file says that matters to its history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The reference that it asks for.
    pub reference: ImageReference,
    /// How many earlier digests its environment retains.
    pub retain: usize,
}

/// What the commits say about one image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImagePast {
    /// Who brought it to what is locked, and in which commit, where that was a person against larder.
    pub reverted: Option<String>,
    /// Whether its hold was taken away since it came to what is locked.
    pub released: bool,
    /// Digests that it had before the present one.
    pub former: BTreeSet<Digest>,
    /// Whether it had the present digest before, and another one in between.
    pub turned: bool,
}

/// The images whose history matters: those that move although their reference is the same, and those that someone
/// else has moved since this controller saw the lock (`seen`: the lockfiles that differ since then, as they were; none
/// when it has seen none yet).
pub fn questions(environments: &Batch<Environment>, old: &Lock, seen: Option<&Lock>, change: &LockChange) -> Questions {
    let mut questions = Questions::new();
    for (id, environment) in succeeded(environments).filter(|(_, environment)| !environment.suspend) {
        let Some(Ok(before)) = old.get(id) else { continue };
        let after = change.lock.get(id).and_then(|after| after.as_ref().ok());
        let last = seen.map(|seen| seen.get(id).and_then(|lockfile| lockfile.as_ref().ok()));
        let asked = environment.images.iter().filter(|image| is_asked(image, before, after, last));
        let question =
            |image: &Image| Question { reference: image.reference.clone(), retain: environment.puller.retain };
        let asked: BTreeMap<_, _> = asked.map(|image| (image.name.clone(), question(image))).collect();
        if !asked.is_empty() {
            questions.insert(id.clone(), asked);
        }
    }
    questions
}

fn is_asked(image: &Image, before: &Lockfile, after: Option<&Lockfile>, last: Option<Option<&Lockfile>>) -> bool {
    let Some(entry) = before.images.get(&image.name).filter(|entry| entry.hold.is_none()) else { return false };
    let moves = after.and_then(|after| after.images.get(&image.name)).is_some_and(|new| new.digest != entry.digest);
    let same = entry.reference == image.reference;
    match last {
        // Nothing was seen yet: a person may have taken it back while no controller ran.
        None => moves,
        Some(last) => {
            let others = last.and_then(|last| last.images.get(&image.name)).is_some_and(|last| {
                last.reference == image.reference && last.digest != entry.digest && !is_step(last, entry)
            });
            (moves && same) || others
        }
    }
}

/// Whether the entry only shows a step of another controller's to something new, which needs no look at the history.
fn is_step(last: &LockedImage, entry: &LockedImage) -> bool {
    entry.previous.first() == Some(&locked_as(last)) && last.previous.iter().all(|known| known.digest != entry.digest)
}

/// Reads the answers out of commits, newest first for each lockfile. The second value says whether older commits could
/// still tell where an image's present digest came from.
pub fn past(questions: &Questions, old: &Lock, steps: &[LockStep]) -> (Past, bool) {
    let mut lockfiles = Lockfiles::default();
    let mut stories: BTreeMap<(&EnvironmentId, &Name), Vec<Event<'_>>> = BTreeMap::new();
    for step in steps {
        let found = environment_of(&step.file.path).and_then(|id| questions.get_key_value(&id));
        let Some((id, images)) = found else { continue };
        let (Ok(old), Ok(new)) = lockfiles.both(&step.file) else { continue };
        for name in images.keys() {
            let entry = |side: &Option<Arc<Images>>| side.as_ref()?.get(name).cloned();
            let (old, new) = (entry(&old), entry(&new));
            if old != new {
                stories.entry((id, name)).or_default().push(Event { step, old, new });
            }
        }
    }
    let (mut past, mut open) = (Past::new(), false);
    for (id, images) in questions {
        for (name, question) in images {
            let entry = old.get(id).and_then(|lockfile| lockfile.as_ref().ok()?.images.get(name));
            let (Some(present), story) = (entry, stories.get(&(id, name)).map_or(&[][..], Vec::as_slice)) else {
                continue;
            };
            let (found, known) = Story { id, name, events: story }.tell(question, present);
            open |= !known;
            past.entry(id.clone()).or_default().insert(name.clone(), found);
        }
    }
    (past, open)
}

/// What one commit did to one entry.
struct Event<'a> {
    step: &'a LockStep,
    old: Option<Arc<LockedImage>>,
    new: Option<Arc<LockedImage>>,
}

/// One image's commits, newest first.
struct Story<'a> {
    id: &'a EnvironmentId,
    name: &'a Name,
    events: &'a [Event<'a>],
}

impl Event<'_> {
    /// Both sides, when it moved the entry.
    fn moved(&self) -> Option<(&LockedImage, &LockedImage)> {
        let (old, new) = (self.old.as_ref()?, self.new.as_ref()?);
        (locked_as(old) != locked_as(new)).then_some((old, new))
    }

    fn released(&self) -> bool {
        let is_held = |side: &Option<Arc<LockedImage>>| side.as_ref().is_some_and(|entry| entry.hold.is_some());
        self.new.is_some() && is_held(&self.old) && !is_held(&self.new)
    }
}

impl Story<'_> {
    /// The answer, and whether it is known where the present digest came from.
    fn tell(&self, question: &Question, present: &LockedImage) -> (ImagePast, bool) {
        let mut past = ImagePast::default();
        let newest = self.events.first().map_or(Some(present), |event| event.new.as_deref());
        if newest.is_none_or(|newest| locked_as(newest) != locked_as(present)) {
            // What is locked is in no commit yet.
            return (past, true);
        }
        let ends = |event: &&Event<'_>| event.moved().is_some() || event.released() || event.old.is_none();
        let origin = self.events.iter().position(|event| ends(&event));
        let older = self.events.iter().flat_map(|event| &event.old);
        past.former = older.map(|entry| entry.digest.clone()).filter(|digest| *digest != present.digest).collect();
        // Newest first: what it was before it came to the present digest.
        let mut before = self.events.iter().flat_map(|event| &event.old).skip_while(|old| old.digest == present.digest);
        past.turned = before.any(|old| old.digest == present.digest);
        let Some(origin) = origin else { return (past, false) };
        past.released = self.events[origin].released() && self.events[origin].moved().is_none();
        past.reverted = self.reverted(&self.events[origin], question, past.turned);
        (past, true)
    }

    /// Who moved the image in which commit, if the newest commit that moved it is a person's and not larder's.
    fn reverted(&self, event: &Event<'_>, question: &Question, turned: bool) -> Option<String> {
        let (old, new) = event.moved()?;
        let (environment, image) = (self.id.clone(), self.name.clone());
        let moved = Move { environment, image, old: Some(locked_as(old)), new: Some(locked_as(new)) };
        if accounts_for(&event.step.message, &moved) {
            return None;
        }
        let is_meant = if old.reference == new.reference {
            !is_written_by_larder(old, new, &event.step.message, question.retain)
        } else {
            // The file asks for what was locked: a person took the lock away from it. Otherwise it is the file that was
            // changed.
            old.reference == question.reference
        };
        let had = turned || old.previous.iter().any(|previous| previous.digest == new.digest);
        let did = if had || old.reference != new.reference { "went back to" } else { "set" };
        let commit = &event.step.commit;
        is_meant.then(|| format!("{} {did} {} in {}", who(commit), label(new, old), commit.short()))
    }
}

/// Whether the new entry is what larder writes after the old one, anyone who committed it: `larder lock`, or the merge of a
/// proposal. larder leaves the old digest in `previous`; who edits a digest or takes a commit back does not.
fn is_written_by_larder(old: &LockedImage, new: &LockedImage, message: &str, retain: usize) -> bool {
    let says_revert = || message.to_lowercase().contains("revert");
    let follows = |entry: &LockedImage, from: &LockedImage| entry.previous.first() == Some(&locked_as(from));
    if follows(new, old) {
        // Each followed the other before: only the message tells a revert from another move by larder.
        return !(follows(old, new) && says_revert());
    }
    // Nothing is retained, so there is no trace; but larder would have written the new platforms, too.
    retain == 0 && new.previous.is_empty() && new.platforms != old.platforms && !says_revert()
}

/// What a person went back to: the tag, or the digest where the tag is the same.
fn label(new: &LockedImage, old: &LockedImage) -> String {
    match new.reference.tag() {
        Some(tag) if new.reference != old.reference => tag.to_owned(),
        _ => new.digest.short().to_owned(),
    }
}

/// The author's name, which is whatever someone wrote.
fn who(commit: &CommitInfo) -> String {
    let name = commit.author.split(" <").next().unwrap_or_default().trim();
    if name.is_empty() { "somebody".to_owned() } else { one_line(name).chars().take(LONGEST_NAME).collect() }
}
