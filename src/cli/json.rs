//! What commands print with `--output json`: documents with `apiVersion` and `kind`, each with a JSON Schema in
//! `docs/schema/output/`.
//!
//! These types are the interface; what they are made from can change. Whatever is not known or does not apply is absent,
//! never null; identities are whole.

use schemars::{JsonSchema, Schema, generate::SchemaSettings};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    diagnostics::{Severity, Style, render},
    model::failure,
};

pub mod directory;
pub mod plan;
pub mod validation;

/// The version of every document. A change that breaks a reader makes another.
const API_VERSION: &str = "larder.dev/v1alpha1";

/// What a command prints as JSON.
pub trait Document: Serialize + JsonSchema {
    /// The value of its field `kind`.
    const KIND: &'static str;
}

/// A document with its version and kind, as it is printed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Versioned<'a, D> {
    api_version: &'static str,
    kind: &'static str,
    #[serde(flatten)]
    document: &'a D,
}

impl<'a, D: Document> Versioned<'a, D> {
    pub(super) fn new(document: &'a D) -> Self {
        Self { api_version: API_VERSION, kind: D::KIND, document }
    }
}

/// The JSON Schemas (draft 2020-12) of all documents, by file name.
pub fn schemas() -> Vec<(&'static str, Value)> {
    vec![
        ("directory-status", schema::<directory::DirectoryStatus>()),
        ("plan", schema::<plan::Plan>()),
        ("validation", schema::<validation::Validation>()),
    ]
}

fn schema<D: Document>() -> Value {
    let schema: Schema = SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<D>();
    let mut schema = schema.to_value();
    forbid_null(&mut schema);
    if let Some(properties) = schema["properties"].as_object_mut() {
        properties.insert("apiVersion".to_owned(), json!({"const": API_VERSION}));
        properties.insert("kind".to_owned(), json!({"const": D::KIND}));
    }
    if let Some(required) = schema["required"].as_array_mut() {
        required.splice(0..0, ["apiVersion".into(), "kind".into()]);
    }
    schema
}

/// What is optional is absent and never null, which the types alone do not say.
fn forbid_null(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(forbid_null),
        Value::Object(fields) => {
            if let Some(Value::Array(types)) = fields.get_mut("type") {
                types.retain(|name| *name != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    fields.insert("type".to_owned(), only);
                }
            }
            if let Some(Value::Array(choices)) = fields.get_mut("anyOf") {
                choices.retain(|choice| choice["type"] != "null");
                if let [Value::Object(only)] = choices.as_slice() {
                    let only = only.clone();
                    fields.remove("anyOf");
                    fields.extend(only);
                }
            }
            fields.values_mut().for_each(forbid_null);
        }
        _ => {}
    }
}

/// Something that is wrong, or looks like a mistake.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// The lint that found it, or the kind of problem: `schema`, `registry`, ….
    pub code: String,
    /// What is wrong, in one sentence.
    pub message: String,
    /// The environment `tenant/name`, or the tenant, that it concerns alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Where, if it is in a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The same for people: with an excerpt of the file.
    pub rendered: String,
}

/// A place in a file of the environment repository.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Location {
    /// Path from the root of the environment repository, with `/`.
    pub path: String,
    /// Line, counted from 1; absent when the whole file is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Column in characters, counted from 1; absent when the whole line is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// Length in characters of what is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<usize>,
}

impl Problem {
    /// As it concerns everything, or nobody alone.
    pub(super) fn new(problem: &failure::Problem, severity: Severity) -> Self {
        let known = |number: usize| (number > 0).then_some(number);
        Self {
            code: problem.code().to_owned(),
            message: problem.message.clone(),
            owner: None,
            location: problem.location.as_ref().map(|place| Location {
                path: place.path.clone(),
                line: known(place.line),
                column: known(place.column),
                length: known(place.length),
            }),
            hint: problem.hint.clone(),
            rendered: render(problem, severity, Style::Plain),
        }
    }

    pub(super) fn error(problem: &failure::Problem) -> Self {
        Self::new(problem, Severity::Error)
    }

    /// All problems of one owner.
    pub(super) fn of(owner: &impl ToString, failure: &failure::Failure) -> Vec<Self> {
        let owner = owner.to_string();
        let problems = failure.problems().iter();
        problems.map(|problem| Self { owner: Some(owner.clone()), ..Self::error(problem) }).collect()
    }
}
