//! Which references are due at their registries, and with whose credentials they are asked for.

mod rounds;
#[cfg(test)]
mod tests;

pub use rounds::{Due, Found, Rounds};

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::model::{
    batch::{Batch, succeeded},
    digest::Digest,
    environment::{Environment, Image},
    lock::{Lock, LockedImage, Lockfile},
    resolution::{CredentialSource, Lookup},
    settings::Settings,
};

/// Which references a pass resolves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Refresh {
    /// New and changed ones, and those whose refresh has passed.
    #[default]
    Due,
    /// All of them: someone asked for it.
    All,
    /// New and changed ones only; what is locked stays as it is.
    Missing,
}

/// When requests were last answered, as time since the controller's start. Only answers are entered, never errors: a
/// request that failed stays due, and how soon it is tried again is the controller's decision.
pub type Answered = BTreeMap<Lookup, Duration>;

/// One image of an environment that may be asked for.
struct Use<'a> {
    /// What the lock holds under this very reference.
    locked: Option<&'a LockedImage>,
    refresh: Duration,
}

/// The question whose answer an image needs; none for an environment of a tenant that `settings` do not know.
pub fn key(environment: &Environment, image: &Image, settings: &Settings) -> Option<Lookup> {
    let tenant = settings.tenants.get(&environment.id.tenant)?;
    let names: BTreeSet<&String> = image.pull_secret.iter().chain(&tenant.pull_secrets).collect();
    let credentials = if names.is_empty() {
        CredentialSource::Controller
    } else {
        let names = names.into_iter().cloned().collect();
        CredentialSource::Secrets { namespace: tenant.namespace.clone(), names }
    };
    Some(Lookup { reference: image.reference.clone(), credentials })
}

/// The distinct lookups that are due, in their order.
///
/// One is due when an image that needs it is not locked or is locked under another reference, when the smallest
/// `refresh` of its images has passed since it was answered, when this controller never asked it, or with
/// [`Refresh::All`]. A reference that names a digest cannot move: once locked, only [`Refresh::All`] asks for it again.
/// Suspended environments, environments whose lockfile is broken, and held images ask nothing.
pub fn wanted(
    environments: &Batch<Environment>,
    settings: &Settings,
    lock: &Lock,
    last: &Answered,
    now: Duration,
    mode: Refresh,
) -> Vec<Due> {
    let mut wanted = Vec::new();
    for (key, uses) in by_key(environments, settings, lock) {
        let missing = uses.iter().any(|usage| usage.locked.is_none());
        let due = match mode {
            Refresh::All => true,
            Refresh::Missing => missing,
            Refresh::Due => {
                missing || (moves(&key) && last.get(&key).is_none_or(|&at| now.saturating_sub(at) >= refresh(&uses)))
            }
        };
        if due {
            let known = agreed(&uses);
            wanted.push(Due { lookup: key, known });
        }
    }
    wanted
}

/// When, as time since the controller's start, the first of the answered questions becomes due again: the controller
/// must start a pass by then. None when nothing that can move was answered yet.
pub fn next_due(
    environments: &Batch<Environment>,
    settings: &Settings,
    lock: &Lock,
    last: &Answered,
) -> Option<Duration> {
    by_key(environments, settings, lock)
        .iter()
        .filter(|(key, _)| moves(key))
        .filter_map(|(key, uses)| Some(last.get(key)?.saturating_add(refresh(uses))))
        .min()
}

/// Whether what the reference names can change.
fn moves(key: &Lookup) -> bool {
    key.reference.digest().is_none()
}

fn refresh(uses: &[Use]) -> Duration {
    uses.iter().map(|usage| usage.refresh).min().unwrap_or(Duration::MAX)
}

/// The locked digest, when all who use the reference have the same with all of its evidence: then an answer with this
/// digest changes nothing for any of them.
fn agreed(uses: &[Use]) -> Option<Digest> {
    let complete = |locked: &&LockedImage| locked.platforms.iter().all(|manifest| manifest.size.is_some());
    let mut digests = uses.iter().map(|usage| usage.locked.filter(complete).map(|locked| &locked.digest));
    let first = digests.next()??;
    digests.all(|digest| digest == Some(first)).then(|| first.clone())
}

fn by_key<'a>(
    environments: &Batch<Environment>,
    settings: &Settings,
    lock: &'a Lock,
) -> BTreeMap<Lookup, Vec<Use<'a>>> {
    let mut uses: BTreeMap<Lookup, Vec<Use<'a>>> = BTreeMap::new();
    for (id, environment) in succeeded(environments).filter(|(_, environment)| !environment.suspend) {
        let lockfile = match lock.get(id) {
            Some(Err(_)) => continue,
            Some(Ok(lockfile)) => Some(lockfile),
            None => None,
        };
        for image in &environment.images {
            let entry = lockfile.and_then(|lockfile: &Lockfile| lockfile.images.get(&image.name));
            if entry.is_some_and(|entry| entry.hold.is_some()) {
                continue;
            }
            let Some(key) = key(environment, image, settings) else { continue };
            let locked = entry.filter(|entry| entry.reference == image.reference);
            uses.entry(key).or_default().push(Use { locked, refresh: environment.refresh });
        }
    }
    uses
}
