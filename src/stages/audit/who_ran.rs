//! Where an image was locked, from when to when.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{Wanted, wanted::Match};
use crate::{
    model::{
        digest::Digest,
        history::{CommitInfo, FileChange, LockCommit, Span, WalkEnd, WhoRan},
        name::{EnvironmentId, Name},
        reference::ImageReference,
    },
    stages::lockfile::{Images, Lockfiles, Side, environment_of, in_commit},
};

/// A place that a digest can be locked in.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    environment: EnvironmentId,
    image: Name,
    digest: Digest,
    platform: Option<String>,
}

/// What a lockfile holds of the digest: where, as what, and by which reference.
type Held = BTreeMap<Place, ImageReference>;

/// A change of a lockfile with the digest on one side at least. What cannot be read is none.
struct Touch {
    environment: EnvironmentId,
    commit: Arc<CommitInfo>,
    old: Option<Held>,
    new: Option<Held>,
}

/// Reads lock commits from the newest to the oldest, those that have nothing to do with the digest or not.
pub struct Spans {
    wanted: Wanted,
    lockfiles: Lockfiles,
    touches: Vec<Touch>,
    found: BTreeSet<Digest>,
    answer: WhoRan,
}

impl Spans {
    /// Asks about images: by the digest of an index or manifest as it was locked, or of one platform's manifest in it, or
    /// by what it was resolved from.
    pub fn new(wanted: Wanted) -> Self {
        let answer = WhoRan { digest: None, spans: Vec::new(), problems: Vec::new() };
        Self { wanted, lockfiles: Lockfiles::default(), touches: Vec::new(), found: BTreeSet::new(), answer }
    }

    /// Takes up the next older commit.
    pub fn read(&mut self, commit: &LockCommit) {
        let info = Arc::new(commit.commit.clone());
        for change in &commit.files {
            let Some(environment) = environment_of(&change.path) else { continue };
            let (old, new) = self.lockfiles.both(change);
            if let Err(failure) = &new {
                self.answer.problems.extend(in_commit(failure, &commit.commit));
            }
            let (old, new) = (self.held(&environment, old), self.held(&environment, new));
            let concerns = |side: &Option<Held>| side.as_ref().is_none_or(|held| !held.is_empty());
            if concerns(&old) || concerns(&new) {
                self.touches.push(Touch { environment, commit: info.clone(), old, new });
            }
        }
    }

    /// Whether a lockfile beside one that has the digest could not be read.
    pub fn has_gaps(&self) -> bool {
        self.touches.iter().any(|touch| touch.old.is_none() || touch.new.is_none())
    }

    fn held(&mut self, environment: &EnvironmentId, side: Side) -> Option<Held> {
        let lockfile = side.ok()?;
        Some(lockfile.map_or_else(Held::new, |lockfile| self.matches(environment, &lockfile)))
    }

    fn matches(&mut self, environment: &EnvironmentId, lockfile: &Images) -> Held {
        let mut held = Held::new();
        for (name, entry) in lockfile.iter() {
            for Match { digest, platform } in self.wanted.matches(entry) {
                self.found.insert(digest.clone());
                let (environment, image, digest) = (environment.clone(), name.clone(), entry.digest.clone());
                held.insert(Place { environment, image, digest, platform }, entry.reference.clone());
            }
        }
        held
    }

    /// The answer; the new sides of `tip` are the lockfiles at the newest commit, and tell what has never changed in a
    /// history that was cut.
    ///
    /// # Errors
    /// The digests that begin like this, when there are several.
    pub fn finish(mut self, end: WalkEnd, tip: &[FileChange]) -> Result<WhoRan, Vec<Digest>> {
        let present = if end == WalkEnd::Cut { self.present(tip) } else { Held::new() };
        let mut open: BTreeMap<Place, Span> = BTreeMap::new();
        // Environments of which some lockfile could be read already.
        let mut read: BTreeSet<EnvironmentId> = BTreeSet::new();
        for touch in self.touches.into_iter().rev() {
            let is_known = end != WalkEnd::Cut || touch.old.is_some() || read.contains(&touch.environment);
            if touch.old.is_some() || touch.new.is_some() {
                read.insert(touch.environment.clone());
            }
            // Locked before the history that is here.
            for (place, reference) in touch.old.into_iter().flatten() {
                if !open.contains_key(&place) {
                    open.insert(place.clone(), span(place, reference, None));
                }
            }
            // What cannot be read changes nothing: nodes continue with what they hold.
            let Some(new) = touch.new else { continue };
            let gone = |place: &Place, _: &mut Span| place.environment == touch.environment && !new.contains_key(place);
            for (_, mut closed) in open.extract_if(.., gone) {
                closed.to = Some((*touch.commit).clone());
                self.answer.spans.push(closed);
            }
            for (place, reference) in new {
                let from = || is_known.then(|| (*touch.commit).clone());
                open.entry(place.clone()).or_insert_with(|| span(place, reference, from()));
            }
        }
        for (place, reference) in present {
            open.entry(place.clone()).or_insert_with(|| span(place, reference, None));
        }
        self.answer.spans.extend(open.into_values());
        if matches!(self.wanted, Wanted::Digest(_)) && self.found.len() > 1 {
            return Err(self.found.into_iter().collect());
        }
        let key = |span: &Span| (span.environment.clone(), span.image.clone());
        // Spans of one place were closed in the order of time.
        self.answer.spans.sort_by_key(key);
        self.answer.digest = self.found.pop_first().filter(|_| matches!(self.wanted, Wanted::Digest(_)));
        Ok(self.answer)
    }

    /// What the lockfiles at the newest commit hold of it.
    fn present(&mut self, tip: &[FileChange]) -> Held {
        let mut held = Held::new();
        for change in tip {
            let Some(environment) = environment_of(&change.path) else { continue };
            if let (_, Ok(Some(images))) = self.lockfiles.both(change) {
                held.extend(self.matches(&environment, &images));
            }
        }
        held
    }
}

fn span(place: Place, reference: ImageReference, from: Option<CommitInfo>) -> Span {
    let Place { environment, image, digest, platform } = place;
    Span { environment, image, reference, digest, platform, from, to: None }
}
