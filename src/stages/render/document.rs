//! From a template's text to one object.

use serde_json::Value;

use super::engine::Engine;
use crate::model::failure::Problem;

/// The one object in a rendered text; empty documents around it are allowed.
pub fn parse(engine: &Engine, template: &str, text: &str) -> Result<Value, Problem> {
    let options = serde_saphyr::options! { budget: serde_saphyr::budget! { max_depth: 64 }, with_snippet: false };
    let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(text, options).map_err(|error| {
        let line = error.location().map_or(0, |at| usize::try_from(at.line()).unwrap_or_default());
        let shown = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
        let message = format!("the template renders no YAML: {error}; its line {line} of the output is {shown:.100?}");
        engine
            .problem(template, 0, message)
            .hint("write each value as a whole `{{ value }}`; to build a text, join inside: `{{ \"a-\" ~ value }}`")
    })?;
    let mut objects = documents.into_iter().filter(|document| !document.is_null());
    match (objects.next(), objects.count()) {
        (Some(object @ Value::Object(_)), 0) => Ok(object),
        (Some(_), 0) => {
            Err(engine.problem(template, 0, "the template renders a YAML document that is not an object".into()))
        }
        (first, more) => {
            let count = more + usize::from(first.is_some());
            Err(engine.problem(template, 0, format!("the template renders {count} objects, not one")))
        }
    }
}
