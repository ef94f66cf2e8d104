//! A place in a document that knows its path, for the report.

use serde_json::Value as Json;

use super::document::{Node, Value};

/// A node, its file and its path.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    /// The node.
    pub node: &'a Node,
    file: &'a str,
    path: String,
}

impl<'a> Cursor<'a> {
    /// The root of a document.
    pub fn root(file: &'a str, node: &'a Node) -> Self {
        Self { node, file, path: String::new() }
    }

    /// The same node under a name.
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.path);
        self
    }

    /// The path alone: `singleuser.profileList[2].display_name`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The file's name as it was given.
    pub fn file(&self) -> &'a str {
        self.file
    }

    /// File, line and path, for the report.
    pub fn place(&self) -> String {
        match (self.node.line, self.path.as_str()) {
            (0, path) => format!("{} {path}", self.file).trim_end().to_owned(),
            (line, path) => format!("{}:{line} {path}", self.file).trim_end().to_owned(),
        }
    }

    fn child(&self, node: &'a Node, step: &str) -> Self {
        let path = match step {
            _ if self.path.is_empty() && !step.starts_with('[') => step.to_owned(),
            index if index.starts_with('[') => format!("{}{index}", self.path),
            key => format!("{}.{key}", self.path),
        };
        Self { node, file: self.file, path }
    }

    /// The value of a key; none where there is none or it is null.
    pub fn get(&self, key: &str) -> Option<Self> {
        let Value::Map(entries) = &self.node.value else { return None };
        let (_, node) = entries.iter().rev().find(|(found, _)| found == key)?;
        (node.value != Value::Null).then(|| self.child(node, key))
    }

    /// The value behind several keys.
    pub fn at(&self, keys: &[&str]) -> Option<Self> {
        keys.iter().try_fold(self.clone(), |cursor, key| cursor.get(key))
    }

    /// Whether a key is there, null included.
    pub fn has(&self, key: &str) -> bool {
        matches!(&self.node.value, Value::Map(entries) if entries.iter().any(|(found, _)| found == key))
    }

    /// The entries of a mapping, null values included; none for anything else.
    pub fn entries(&self) -> Vec<(&'a str, Self)> {
        match &self.node.value {
            Value::Map(entries) => entries.iter().map(|(key, node)| (key.as_str(), self.child(node, key))).collect(),
            _ => Vec::new(),
        }
    }

    /// The items of a list; none for anything else.
    pub fn items(&self) -> Vec<Self> {
        match &self.node.value {
            Value::List(items) => {
                items.iter().enumerate().map(|(index, node)| self.child(node, &format!("[{index}]"))).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The items of a list, or the values of a mapping: some fields are allowed to be either.
    pub fn values(&self) -> Vec<Self> {
        match &self.node.value {
            Value::Map(_) => self.entries().into_iter().map(|(_, value)| value).collect(),
            _ => self.items(),
        }
    }

    /// A scalar's text.
    pub fn text(&self) -> Option<String> {
        match &self.node.value {
            Value::Text(text) | Value::Number(text) => Some(text.clone()),
            Value::Bool(value) => Some(value.to_string()),
            Value::Null | Value::List(_) | Value::Map(_) => None,
        }
    }

    /// The text of a key's scalar, trimmed; none when it is empty.
    pub fn text_of(&self, key: &str) -> Option<String> {
        let text = self.get(key)?.text()?;
        let trimmed = text.trim();
        (!trimmed.is_empty()).then(|| trimmed.to_owned())
    }

    /// Whether this is a list.
    pub fn is_list(&self) -> bool {
        matches!(self.node.value, Value::List(_))
    }

    /// Whether this is a mapping.
    pub fn is_map(&self) -> bool {
        matches!(self.node.value, Value::Map(_))
    }

    /// The value as JSON; numbers that JSON cannot hold become text.
    pub fn json(&self) -> Json {
        json(self.node)
    }
}

fn json(node: &Node) -> Json {
    match &node.value {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Text(text) => Json::String(text.clone()),
        Value::Number(text) => match text.parse::<i64>() {
            Ok(number) => Json::from(number),
            Err(_) => text.parse::<f64>().map_or_else(|_| Json::String(text.clone()), Json::from),
        },
        Value::List(items) => Json::Array(items.iter().map(json).collect()),
        Value::Map(entries) => Json::Object(entries.iter().map(|(key, node)| (key.clone(), json(node))).collect()),
    }
}
