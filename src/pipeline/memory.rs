//! What a controller remembers between passes. All of it can be lost: a restart asks again.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use jiff::{Timestamp, Zoned, civil::Date, tz::TimeZone};

use crate::{
    io::{git, registry::RegistryClient},
    model::{
        failure::Failure,
        lock::Lock,
        registries::Registries,
        resolution::{Lookup, Resolution, Warnings},
        snapshot::Snapshot,
    },
    stages::{
        load::Environments,
        lock::holds,
        render::{self, Renderer},
        resolve::{self, Answered, Due, Found, Refresh},
    },
};

mod proposals;
mod sightings;
mod suspects;

pub use proposals::Proposed;

/// How long a failed reference waits before it is asked again; doubled at each failure, up to [`LONGEST_RETRY`].
const FIRST_RETRY: Duration = Duration::from_secs(60);
const LONGEST_RETRY: Duration = Duration::from_secs(3600);

/// What a controller remembers between passes.
pub struct Memory {
    started: Instant,
    /// When each reference was last answered.
    answered: Answered,
    /// References that were not answered.
    failed: BTreeMap<Lookup, Failed>,
    /// References that were answered, but there is another problem as well; it is kept until they are asked again.
    warned: BTreeMap<Lookup, Failed>,
    next_due: Option<Duration>,
    /// Whether lookups were left for the next pass because their registries used up their time.
    behind: bool,
    /// The files of the commit that was seen last.
    snapshot: Option<(git::CommitId, Arc<Snapshot>)>,
    /// The commit of the last pass.
    accepted: Option<git::CommitId>,
    /// What was rendered last, by the instance that it was rendered for: this larder's own, and the default one.
    renderers: BTreeMap<String, Renderer>,
    client: Option<(Registries, Arc<RegistryClient>)>,
    /// Answers that moved something and are not in the tracked branch yet. Only kept where lock changes are proposed.
    moved: proposals::Moved,
    /// What was proposed last.
    proposed: Option<Proposed>,
    /// How long answers were the same, and the lock that was seen last.
    sightings: sightings::Sightings,
}

/// A reference that was not answered, or not without a warning.
struct Failed {
    /// How often in a row.
    count: u32,
    /// When it is asked again.
    again: Duration,
    /// What is reported until then.
    failure: Failure,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            answered: Answered::new(),
            failed: BTreeMap::new(),
            warned: BTreeMap::new(),
            next_due: None,
            behind: false,
            snapshot: None,
            accepted: None,
            renderers: BTreeMap::new(),
            client: None,
            moved: proposals::Moved::new(),
            proposed: None,
            sightings: sightings::Sightings::default(),
        }
    }
}

/// Notes that a reference failed once more; it waits longer each time.
fn once_more(all: &mut BTreeMap<Lookup, Failed>, key: &Lookup, failure: &Failure, now: Duration) {
    let count = all.get(key).map_or(0, |failed| failed.count);
    let wait = FIRST_RETRY.saturating_mul(1 << count.min(10)).min(LONGEST_RETRY);
    all.insert(key.clone(), Failed { count: count + 1, again: now + wait, failure: failure.clone() });
}

/// Today's date (UTC).
pub fn today() -> Date {
    Timestamp::now().to_zoned(TimeZone::UTC).date()
}

/// How long it is until a day begins.
fn until(now: &Zoned, day: Date) -> Option<Duration> {
    let begin = day.to_zoned(TimeZone::UTC).ok()?;
    Some(now.duration_until(&begin).try_into().unwrap_or(Duration::ZERO))
}

impl Memory {
    /// The references to ask about now, and those that failed so short a time ago that their failure stands.
    pub fn wanted(&self, environments: &Environments) -> (Vec<Due>, Resolution) {
        let now = self.started.elapsed();
        let Environments { environments, settings, lock, .. } = environments;
        let lock = &*holds::in_force(environments, lock, today());
        let mut wanted = resolve::wanted(environments, settings, lock, &self.answered, now, Refresh::Due);
        if !self.failed.is_empty() || self.warned.values().any(|warned| warned.again <= now) {
            let known: BTreeSet<Lookup> = wanted.iter().map(|due| due.lookup.clone()).collect();
            let is_warned = |key: &Lookup| self.warned.get(key).is_some_and(|warned| warned.again <= now);
            let is_due = |key: &Lookup| !known.contains(key) && (self.failed.contains_key(key) || is_warned(key));
            let all = resolve::wanted(environments, settings, lock, &self.answered, now, Refresh::All);
            wanted.extend(all.into_iter().filter(|due| is_due(&due.lookup)));
        }
        let mut standing = Resolution::new();
        wanted.retain(|due| match self.failed.get(&due.lookup) {
            Some(failed) if failed.again > now => {
                standing.insert(due.lookup.clone(), Err(failed.failure.clone()));
                false
            }
            _ => true,
        });
        (wanted, standing)
    }

    /// Takes note of the answers. A reference that failed waits longer each time, so that a missing image costs a
    /// registry little.
    pub fn answered(&mut self, resolution: &Resolution) {
        let now = self.started.elapsed();
        for (key, answer) in resolution {
            match answer {
                Ok(image) => {
                    self.failed.remove(key);
                    self.answered.insert(key.clone(), now);
                    match Failure::of(image.warnings.clone()) {
                        Some(warnings) => once_more(&mut self.warned, key, &warnings, now),
                        None => drop(self.warned.remove(key)),
                    }
                }
                Err(failure) => {
                    once_more(&mut self.failed, key, failure, now);
                    // Problems noted with the previous answer remain, but the failure says when it is asked again.
                    if let (Some(failed), Some(warned)) = (self.failed.get(key), self.warned.get_mut(key)) {
                        warned.again = failed.again;
                    }
                }
            }
        }
    }

    /// Takes note of what was found. What was not asked is due at once.
    pub fn found(&mut self, found: &Found) {
        self.behind = found.not_asked > 0;
        self.answered(&found.resolution);
    }

    /// Other problems of references that were answered, as found when each was asked last: it is part of every
    /// pass's report, also of those that ask nothing.
    pub fn warnings(&self) -> Warnings {
        self.warned.iter().map(|(key, warned)| (key.clone(), warned.failure.problems().to_vec())).collect()
    }

    /// Forgets the answers: they could not be committed, so they are asked for again.
    pub fn forget(&mut self, resolution: &Resolution) {
        for key in resolution.keys() {
            self.answered.remove(key);
        }
    }

    /// Works out when the next reference is due, for the lock that is in force now.
    pub fn schedule(&mut self, environments: &Environments, lock: &Lock) {
        let Environments { environments, settings, .. } = environments;
        let now = Timestamp::now().to_zoned(TimeZone::UTC);
        let lock = &*holds::in_force(environments, lock, now.date());
        // What nobody asks for any more is forgotten: it must not wake the controller.
        let all = resolve::wanted(environments, settings, lock, &Answered::new(), Duration::ZERO, Refresh::All);
        let asked: BTreeSet<Lookup> = all.into_iter().map(|due| due.lookup).collect();
        self.answered.retain(|key, _| asked.contains(key));
        self.failed.retain(|key, _| asked.contains(key));
        self.warned.retain(|key, _| asked.contains(key));
        self.moved.retain(|key, _| asked.contains(key));
        self.keep_sightings(&asked);
        let due = resolve::next_due(environments, settings, lock, &self.answered);
        let behind = self.behind.then(|| self.started.elapsed());
        let end = holds::next_end(lock, now.date())
            .and_then(|day| until(&now, day))
            .map(|wait| self.started.elapsed() + wait);
        let again = self.failed.values().chain(self.warned.values()).map(|failed| failed.again);
        self.next_due = again.chain(due).chain(behind).chain(end).min();
    }

    /// How long until a reference is due; none while nothing waits.
    pub fn until_due(&self) -> Option<Duration> {
        self.next_due.map(|due| due.saturating_sub(self.started.elapsed()))
    }

    /// The commit of the last pass, if there was one.
    pub(super) fn accepted(&self) -> Option<git::CommitId> {
        self.accepted
    }

    /// Remembers the commit of a pass.
    pub(super) fn accept(&mut self, commit: git::CommitId) {
        self.accepted = Some(commit);
    }

    /// The commit and its files, when it is the one that was seen last.
    pub fn snapshot(&self, tip: &git::CommitId) -> Option<Arc<Snapshot>> {
        self.snapshot.as_ref().filter(|(commit, _)| commit == tip).map(|(_, snapshot)| snapshot.clone())
    }

    /// Remembers a commit's files.
    pub fn keep(&mut self, commit: git::CommitId, snapshot: Arc<Snapshot>) {
        self.snapshot = Some((commit, snapshot));
    }

    /// What renders with these options. It remembers what it has rendered last.
    pub fn renderer(&mut self, options: &render::Options) -> &mut Renderer {
        self.renderers.entry(options.instance.clone()).or_default()
    }

    /// What renders for what lock commits record, which is with the default options.
    pub fn recorder(&mut self) -> &mut Renderer {
        self.renderer(&render::Options::default())
    }

    /// The client for these registries: the previous one while they stay the same, so that connections and tokens live on.
    pub fn registry_client(&mut self, registries: &Registries) -> Result<Arc<RegistryClient>, Failure> {
        if let Some((known, client)) = &self.client
            && known == registries
        {
            return Ok(client.clone());
        }
        let client = Arc::new(RegistryClient::new(registries)?);
        self.client = Some((registries.clone(), client.clone()));
        Ok(client)
    }

    /// Requests that registries have been sent since the client was made.
    pub fn registry_requests(&self) -> u64 {
        self.client.as_ref().map_or(0, |(_, client)| client.request_counts().values().sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::failure::{Category, Problem},
        stages::{
            load::Environments,
            lock::{
                self,
                testing::{answers, batch, change, environment, key, locked, messages, settings, unavailable},
            },
        },
    };

    const TAG: &str = "quay.io/jupyter/scipy-notebook:2026-11-02";
    const PINNED: &str = "quay.io/jupyter/x@sha256:0000000000000000000000000000000000000000000000000000000000000000";

    fn world(reference: &str) -> (Environments, Resolution) {
        let environments = batch([environment("research/geo", &[&format!("notebook={reference}")])]);
        let mut answer = answers(&[&format!("{reference}=one")]);
        let lock = locked(&environments, &answer);
        for image in answer.values_mut().flatten() {
            image.warnings.push(Problem::new(Category::Credentials, "the pull secret does not exist"));
        }
        (
            Environments {
                settings: settings(),
                environments,
                lock,
                templates: Default::default(),
                strays: Vec::new(),
                unread: Default::default(),
                ignored: 0,
            },
            answer,
        )
    }

    #[test]
    fn a_warning_stands_until_a_later_answer_is_without() {
        for reference in [TAG, PINNED] {
            let (environments, warned) = world(reference);
            let mut memory = Memory::default();
            memory.answered(&warned);
            // Nothing is due now, and yet every pass reports the same.
            for _ in 0..2 {
                assert!(memory.wanted(&environments).0.is_empty());
                let mut change = change(&environments.environments, &environments.lock, &Resolution::new());
                assert!(change.problems.is_empty() && change.files.is_empty());
                lock::warn(&environments.environments, &environments.settings, &memory.warnings(), &mut change);
                let said = messages(&change, "research/geo");
                assert_eq!(
                    said,
                    ["environments/research/geo.yaml:6: image `notebook`: the pull secret does not exist"]
                );
            }
            memory.schedule(&environments, &environments.lock);
            let wait = memory.until_due().unwrap();
            assert!(!wait.is_zero() && wait <= FIRST_RETRY, "{wait:?}");
            // Asked again, also where the reference cannot move; less often each time.
            memory.warned.values_mut().for_each(|warned| warned.again = Duration::ZERO);
            assert_eq!(memory.wanted(&environments).0.len(), 1);
            memory.answered(&warned);
            assert!(memory.warned[&key(reference)].again > FIRST_RETRY);
            // A failure in between takes nothing back, and is reported until it is asked again.
            memory.warned.values_mut().for_each(|warned| warned.again = Duration::ZERO);
            memory.answered(&[(key(reference), Err(unavailable(reference)))].into());
            let (wanted, standing) = memory.wanted(&environments);
            assert!(wanted.is_empty() && standing.len() == 1 && memory.warnings().len() == 1);
            let mut well = warned.clone();
            well.values_mut().flatten().for_each(|image| image.warnings.clear());
            memory.answered(&well);
            assert!(memory.warnings().is_empty() && memory.wanted(&environments).0.is_empty());
        }
    }

    #[test]
    fn what_was_not_asked_is_due_at_once() {
        let (environments, answer) = world(TAG);
        let mut memory = Memory::default();
        memory.found(&Found { resolution: answer, not_asked: 1 });
        memory.schedule(&environments, &environments.lock);
        assert_eq!(memory.until_due(), Some(Duration::ZERO));
        memory.found(&Found::default());
        memory.schedule(&environments, &environments.lock);
        assert!(memory.until_due().is_some_and(|wait| !wait.is_zero()));
    }

    #[test]
    fn what_nobody_asks_for_any_more_is_not_waited_for() {
        let (mut environments, warned) = world(TAG);
        let mut memory = Memory::default();
        memory.answered(&warned);
        memory.answered(&[(key("quay.io/a/b:1"), Err(unavailable("quay.io/a/b:1")))].into());
        environments.environments.clear();
        memory.schedule(&environments, &Lock::new());
        assert!(memory.until_due().is_none() && memory.warnings().is_empty() && memory.failed.is_empty());
    }
}
