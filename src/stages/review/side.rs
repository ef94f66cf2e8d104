//! One of two snapshots, as the pass on it would leave the lock and the objects.

use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use jiff::civil::Date;

use super::Digests;
use crate::{
    model::{
        batch::{Batch, succeeded},
        environment::{Environment, Image},
        failure::{Failure, Problem},
        lock::{LockChange, Rename},
        manifest::Manifests,
        name::EnvironmentId,
        resolution::{self, Resolution},
    },
    stages::{
        load::Environments,
        lock::{self, Inputs, entry, rename::Renames, verdict::Guards},
        render,
        resolve::{self, Answered, Due, Refresh},
    },
};

/// What registries say about the references that a change brings.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Registries {
    /// They were not asked: new digests are not known.
    #[default]
    NotAsked,
    /// Their answers to [`questions`].
    Asked(Resolution),
}

/// One of the two snapshots.
#[derive(Clone, Debug)]
pub struct Side {
    /// Its files, with the lock as the pass on it would leave it.
    pub environments: Environments,
    /// What they and that lock render to.
    pub manifests: Manifests,
    /// What that pass would say about images that it does not lock as their files ask for.
    pub unlocked: Vec<Problem>,
    /// Whether the registries were asked.
    pub digests: Digests,
    /// Environments that were renamed on the way to this side.
    pub renames: Vec<Rename>,
}

impl Side {
    /// Locks and renders as a pass would that gets these answers and no others on that day (UTC).
    pub fn new(
        mut environments: Environments,
        registries: &Registries,
        options: &render::Options,
        today: Date,
        renames: Vec<Rename>,
    ) -> Self {
        let resolution = match registries {
            Registries::NotAsked => Cow::Owned(Resolution::new()),
            Registries::Asked(resolution) => Cow::Borrowed(resolution),
        };
        let Environments { environments: files, settings, lock: old, templates, .. } = &environments;
        let renames = Renames { known: renames, ..Renames::default() };
        let (guards, lock, resolution) = (Guards::default(), old, &*resolution);
        let inputs =
            Inputs { environments: files, settings, lock, asked: lock, resolution, guards, renames: &renames, today };
        let mut change = lock::lock(&inputs);
        lock::warn(files, settings, &resolution::warnings(resolution), &mut change);
        let (digests, unlocked) = match registries {
            // That a reference has no answer yet is not a fault of the change.
            Registries::NotAsked => (Digests::Locked, refusals(&environments)),
            Registries::Asked(_) => (Digests::Resolved, change.problems.into_values().flatten().collect()),
        };
        let manifests = render::render(files, settings, templates, &change.lock, options);
        environments.lock = change.lock;
        Self { environments, manifests, unlocked, digests, renames: renames.known }
    }

    /// The name that an environment of this side had before.
    pub(super) fn name_before<'a>(&'a self, id: &'a EnvironmentId) -> &'a EnvironmentId {
        self.renames.iter().find(|rename| rename.to == *id).map_or(id, |rename| &rename.from)
    }

    /// Whether an environment has another name on this side.
    pub(super) fn has_renamed(&self, id: &EnvironmentId) -> bool {
        self.renames.iter().any(|rename| rename.from == *id)
    }

    /// The lock of this side, as what is planned takes it.
    pub fn lock(&self) -> LockChange {
        LockChange { lock: self.environments.lock.clone(), ..LockChange::default() }
    }
}

/// Held images that their files ask for by another reference.
fn refusals(environments: &Environments) -> Vec<Problem> {
    succeeded(&environments.environments)
        .filter_map(|(id, environment)| Some((environment, environments.lock.get(id)?.as_ref().ok()?)))
        .flat_map(|(environment, lockfile)| entry::refusals(environment, lockfile))
        .collect()
}

/// What the registries are to be asked so that the digests of the change are known: references that `to` has, `from` has
/// not, and the lock of `to` does not hold. References that were waiting for their first answer before are not asked.
pub fn questions(from: Option<&Environments>, to: &Environments) -> Vec<Due> {
    let touched: Batch<Environment> = succeeded(&to.environments)
        .map(|(id, environment)| {
            let mut environment = environment.clone();
            let before = from.and_then(|from| Some((from, from.environments.get(id)?.as_ref().ok()?)));
            if let Some((from, before)) = before.filter(|(_, before)| !before.suspend) {
                let known: Vec<_> =
                    before.images.iter().map(|image| resolve::key(before, image, &from.settings)).collect();
                let is_new = |image: &Image| !known.contains(&resolve::key(&environment, image, &to.settings));
                let images = environment.images.iter().filter(|image| is_new(image)).cloned().collect();
                environment.images = images;
            }
            (id.clone(), Ok::<_, Failure>(environment))
        })
        .collect();
    let never: Answered = BTreeMap::new();
    resolve::wanted(&touched, &to.settings, &to.lock, &never, Duration::ZERO, Refresh::Missing)
}
