//! What was rendered last, so that only what differs is rendered again.

use std::collections::BTreeMap;

use super::{Options, collisions, engine::Engine, impersonate, locked, render_environment, tenant};
use crate::{
    model::{
        batch::{self, Batch},
        environment::Environment,
        failure::Failure,
        lock::{Lock, Lockfile},
        manifest::{Manifest, Manifests, Owner},
        name::{EnvironmentId, Name},
        settings::Settings,
    },
    stages::{locked_limits, memo::Memo},
};

/// Renders like [`render`](super::render()), and remembers one commit: of the next it renders only the owners whose inputs
/// differ. It shares the objects with anyone who still has them.
#[derive(Default)]
pub struct Renderer {
    shared: Option<Shared>,
    environments: Memo<EnvironmentId, (Environment, Lockfile), Result<Vec<Manifest>, Failure>>,
    tenants: Memo<Name, String, Result<Option<Vec<Manifest>>, Failure>>,
}

/// What all owners' manifests depend on.
struct Shared {
    settings: Settings,
    templates: BTreeMap<String, String>,
    options: Options,
    engine: Engine,
}

impl Renderer {
    /// Exactly what [`render`](super::render()) gives.
    ///
    /// What one owner's manifests depend on beyond its own inputs is checked for all of them each time: limits and
    /// collisions.
    pub fn render(
        &mut self,
        environments: &Batch<Environment>,
        settings: &Settings,
        templates: &BTreeMap<String, String>,
        lock: &Lock,
        options: &Options,
    ) -> Manifests {
        let shared = match self.shared.take() {
            Some(last) if (&last.settings, &last.templates, &last.options) == (settings, templates, options) => last,
            _ => {
                *self = Self::default();
                Shared {
                    settings: settings.clone(),
                    templates: templates.clone(),
                    options: options.clone(),
                    engine: Engine::new(templates),
                }
            }
        };
        let mut manifests = self.tenants(&shared, environments, lock);
        manifests.extend(self.environments(&shared, environments, lock));
        self.shared = Some(shared);
        collisions::refuse(&mut manifests);
        impersonate(&mut manifests, settings);
        manifests
    }

    fn tenants(&mut self, shared: &Shared, environments: &Batch<Environment>, lock: &Lock) -> Manifests {
        let Shared { settings, options, engine, .. } = shared;
        self.tenants.begin();
        let mut manifests = Manifests::new();
        for (name, list) in tenant::records(environments, lock) {
            let result = list.and_then(|list| {
                let make = || tenant::render(engine, name, settings, &list, options);
                self.tenants.get(name, |known| *known == list, || list.clone(), make)
            });
            if let Some(result) = result.transpose() {
                manifests.insert(Owner::Tenant(name.clone()), result);
            }
        }
        manifests
    }

    fn environments(&mut self, shared: &Shared, environments: &Batch<Environment>, lock: &Lock) -> Manifests {
        let Shared { settings, options, engine, .. } = shared;
        self.environments.begin();
        let mut refused = locked_limits::check(environments, settings, lock);
        let mut manifests = Manifests::new();
        for (id, environment) in batch::succeeded(environments).filter(|(_, environment)| !environment.suspend) {
            let allowed = refused.remove(id).map_or(Ok(()), Err);
            let result = allowed.and_then(|()| locked(lock.get(id), environment)).and_then(|lockfile| {
                self.environments.get(
                    id,
                    |(known, locked)| (known, locked) == (environment, lockfile),
                    || (environment.clone(), lockfile.clone()),
                    || Ok(render_environment(engine, environment, settings, lockfile, options)?),
                )
            });
            manifests.insert(Owner::Environment(id.clone()), result);
        }
        manifests
    }
}
