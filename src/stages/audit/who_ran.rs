//! Where a digest was locked, from when to when.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
    sync::Arc,
};

use crate::{
    model::{
        digest::Digest,
        history::{CommitInfo, LockCommit, Span, State, WalkEnd, WhoRan},
        name::{EnvironmentId, Name},
        reference::ImageReference,
    },
    stages::lockfile::{Images, Lockfiles, Side, environment_of, in_commit},
};

/// The fewest digits of a digest that are taken for its beginning.
const FEWEST: usize = 6;

/// A digest, or how it begins: `sha256:` and digits, or the digits alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted(String);

/// A text that is no beginning of a digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a digest is expected, or its first {FEWEST} or more hexadecimal digits, with or without `sha256:`")]
pub struct WantedError;

impl FromStr for Wanted {
    type Err = WantedError;

    fn from_str(text: &str) -> Result<Self, WantedError> {
        let (algorithm, digits) = text.split_once(':').unwrap_or(("sha256", text));
        let hexadecimal = digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let longest = match algorithm {
            "sha256" => 64,
            "sha512" => 128,
            _ => 0,
        };
        if hexadecimal && (FEWEST..=longest).contains(&digits.len()) {
            return Ok(Self(format!("{algorithm}:{digits}")));
        }
        Err(WantedError)
    }
}

impl fmt::Display for Wanted {
    /// As a lockfile has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Wanted {
    fn is(&self, digest: &Digest) -> bool {
        digest.as_str().starts_with(&self.0)
    }
}

/// A place that a digest can be locked in.
type Place = (EnvironmentId, Name, Digest, Option<String>);

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
    /// Asks about a digest: of an image's index or manifest as it was locked, or of one platform's manifest in it.
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
        Some(lockfile.map_or_else(Held::new, |lockfile| held(environment, &lockfile, &self.wanted, &mut self.found)))
    }

    /// The answer; `tip` is the lock at the newest commit, and tells what has never changed in a history that was cut.
    ///
    /// # Errors
    /// The digests that begin like this, when there are several.
    pub fn finish(mut self, end: WalkEnd, tip: &State) -> Result<WhoRan, Vec<Digest>> {
        let mut open: BTreeMap<Place, Span> = BTreeMap::new();
        for touch in self.touches.into_iter().rev() {
            // Locked before the history that is here.
            for (place, reference) in touch.old.into_iter().flatten() {
                if !open.contains_key(&place) {
                    open.insert(place.clone(), span(place, reference, None));
                }
            }
            // What cannot be read changes nothing: nodes go on with what they hold.
            let Some(new) = touch.new else { continue };
            let gone = |place: &Place, _: &mut Span| place.0 == touch.environment && !new.contains_key(place);
            for (_, mut closed) in open.extract_if(.., gone) {
                closed.to = Some((*touch.commit).clone());
                self.answer.spans.push(closed);
            }
            for (place, reference) in new {
                let from = || Some((*touch.commit).clone());
                open.entry(place.clone()).or_insert_with(|| span(place, reference, from()));
            }
        }
        if end == WalkEnd::Cut {
            for row in tip.images.iter().filter(|row| self.wanted.is(&row.digest)) {
                self.found.insert(row.digest.clone());
                let place = (row.environment.clone(), row.image.clone(), row.digest.clone(), None);
                open.entry(place.clone()).or_insert_with(|| span(place, row.reference.clone(), None));
            }
        }
        self.answer.spans.extend(open.into_values());
        if self.found.len() > 1 {
            return Err(self.found.into_iter().collect());
        }
        let key = |span: &Span| (span.environment.clone(), span.image.clone());
        // Spans of one place were closed in the order of time.
        self.answer.spans.sort_by_key(key);
        self.answer.digest = self.found.pop_first();
        Ok(self.answer)
    }
}

fn span((environment, image, digest, platform): Place, reference: ImageReference, from: Option<CommitInfo>) -> Span {
    Span { environment, image, reference, digest, platform, from, to: None }
}

fn held(environment: &EnvironmentId, lockfile: &Images, wanted: &Wanted, found: &mut BTreeSet<Digest>) -> Held {
    let mut held = Held::new();
    for (name, entry) in lockfile.iter() {
        let mut add = |asked: &Digest, platform: Option<String>| {
            found.insert(asked.clone());
            held.insert((environment.clone(), name.clone(), entry.digest.clone(), platform), entry.reference.clone());
        };
        if wanted.is(&entry.digest) {
            add(&entry.digest, None);
            continue;
        }
        for manifest in entry.platforms.iter().filter(|manifest| wanted.is(&manifest.digest)) {
            add(&manifest.digest, Some(manifest.platform.to_string()));
        }
    }
    held
}
