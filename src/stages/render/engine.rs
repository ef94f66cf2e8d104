//! The templates of one snapshot: the built-in ones here, a repository's own where they can do no harm.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use serde::Serialize;

use super::{
    isolation::{self, Process},
    sandbox::{DIRECTORY, Refusal, Sandbox, Sources},
};
use crate::model::failure::{Category, Problem, Source};

/// The built-in templates by file name.
pub const BUILT_IN: [(&str, &str); 4] = [
    (NAMESPACE, include_str!("../../../templates/namespace.yaml.j2")),
    (SERVICE_ACCOUNT, include_str!("../../../templates/service-account.yaml.j2")),
    (RECORDS, include_str!("../../../templates/records.yaml.j2")),
    (PULLER, include_str!("../../../templates/puller.yaml.j2")),
];

/// The template of a tenant's Namespace.
pub const NAMESPACE: &str = "namespace.yaml.j2";
/// The template of an environment's ServiceAccount.
pub const SERVICE_ACCOUNT: &str = "service-account.yaml.j2";
/// The template of a tenant's records.
pub const RECORDS: &str = "records.yaml.j2";
/// The template of an environment's pullers.
pub const PULLER: &str = "puller.yaml.j2";

/// All templates of one snapshot.
pub struct Engine {
    place: Place,
    sources: Arc<Sources>,
}

/// Where templates run.
enum Place {
    /// In this process.
    Here(Box<Sandbox>),
    /// In one of their own.
    Apart(Mutex<Box<dyn Process>>),
}

impl Engine {
    /// The built-in templates, replaced and completed by those of the repository.
    pub fn new(overrides: &BTreeMap<String, String>) -> Self {
        let built_in = BUILT_IN.iter().map(|&(name, text)| (name.to_owned(), Arc::from(text)));
        let own = overrides.iter().map(|(name, text)| (name.clone(), Arc::from(text.as_str())));
        let sources: Arc<Sources> = Arc::new(built_in.chain(own).collect());
        let apart = if overrides.is_empty() { None } else { isolation::start(&sources) };
        let place = match apart {
            Some(process) => Place::Apart(Mutex::new(process)),
            None => Place::Here(Box::new(Sandbox::new(Arc::clone(&sources)))),
        };
        Self { place, sources }
    }

    /// The text that the template renders.
    pub fn render(&self, name: &str, context: &impl Serialize) -> Result<String, Problem> {
        let rendered = match &self.place {
            Place::Here(sandbox) => sandbox.render(name, context),
            Place::Apart(process) => {
                let mut process = process.lock().unwrap_or_else(PoisonError::into_inner);
                serde_json::to_value(context)
                    .map_err(|error| Refusal::of(name, format!("the values cannot be passed on: {error}")))
                    .and_then(|context| process.render(name, &context))
            }
        };
        rendered.map_err(|Refusal { template, line, message, hint }| {
            let problem = self.problem(&template, line, message);
            match hint {
                Some(hint) => problem.hint(hint),
                None => problem,
            }
        })
    }

    /// A problem at a line of a template, counted from 1; 0 is all of it.
    pub fn problem(&self, name: &str, line: usize, message: String) -> Problem {
        let path = format!("{DIRECTORY}/{name}");
        let problem = Problem::new(Category::Template, message);
        match self.sources.get(name) {
            Some(text) => problem.at(&Source { path, text: Arc::clone(text) }, line, 0, 0),
            None => problem.in_file(path),
        }
    }

    /// The line where a template writes that field, counted from 1; 0 if it does so nowhere, or in several.
    pub fn line_of(&self, name: &str, field: &str) -> usize {
        let writes = |line: &str| {
            line.match_indices(field).any(|(at, _)| {
                let inner = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.' | '/');
                !line[..at].ends_with(inner) && line[at + field.len()..].starts_with(':')
            })
        };
        let text = self.sources.get(name).map_or("", |text| text);
        let mut lines = text.lines().enumerate().filter(|(_, line)| writes(line)).map(|(index, _)| index + 1);
        lines.next().filter(|_| lines.next().is_none()).unwrap_or(0)
    }
}
