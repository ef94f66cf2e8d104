//! What a controller remembers between passes. All of it can be lost: a restart asks anew.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    io::{git, registry::RegistryClient},
    model::{
        failure::Failure,
        lock::Lock,
        registries::Registries,
        resolution::{Request, RequestKey, Resolution},
        snapshot::Snapshot,
    },
    stages::{
        load::Environments,
        resolve::{self, Answered, Refresh},
    },
};

/// How long a failed reference waits before it is asked again; doubled at each failure, up to [`LONGEST_RETRY`].
const FIRST_RETRY: Duration = Duration::from_secs(60);
const LONGEST_RETRY: Duration = Duration::from_secs(3600);

/// What a controller remembers between passes.
pub struct Memory {
    started: Instant,
    /// When each reference was last answered.
    answered: Answered,
    /// References that were not answered.
    failed: BTreeMap<RequestKey, Failed>,
    next_due: Option<Duration>,
    /// The files of the commit that was seen last.
    snapshot: Option<(git::CommitId, Arc<Snapshot>)>,
    client: Option<(Registries, Arc<RegistryClient>)>,
}

/// A reference that was not answered.
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
            next_due: None,
            snapshot: None,
            client: None,
        }
    }
}

impl Memory {
    /// The references to ask about now, and those that failed so short a time ago that their failure stands.
    pub fn wanted(&self, environments: &Environments) -> (Vec<Request>, Resolution) {
        let now = self.started.elapsed();
        let Environments { environments, settings, lock, .. } = environments;
        let mut wanted = resolve::wanted(environments, settings, lock, &self.answered, now, Refresh::Due);
        let mut standing = Resolution::new();
        wanted.retain(|request| match self.failed.get(&request.key()) {
            Some(failed) if failed.again > now => {
                standing.insert(request.key(), Err(failed.failure.clone()));
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
                Ok(_) => {
                    self.failed.remove(key);
                    self.answered.insert(key.clone(), now);
                }
                Err(failure) => {
                    let count = self.failed.get(key).map_or(0, |failed| failed.count);
                    let wait = FIRST_RETRY.saturating_mul(1 << count.min(10)).min(LONGEST_RETRY);
                    let failed = Failed { count: count + 1, again: now + wait, failure: failure.clone() };
                    self.failed.insert(key.clone(), failed);
                }
            }
        }
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
        // What nobody asks for any more is forgotten: it must not wake the controller.
        let all = resolve::wanted(environments, settings, lock, &Answered::new(), Duration::ZERO, Refresh::All);
        let asked: BTreeSet<RequestKey> = all.iter().map(Request::key).collect();
        self.answered.retain(|key, _| asked.contains(key));
        self.failed.retain(|key, _| asked.contains(key));
        let due = resolve::next_due(environments, settings, lock, &self.answered);
        self.next_due = self.failed.values().map(|failed| failed.again).chain(due).min();
    }

    /// How long until a reference is due; none while nothing waits.
    pub fn until_due(&self) -> Option<Duration> {
        self.next_due.map(|due| due.saturating_sub(self.started.elapsed()))
    }

    /// The commit and its files, when it is the one that was seen last.
    pub fn snapshot(&self, tip: &git::CommitId) -> Option<Arc<Snapshot>> {
        self.snapshot.as_ref().filter(|(commit, _)| commit == tip).map(|(_, snapshot)| snapshot.clone())
    }

    /// Remembers a commit's files.
    pub fn keep(&mut self, commit: git::CommitId, snapshot: Arc<Snapshot>) {
        self.snapshot = Some((commit, snapshot));
    }

    /// The client for these registries: the former one while they stay the same, so that connections and tokens live on.
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
