//! What was rendered last, so that only what differs is rendered anew.

use std::collections::BTreeMap;

use super::{Inputs, Options, engine::Engine, every};
use crate::{
    model::{
        batch::Batch,
        environment::Environment,
        failure::Failure,
        lock::{Lock, Lockfile},
        manifest::{Manifest, Manifests},
        name::{EnvironmentId, Name},
        settings::Settings,
    },
    stages::memo::Memo,
};

/// Renders like [`render`](super::render()), and remembers what it has rendered: of the next commit it renders only the
/// owners whose inputs differ.
///
/// It remembers one commit, whose objects it shares with everybody who still has them.
#[derive(Default)]
pub struct Renderer {
    common: Option<Common>,
    last: Last,
}

/// What all owners' manifests depend on.
struct Common {
    settings: Settings,
    templates: BTreeMap<String, String>,
    options: Options,
    engine: Engine,
}

/// What was rendered for each owner, and of what.
#[derive(Default)]
pub(super) struct Last {
    pub environments: Memo<EnvironmentId, (Environment, Lockfile), Result<Vec<Manifest>, Failure>>,
    pub tenants: Memo<Name, String, Result<Option<Vec<Manifest>>, Failure>>,
}

impl Renderer {
    /// Exactly what [`render`](super::render()) gives.
    pub fn render(
        &mut self,
        environments: &Batch<Environment>,
        settings: &Settings,
        templates: &BTreeMap<String, String>,
        lock: &Lock,
        options: &Options,
    ) -> Manifests {
        let inputs = &Inputs { environments, settings, templates, lock, options };
        let common = match self.common.take() {
            Some(common) if common.is_of(inputs) => common,
            _ => {
                self.last = Last::default();
                Common::new(inputs)
            }
        };
        self.last.environments.begin();
        self.last.tenants.begin();
        let manifests = every(&common.engine, inputs, Some(&mut self.last));
        self.last.environments.end();
        self.last.tenants.end();
        self.common = Some(common);
        manifests
    }
}

impl Common {
    fn new(inputs: &Inputs<'_>) -> Self {
        Self {
            settings: inputs.settings.clone(),
            templates: inputs.templates.clone(),
            options: inputs.options.clone(),
            engine: Engine::new(inputs.templates),
        }
    }

    fn is_of(&self, inputs: &Inputs<'_>) -> bool {
        (&self.settings, &self.templates, &self.options) == (inputs.settings, inputs.templates, inputs.options)
    }
}
