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

/// Images whose history matters, each with the reference that its file asks for.
pub type Questions = BTreeMap<EnvironmentId, BTreeMap<Name, ImageReference>>;

/// What the commits say about one image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImagePast {
    /// That a person moved it to what is locked, against what larder would have locked.
    pub reversal: Option<Reversal>,
    /// Whether its hold was taken away since it came to what is locked.
    pub released: bool,
    /// Digests that it had before the present one.
    pub former: BTreeSet<Digest>,
    /// Whether it had the present digest before, and another one in between.
    pub turned: bool,
}

/// A person's move of an image, as nobody but a person moves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reversal {
    /// Where it went.
    pub kind: Kind,
    /// Who did it, in which commit: why the image is held.
    pub reason: String,
}

/// Where a person moved an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// To what it had before: it is held whatever the registry says.
    WentBack,
    /// To something else: it is held as soon as the registry says otherwise.
    Edited,
}

/// The images whose history matters: those that move although their reference is the same, and those that somebody
/// else has moved since this controller saw the lock (`seen`: the lockfiles that differ since then, as they were; none
/// when it has seen none yet).
pub fn questions(environments: &Batch<Environment>, old: &Lock, seen: Option<&Lock>, change: &LockChange) -> Questions {
    let mut questions = Questions::new();
    for (id, environment) in succeeded(environments).filter(|(_, environment)| !environment.suspend) {
        let Some(Ok(before)) = old.get(id) else { continue };
        let after = change.lock.get(id).and_then(|after| after.as_ref().ok());
        let last = seen.map(|seen| seen.get(id).and_then(|lockfile| lockfile.as_ref().ok()));
        let asked = environment.images.iter().filter(|image| is_asked(image, before, after, last));
        let asked: BTreeMap<_, _> = asked.map(|image| (image.name.clone(), image.reference.clone())).collect();
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
        for (name, wanted) in images {
            let entry = old.get(id).and_then(|lockfile| lockfile.as_ref().ok()?.images.get(name));
            let (Some(present), story) = (entry, stories.get(&(id, name)).map_or(&[][..], Vec::as_slice)) else {
                continue;
            };
            let (found, known) = Story { id, name, events: story }.tell(wanted, present);
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
    fn tell(&self, wanted: &ImageReference, present: &LockedImage) -> (ImagePast, bool) {
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
        past.reversal = self.reversal(origin, wanted);
        (past, true)
    }

    /// Whether a person took the image back, or elsewhere, with the event at `index`.
    fn reversal(&self, index: usize, wanted: &ImageReference) -> Option<Reversal> {
        let event = &self.events[index];
        let (old, new) = event.moved()?;
        let moved = Move {
            environment: self.id.clone(),
            image: self.name.clone(),
            old: Some(locked_as(old)),
            new: Some(locked_as(new)),
        };
        if accounts_for(&event.step.message, &moved) {
            return None;
        }
        let reversal = |kind, did: &str, to: &str| {
            let reason = format!("{} {did} {to} in {}", who(&event.step.commit), event.step.commit.short());
            Some(Reversal { kind, reason })
        };
        if old.reference != new.reference {
            // The file asks for what was locked: a person took the lock away from it. Where the file asks for the new
            // one, it is the file that was changed.
            let back = old.reference == *wanted && new.reference != *wanted;
            return back.then(|| reversal(Kind::WentBack, "went back to", &label(new, old))).flatten();
        }
        let made = is_made_by_larder(old, new);
        if self.had(index, &new.digest) {
            // Who retains nothing leaves no trace of the old digest either: to go back there is a person's wish.
            let traced = made && !new.previous.is_empty();
            let meant = !traced || event.step.message.to_lowercase().contains("revert");
            return (meant && !self.undoes(index, wanted))
                .then(|| reversal(Kind::WentBack, "went back to", &label(new, old)))
                .flatten();
        }
        (!made).then(|| reversal(Kind::Edited, "set", new.digest.short())).flatten()
    }

    /// Whether the image had that digest before the event at `index`.
    fn had(&self, index: usize, digest: &Digest) -> bool {
        let previous = self.events[index].old.iter().flat_map(|old| &old.previous).map(|previous| &previous.digest);
        let older = self.events[index + 1..].iter().flat_map(|event| &event.old).map(|old| &old.digest);
        previous.chain(older).any(|known| known == digest)
    }

    /// Whether the event takes back a person's reversal: then larder goes on from there.
    fn undoes(&self, index: usize, wanted: &ImageReference) -> bool {
        let Some((old, new)) = self.events[index].moved() else { return false };
        let before = (index + 1..self.events.len()).find(|&older| self.events[older].moved().is_some());
        before.is_some_and(|before| {
            let same = self.events[before]
                .moved()
                .is_some_and(|(first, second)| first.digest == new.digest && second.digest == old.digest);
            same && self.reversal(before, wanted).is_some_and(|reversal| reversal.kind == Kind::WentBack)
        })
    }
}

/// Whether the new entry looks as larder writes it after the old one, whoever committed it: by `larder lock`, or by
/// merging what was proposed. People who edit a digest or take a commit back leave no trace of the old one.
fn is_made_by_larder(old: &LockedImage, new: &LockedImage) -> bool {
    match new.previous.first() {
        Some(previous) => *previous == locked_as(old),
        // Nothing is retained. Larder would have written the new platforms, too.
        None => new.platforms != old.platforms,
    }
}

/// What a person went back to: the tag, or the digest where the tag is the same.
fn label(new: &LockedImage, old: &LockedImage) -> String {
    match new.reference.tag() {
        Some(tag) if new.reference != old.reference => tag.to_owned(),
        _ => new.digest.short().to_owned(),
    }
}

/// The author's name, which is whatever somebody wrote.
fn who(commit: &CommitInfo) -> String {
    let name = commit.author.split(" <").next().unwrap_or_default().trim();
    if name.is_empty() { "somebody".to_owned() } else { one_line(name).chars().take(LONGEST_NAME).collect() }
}
