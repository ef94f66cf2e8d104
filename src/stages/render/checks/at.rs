//! A value together with its path, for errors that say where.

use serde_json::{Map, Value};

use super::Violation;

/// A part of a rendered object.
pub struct At<'a> {
    pub value: &'a Value,
    /// As `spec.template.spec.containers[0].image`; empty for the whole object.
    pub path: String,
}

impl<'a> At<'a> {
    pub fn root(value: &'a Value) -> Self {
        Self { value, path: String::new() }
    }

    pub fn get(&self, key: &str) -> Option<At<'a>> {
        self.value.get(key).map(|value| At { value, path: self.path_of(key) })
    }

    pub fn require(&self, key: &str) -> Result<At<'a>, Violation> {
        self.get(key).ok_or_else(|| Violation::Missing { path: self.path_of(key) })
    }

    /// Whether it is an object with those fields at most.
    pub fn only(&self, allowed: &[&str]) -> Result<(), Violation> {
        match self.map()?.keys().find(|key| !allowed.contains(&key.as_str())) {
            Some(key) => Err(Violation::Field { path: self.path_of(key) }),
            None => Ok(()),
        }
    }

    pub fn is(&self, wanted: &Value) -> Result<(), Violation> {
        if self.value == wanted { Ok(()) } else { Err(self.wrong(wanted.to_string())) }
    }

    pub fn entries(&self) -> Result<impl Iterator<Item = (&'a String, At<'a>)>, Violation> {
        let map = self.map()?;
        Ok(map.iter().map(|(key, value)| (key, At { value, path: self.path_of(key) })))
    }

    pub fn items(&self) -> Result<impl Iterator<Item = At<'a>>, Violation> {
        let items = self.value.as_array().ok_or_else(|| self.wrong("a list".into()))?;
        Ok(items.iter().enumerate().map(|(index, value)| At { value, path: format!("{}[{index}]", self.path) }))
    }

    /// The items of a list that may be absent; a loop without items leaves a null.
    pub fn items_of(&self, key: &str) -> Result<Vec<At<'a>>, Violation> {
        self.get(key)
            .filter(|list| !list.value.is_null())
            .map_or_else(|| Ok(Vec::new()), |list| Ok(list.items()?.collect()))
    }

    pub fn text(&self) -> Result<&'a str, Violation> {
        self.value.as_str().ok_or_else(|| self.wrong("a text in quotes".into()))
    }

    pub fn wrong(&self, wanted: String) -> Violation {
        let mut found: String = self.value.to_string().chars().take(100).collect();
        if found.len() < self.value.to_string().len() {
            found.push('…');
        }
        Violation::Value { path: self.path.clone(), found, wanted }
    }

    fn map(&self) -> Result<&'a Map<String, Value>, Violation> {
        self.value.as_object().ok_or_else(|| self.wrong("an object".into()))
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}
