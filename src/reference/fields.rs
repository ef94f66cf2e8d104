//! The fields of each kind of file as tables, from its JSON Schema.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::GENERATED;
use crate::stages::schema::FileKind;

/// `docs/reference/files.md`.
pub fn files() -> String {
    let mut text = format!("{GENERATED}\n# Files\n\nEvery field of every file that larder reads, by kind. ");
    text.push_str("Their JSON Schemas are in [`docs/schema/`](../schema); `larder schema KIND` prints them.\n");
    text.push_str("In a table, **bold** fields must be there.\n");
    for kind in FileKind::ALL {
        let schema = kind.schema();
        // Writing to a text cannot fail.
        let _ = write!(
            text,
            "\n## {}\n`{}`, schema [`{2}.json`](../schema/{2}.json)\n",
            title(&schema),
            kind.place(),
            kind.name()
        );
        object(&mut text, title(&schema), &schema);
        let definitions = schema["$defs"].as_object();
        for (name, definition) in definitions.into_iter().flatten().filter(|(_, definition)| has_fields(definition)) {
            let _ = write!(text, "\n### {}: {}\n", title(&schema), part(name, title(&schema)));
            object(&mut text, title(&schema), definition);
        }
        words(&mut text, title(&schema), definitions);
    }
    text
}

fn title(schema: &Value) -> &str {
    schema["title"].as_str().unwrap_or_default()
}

fn has_fields(definition: &Value) -> bool {
    definition["properties"].is_object()
}

/// A description and a table of fields.
fn object(text: &mut String, title: &str, schema: &Value) {
    let _ = write!(text, "\n{}\n\n| field | | |\n|---|---|---|\n", description(schema));
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let fields = schema["properties"].as_object();
    let (first, then): (Vec<_>, Vec<_>) =
        fields.into_iter().flatten().partition(|(name, _)| required.contains(&name.as_str()));
    for (name, field) in first.iter().chain(&then) {
        let name = if required.contains(&name.as_str()) { format!("**`{name}`**") } else { format!("`{name}`") };
        let _ = writeln!(text, "| {name} | {} | {} |", kind(field, title), description(field).replace('|', "\\|"));
    }
}

/// The words of enumerations, with what each means.
fn words(text: &mut String, title: &str, definitions: Option<&Map<String, Value>>) {
    let enumerations = definitions.into_iter().flatten().filter(|(_, definition)| definition["oneOf"].is_array());
    for (name, definition) in enumerations.filter(|(_, definition)| !has_fields(definition)) {
        let _ = write!(
            text,
            "\n### {title}: {}\n\n{}\n\n| word | |\n|---|---|\n",
            part(name, title),
            description(definition)
        );
        for word in definition["oneOf"].as_array().into_iter().flatten() {
            let _ = writeln!(text, "| `{}` | {} |", word["const"].as_str().unwrap_or_default(), description(word));
        }
    }
}

fn description(schema: &Value) -> String {
    schema["description"].as_str().unwrap_or_default().replace('\n', " ")
}

/// A definition's name, without the kind's in front: `SettingsSpec` of `Settings` is `spec`.
fn part(name: &str, kind: &str) -> String {
    spaced(name.strip_prefix(kind).filter(|rest| !rest.is_empty()).unwrap_or(name))
}

/// A field's type in a few words.
fn kind(field: &Value, title: &str) -> String {
    if let Some(value) = field.get("const") {
        return format!("`{}`", value.as_str().unwrap_or_default());
    }
    if let Some(name) = field["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return part(name, title);
    }
    for key in ["anyOf", "allOf"] {
        if let Some(choices) = field[key].as_array() {
            let kinds: Vec<String> =
                choices.iter().filter(|choice| choice["type"] != "null").map(|choice| kind(choice, title)).collect();
            return kinds.join(" or ");
        }
    }
    let types: Vec<&str> = match &field["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).filter(|one| *one != "null").collect(),
        _ => return "anything".to_owned(),
    };
    let words: Vec<String> = types.into_iter().map(|one| word(one, field, title)).collect();
    words.join(" or ")
}

fn word(one: &str, field: &Value, title: &str) -> String {
    match one {
        "string" => "text".to_owned(),
        "integer" => "whole number".to_owned(),
        "boolean" => "`true` or `false`".to_owned(),
        "array" => format!("list of: {}", kind(&field["items"], title)),
        "object" if field["additionalProperties"].is_object() => {
            format!("by name: {}", kind(&field["additionalProperties"], title))
        }
        other => other.to_owned(),
    }
}

/// `ImageEntry` as `image entry`.
fn spaced(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !text.is_empty() {
            text.push(' ');
        }
        text.extend(c.to_lowercase());
    }
    text
}
