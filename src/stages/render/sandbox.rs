//! Runs templates, bounded: data in, text out, and nothing else within reach.
//!
//! Fuel bounds what a template does step by step. It does not bound what happens within one step, such as comparing or
//! printing a small list that holds itself a billion times over, or dropping one that nests a hundred thousand times.
//! That is why a repository's own templates run in a [process of their own](super::isolation).

use std::{collections::BTreeMap, error::Error as _, fmt::Write as _, io, sync::Arc};

use minijinja::{
    AutoEscape, Environment, Error, ErrorKind, Output, UndefinedBehavior,
    value::{Serde, Value},
};
use serde::{Deserialize, Serialize};

/// The directory of the environment repository whose files replace the built-in templates.
pub const DIRECTORY: &str = "templates";

/// What one rendering may use: about one unit an instruction and one for 64 bytes of data. The largest records that a
/// ConfigMap can hold take less than a third of it.
const FUEL: u64 = 1_000_000;

/// The largest text that a template may render, in bytes: more than the API server takes.
const MAX_OUTPUT: usize = 4 << 20;

/// Templates by file name.
pub type Sources = BTreeMap<String, Arc<str>>;

/// Why a template gave no text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The file name of the template that is at fault.
    pub template: String,
    /// Its line, counted from 1; 0 is all of it.
    pub line: usize,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl Refusal {
    /// Of a whole template.
    pub fn of(template: &str, message: impl Into<String>) -> Self {
        Self { template: template.to_owned(), line: 0, message: message.into(), hint: None }
    }
}

/// Templates, ready to run. Each is compiled when it is first used, so that a broken one fails only those who use it.
pub struct Sandbox {
    environment: Environment<'static>,
}

impl Sandbox {
    /// With these templates.
    pub fn new(sources: Arc<Sources>) -> Self {
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
        environment.set_loader(move |name| {
            check_name(name)?;
            Ok(sources.get(name).map(ToString::to_string))
        });
        Self { environment }
    }

    /// The text that the template renders.
    ///
    /// # Errors
    /// When the template is broken, or needs more than it may.
    pub fn render(&self, name: &str, context: &impl Serialize) -> Result<String, Refusal> {
        let rendered = self.environment.get_template(name).and_then(|t| t.render(Serde(context)));
        match rendered {
            Ok(text) if text.len() > MAX_OUTPUT => Err(Refusal::of(
                name,
                format!("the template renders {} bytes, at most {MAX_OUTPUT} are allowed", text.len()),
            )),
            Ok(text) => Ok(text),
            Err(error) => Err(explain(name, &error)),
        }
    }
}

/// The innermost error, which knows the template and line where it really happened.
fn explain(name: &str, error: &Error) -> Refusal {
    let mut innermost = error;
    while let Some(source) = innermost.source().and_then(|source| source.downcast_ref::<Error>()) {
        innermost = source;
    }
    let place = [innermost, error].into_iter().find_map(|e| Some((e.name()?, e.line()?))).unwrap_or((name, 0));
    let what = innermost.detail().map_or_else(|| innermost.kind().to_string(), ToOwned::to_owned);
    Refusal {
        template: place.0.to_owned(),
        line: place.1,
        message: format!("the template does not render: {what}"),
        hint: hint(innermost.kind()).map(str::to_owned),
    }
}

/// Writes a value as JSON that YAML readers take as well: JSON leaves control characters from U+007F on as they are,
/// YAML allows them only escaped. What macros, blocks and the filter `safe` return is written as it is.
fn quote(out: &mut Output, value: &Value) -> Result<(), Error> {
    if let Some(text) = value.as_str().filter(|_| value.is_safe()) {
        return out.write_str(text).map_err(Error::from);
    }
    let mut json = Bounded(Vec::new());
    serde_json::to_writer(&mut json, value).map_err(|error| match error.is_io() {
        true => Error::new(ErrorKind::OutOfFuel, format!("a value of more than {MAX_OUTPUT} bytes")),
        false => Error::new(ErrorKind::BadSerialization, "the value cannot be written as JSON").with_source(error),
    })?;
    let json = String::from_utf8_lossy(&json.0);
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

/// Text that does not outgrow what a template may render.
struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_OUTPUT {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Templates include others by file name; nothing that looks like a way out of the directory is looked up.
fn check_name(name: &str) -> Result<(), Error> {
    let outside = name.starts_with('/')
        || name.contains(['\\', '\0'])
        || name.split('/').any(|part| matches!(part, "" | "." | ".."));
    if !outside {
        return Ok(());
    }
    let detail = format!("{name:?} leads out of the directory {DIRECTORY}: a template is named by its file name alone");
    Err(Error::new(ErrorKind::InvalidOperation, detail))
}

fn hint(kind: ErrorKind) -> Option<&'static str> {
    match kind {
        ErrorKind::UndefinedError => {
            Some("docs/reference/templates.md lists all values; use `default(…)` for what may be absent")
        }
        ErrorKind::TemplateNotFound => {
            Some("only files of the directory templates of the same commit and built-in templates can be included")
        }
        ErrorKind::OutOfFuel => Some("a template may not loop this often or build a text this large"),
        ErrorKind::SyntaxError => Some("docs/reference/templates.md says which Jinja2 templates are"),
        _ => None,
    }
}
