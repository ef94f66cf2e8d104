//! What is remembered of answers: how long each was the same, which of them wait, and the lock that was seen last.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use super::Memory;
use crate::{
    model::{
        batch::succeeded,
        digest::Digest,
        lock::{Lock, LockChange, Lockfile},
        reference::ImageReference,
        resolution::{Lookup, Resolution, ResolvedImage},
        snapshot::{Entry, Snapshot},
    },
    stages::{
        load::Environments,
        lock::verdict::{Steadiness, Steady},
        lockfile::{self, environment_of},
        resolve,
    },
};

/// The digests under which the lock has each reference.
type Locked = BTreeMap<ImageReference, BTreeSet<Digest>>;

/// What is remembered of answers.
#[derive(Default)]
pub(super) struct Sightings {
    answers: BTreeMap<Lookup, Sighting>,
    /// Answers that wait to be given again, each with the digests that the lock had for the reference then.
    waiting: BTreeMap<Lookup, (ResolvedImage, BTreeSet<Digest>)>,
    /// The files whose lock was in force after the last pass.
    seen: Option<Arc<Snapshot>>,
}

/// The present answer to a question.
struct Sighting {
    digest: Digest,
    /// When it was given first and last, since the controller's start.
    first: Duration,
    last: Duration,
    /// What the lock had for the reference when that was last looked at.
    locked: BTreeSet<Digest>,
    lags: bool,
    instead_of: Option<Digest>,
}

impl Sighting {
    /// Notes whether the lock has moved to something else than this answer, which was there before. That an image is
    /// gone moves nothing.
    fn look(&mut self, now: &BTreeSet<Digest>) {
        if now.contains(&self.digest) {
            self.lags = false;
        } else if !now.is_subset(&self.locked) {
            self.lags = true;
        }
        if self.locked != *now {
            self.locked.clone_from(now);
        }
    }
}

impl Memory {
    /// Takes note of what was answered for this lock.
    pub fn saw(&mut self, resolution: &Resolution, lock: &Lock) {
        let now = self.started.elapsed();
        let (sightings, none) = (&mut self.sightings, BTreeSet::new());
        let locked = locked(lock);
        let digests = |key: &Lookup| locked.get(&key.reference).unwrap_or(&none);
        for (key, sighting) in &mut sightings.answers {
            sighting.look(digests(key));
        }
        sightings.waiting.retain(|key, (_, then)| then == digests(key));
        for (key, answer) in resolution {
            let Ok(ResolvedImage { digest, .. }) = answer else { continue };
            match sightings.answers.get_mut(key) {
                Some(sighting) if sighting.digest == *digest => sighting.last = now,
                former => {
                    let instead_of = former.map(|former| former.digest.clone());
                    let (digest, locked) = (digest.clone(), digests(key).clone());
                    let new = Sighting { digest, first: now, last: now, locked, lags: false, instead_of };
                    sightings.answers.insert(key.clone(), new);
                    sightings.waiting.remove(key);
                }
            }
        }
    }

    /// How long each question has had its present answer.
    pub fn steadiness(&self) -> Steadiness {
        let steady = |sighting: &Sighting| Steady {
            time: sighting.last.saturating_sub(sighting.first),
            lags: sighting.lags,
            instead_of: sighting.instead_of.clone(),
        };
        self.sightings.answers.iter().map(|(key, sighting)| (key.clone(), steady(sighting))).collect()
    }

    /// Keeps the answers that wait: until they are asked for again, they are part of every pass.
    pub fn waits(&mut self, change: &LockChange, resolution: &Resolution, lock: &Lock) {
        let locked = locked(lock);
        let waiting = change.waiting.iter().filter_map(|waiting| {
            let Some(Ok(answer)) = resolution.get(&waiting.key) else { return None };
            let then = locked.get(&waiting.key.reference).cloned().unwrap_or_default();
            Some((waiting.key.clone(), (answer.clone(), then)))
        });
        self.sightings.waiting = waiting.collect();
    }

    /// The answers that wait, except those that were given again.
    pub fn add_waiting(&self, resolution: &mut Resolution) {
        for (key, (answer, _)) in &self.sightings.waiting {
            resolution.entry(key.clone()).or_insert_with(|| Ok(answer.clone()));
        }
    }

    /// Remembers the files whose lock is in force.
    pub fn has_seen(&mut self, snapshot: Arc<Snapshot>) {
        self.sightings.seen = Some(snapshot);
    }

    /// The lockfiles that differ from those in `now`, as they were when they were in force last; none when no pass came
    /// so far yet.
    pub fn lockfiles_before(&self, now: &Snapshot) -> Option<Lock> {
        let seen = self.sightings.seen.as_ref()?;
        if seen.origin == now.origin {
            return Some(Lock::new());
        }
        let differs = seen.under("lock").filter(|(path, entry)| now.files.get(*path) != Some(*entry));
        let parsed = differs.filter_map(|(path, entry)| match entry {
            Entry::File(bytes) => Some((environment_of(path)?, lockfile::parse(path, bytes))),
            _ => None,
        });
        Some(parsed.collect())
    }

    /// Asks again about images that have been released: they move at this pass, not at their next refresh.
    pub fn ask_released(&mut self, now: &Snapshot, environments: &Environments) {
        let Some(before) = self.lockfiles_before(now) else { return };
        for (id, before) in succeeded(&before) {
            let (Some(Ok(environment)), Some(Ok(lockfile))) =
                (environments.environments.get(id), environments.lock.get(id))
            else {
                continue;
            };
            let is_held =
                |lockfile: &Lockfile, name| lockfile.images.get(name).is_some_and(|entry| entry.hold.is_some());
            for image in &environment.images {
                if is_held(before, &image.name)
                    && !is_held(lockfile, &image.name)
                    && let Some(key) = resolve::key(environment, image, &environments.settings)
                {
                    self.answered.remove(&key);
                }
            }
        }
    }

    /// Forgets what nobody asks for any more.
    pub(super) fn keep_sightings(&mut self, asked: &BTreeSet<Lookup>) {
        self.sightings.answers.retain(|key, _| asked.contains(key));
        self.sightings.waiting.retain(|key, _| asked.contains(key));
    }
}

/// What is held says nothing about registries.
fn locked(lock: &Lock) -> Locked {
    let mut locked = Locked::new();
    let entries = succeeded(lock).flat_map(|(_, lockfile)| lockfile.images.values());
    for entry in entries.filter(|entry| entry.hold.is_none()) {
        locked.entry(entry.reference.clone()).or_default().insert(entry.digest.clone());
    }
    locked
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use super::super::Memory;
    use crate::{
        model::{
            lock::{Hold, Lock},
            resolution::Resolution,
            snapshot::{Entry, Origin, Snapshot},
        },
        stages::{
            lock::{
                testing::{answers, batch, change, digest, environment, key, locked, lockfile, settings},
                verdict::Steady,
            },
            lockfile,
        },
    };

    const TAG: &str = "quay.io/a:1";

    fn answered(word: &str) -> Resolution {
        answers(&[&format!("{TAG}={word}")])
    }

    fn lock(word: &str) -> Lock {
        locked(&batch([environment("research/geo", &["a=quay.io/a:1"])]), &answered(word))
    }

    /// One environment at `three`, and another at `four`, perhaps held.
    fn two_environments(hold: Option<&str>) -> Lock {
        let mut both = lock("three");
        let mut other = lockfile(&lock("four"), "research/geo").clone();
        other.images.values_mut().for_each(|entry| entry.hold = hold.map(Hold::of_person));
        both.insert("research/other".parse().unwrap(), Ok(other));
        both
    }

    /// Lets time go by.
    fn later(memory: &mut Memory, seconds: u64) {
        memory.started -= Duration::from_secs(seconds);
    }

    fn steady(memory: &Memory) -> (u64, bool, bool) {
        let Steady { time, lags, instead_of } = memory.steadiness().remove(&key(TAG)).unwrap();
        (time.as_secs(), lags, instead_of.is_some())
    }

    #[test]
    fn an_answer_is_as_old_as_its_last_change() {
        let mut memory = Memory::default();
        memory.saw(&answered("one"), &lock("two"));
        assert_eq!(steady(&memory), (0, false, false));
        later(&mut memory, 50);
        // Nobody has asked meanwhile: time alone proves nothing. An error neither.
        memory.saw(&Resolution::new(), &lock("two"));
        memory.saw(&answered("!"), &lock("two"));
        assert_eq!(steady(&memory), (0, false, false));
        memory.saw(&answered("one"), &lock("two"));
        assert_eq!(steady(&memory), (50, false, false));
        // Another answer, and the first again: it starts over.
        later(&mut memory, 50);
        memory.saw(&answered("two"), &lock("two"));
        memory.saw(&answered("one"), &lock("two"));
        assert_eq!(steady(&memory), (0, false, true));
        assert_eq!(memory.steadiness()[&key(TAG)].instead_of, Some(digest("two")));
        // The lock reaches it, by any writer: it does not lag. The lock moves on: it does.
        memory.saw(&answered("one"), &lock("one"));
        assert!(!steady(&memory).1);
        memory.saw(&answered("one"), &lock("three"));
        assert!(steady(&memory).1);
        memory.saw(&answered("three"), &lock("three"));
        assert!(!steady(&memory).1);
        // An environment goes, or is held elsewhere: nothing has moved.
        memory.saw(&answered("one"), &two_environments(None));
        memory.saw(&Resolution::new(), &lock("three"));
        assert!(!steady(&memory).1);
        memory.saw(&Resolution::new(), &two_environments(Some("exam")));
        assert!(!steady(&memory).1);
        memory.saw(&Resolution::new(), &two_environments(None));
        assert!(steady(&memory).1);
    }

    #[test]
    fn an_answer_that_waits_is_part_of_every_pass() {
        let environments = batch([environment("research/geo", &["a=quay.io/a:1"])]);
        let old = change(&environments, &lock("one"), &answered("two")).lock;
        let answer = answered("one");
        let mut waiting = change(&environments, &old, &answer);
        assert_eq!(waiting.moves.len(), 1);
        let note = crate::model::failure::Problem::new(crate::model::failure::Category::Lock, "waits");
        let environment = "research/geo".parse().unwrap();
        waiting.waiting = vec![crate::model::lock::Waiting { environment, key: key(TAG), note }];
        let mut memory = Memory::default();
        memory.saw(&answer, &old);
        memory.waits(&waiting, &answer, &old);
        let added = |memory: &Memory, mut resolution: Resolution| {
            memory.add_waiting(&mut resolution);
            resolution
        };
        assert_eq!(added(&memory, Resolution::new()), answer);
        assert_eq!(added(&memory, answered("three")), answered("three"), "what is asked again counts");
        // The lock moves, or the registry changes its mind: what waited is gone.
        memory.saw(&Resolution::new(), &lock("three"));
        assert_eq!(added(&memory, Resolution::new()), Resolution::new());
        memory.waits(&waiting, &answer, &old);
        memory.saw(&answered("two"), &old);
        assert_eq!(added(&memory, Resolution::new()), Resolution::new());
    }

    // Who is released is asked about at once, and nobody else.
    #[test]
    fn released_images_are_asked_about() {
        let environments = batch([environment("research/geo", &["a=quay.io/a:1"])]);
        let now = lock("one");
        let snapshot = |hold: Option<&str>, commit: &str| {
            let mut lockfile = lockfile(&now, "research/geo").clone();
            lockfile.images.values_mut().for_each(|entry| entry.hold = hold.map(Hold::of_person));
            let bytes = Entry::File(lockfile::write(&lockfile).into());
            let files = [("lock/research/geo.yaml".to_owned(), bytes)].into();
            Arc::new(Snapshot { origin: Origin::Commit(commit.to_owned()), files })
        };
        let environments = crate::stages::load::Environments {
            settings: settings(),
            environments,
            lock: now.clone(),
            templates: Default::default(),
            strays: vec![],
            ignored: 0,
            unread: Default::default(),
        };
        let due = |before: Option<Arc<Snapshot>>| {
            let mut memory = Memory::default();
            memory.answered(&answered("one"));
            before.into_iter().for_each(|before| memory.has_seen(before));
            memory.ask_released(&snapshot(None, "2"), &environments);
            memory.wanted(&environments).0.len()
        };
        assert_eq!(due(Some(snapshot(Some("exam"), "1"))), 1);
        assert_eq!(due(Some(snapshot(None, "1"))), 0);
        assert_eq!(due(None), 0);
        let mut memory = Memory::default();
        assert_eq!(memory.lockfiles_before(&snapshot(None, "2")), None);
        memory.has_seen(snapshot(Some("exam"), "1"));
        assert_eq!(memory.lockfiles_before(&snapshot(None, "1")), Some(Lock::new()), "the same commit");
        assert_eq!(memory.lockfiles_before(&snapshot(None, "2")).unwrap().len(), 1);
    }
}
