//! The template engine, bounded: data in, text out, and nothing else within reach.

use std::{collections::BTreeMap, error::Error as _, fmt::Write as _, sync::Arc};

use minijinja::{
    AutoEscape, Environment, Error, ErrorKind, Output, UndefinedBehavior,
    value::{Serde, Value},
};
use serde::Serialize;

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

/// The folder of the environment repository whose files replace the built-in templates.
const FOLDER: &str = "templates";

/// What one rendering may use: about one unit an instruction and one for 64 bytes of data. The largest records that a
/// ConfigMap can hold take less than a third of it.
const FUEL: u64 = 1_000_000;

/// The largest text that a template may render, in bytes: more than the API server takes.
const MAX_OUTPUT: usize = 4 << 20;

/// All templates of one snapshot.
pub struct Engine {
    environment: Environment<'static>,
    sources: Arc<BTreeMap<String, Arc<str>>>,
}

impl Engine {
    /// The built-in templates, replaced and completed by those of the repository. Each is compiled when it is first
    /// used, so that a broken one fails only those who use it.
    pub fn new(overrides: &BTreeMap<String, String>) -> Self {
        let built_in = BUILT_IN.iter().map(|&(name, text)| (name.to_owned(), Arc::from(text)));
        let own = overrides.iter().map(|(name, text)| (name.clone(), Arc::from(text.as_str())));
        let sources: Arc<BTreeMap<String, Arc<str>>> = Arc::new(built_in.chain(own).collect());

        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        // By the engine's default it depends on the template's name whether values are quoted; the formatter quotes
        // all, and this makes the engine treat what macros and blocks return as quoted already.
        environment.set_auto_escape_callback(|_| AutoEscape::Json);
        environment.set_formatter(|out, _, value| quote(out, value));
        environment.set_fuel(Some(FUEL));
        // Names the undefined variable in the error.
        environment.set_debug(true);
        environment.remove_global("debug");
        let loadable = Arc::clone(&sources);
        environment.set_loader(move |name| {
            check_name(name)?;
            Ok(loadable.get(name).map(ToString::to_string))
        });
        Self { environment, sources }
    }

    /// The text that the template renders.
    pub fn render(&self, name: &str, context: &impl Serialize) -> Result<String, Problem> {
        let rendered = self.environment.get_template(name).and_then(|t| t.render(Serde(context)));
        match rendered {
            Ok(text) if text.len() > MAX_OUTPUT => Err(self.problem(
                name,
                0,
                format!("the template renders {} bytes, at most {MAX_OUTPUT} are allowed", text.len()),
            )),
            Ok(text) => Ok(text),
            Err(error) => Err(self.explain(name, &error)),
        }
    }

    /// A problem at a line of a template, counted from 1; 0 is all of it.
    pub fn problem(&self, name: &str, line: usize, message: String) -> Problem {
        let path = format!("{FOLDER}/{name}");
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

    /// The innermost error, which knows the template and line where it really happened.
    fn explain(&self, name: &str, error: &Error) -> Problem {
        let mut innermost = error;
        while let Some(source) = innermost.source().and_then(|source| source.downcast_ref::<Error>()) {
            innermost = source;
        }
        let place = [innermost, error].into_iter().find_map(|e| Some((e.name()?, e.line()?))).unwrap_or((name, 0));
        let what = innermost.detail().map_or_else(|| innermost.kind().to_string(), ToOwned::to_owned);
        let problem = self.problem(place.0, place.1, format!("the template does not render: {what}"));
        match hint(innermost.kind()) {
            Some(hint) => problem.hint(hint),
            None => problem,
        }
    }
}

/// Writes a value as JSON that YAML readers take as well: JSON leaves control characters from U+007F on as they are,
/// YAML allows them only escaped. What macros, blocks and the filter `safe` return is written as it is.
fn quote(out: &mut Output, value: &Value) -> Result<(), Error> {
    if let Some(text) = value.as_str().filter(|_| value.is_safe()) {
        return out.write_str(text).map_err(Error::from);
    }
    let json = serde_json::to_string(value).map_err(|error| {
        Error::new(ErrorKind::BadSerialization, "the value cannot be written as JSON").with_source(error)
    })?;
    let special =
        |c: char| matches!(c, '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}');
    if !json.contains(special) {
        return out.write_str(&json).map_err(Error::from);
    }
    for c in json.chars() {
        // Outside of its texts JSON is ASCII, so this is within one.
        if special(c) { write!(out, "\\u{:04x}", u32::from(c)) } else { out.write_char(c) }.map_err(Error::from)?;
    }
    Ok(())
}

/// Templates include others by file name; nothing that looks like a way out of the folder is looked up.
fn check_name(name: &str) -> Result<(), Error> {
    let outside = name.starts_with('/')
        || name.contains(['\\', '\0'])
        || name.split('/').any(|part| matches!(part, "" | "." | ".."));
    if !outside {
        return Ok(());
    }
    let detail = format!("{name:?} leads out of the folder {FOLDER}: a template is named by its file name alone");
    Err(Error::new(ErrorKind::InvalidOperation, detail))
}

fn hint(kind: ErrorKind) -> Option<&'static str> {
    match kind {
        ErrorKind::UndefinedError => {
            Some("docs/reference/templates.md lists all values; use `default(…)` for what may be absent")
        }
        ErrorKind::TemplateNotFound => {
            Some("only files of the folder templates of the same commit and built-in templates can be included")
        }
        ErrorKind::OutOfFuel => Some("a template may not loop this often or build a text this large"),
        ErrorKind::SyntaxError => Some("docs/reference/templates.md says which Jinja2 templates are"),
        _ => None,
    }
}
