//! From text to trees: YAML or JSON of any shape within bounds, where a number keeps how it was written.

use std::{collections::HashMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_saphyr::{MessageFormatter, Spanned, UserMessageFormatter};

use crate::model::failure::{Category, Problem};

use super::Input;

/// The most bytes of a file: values of a large hub have tens of kilobytes.
const MAX_BYTES: usize = 4 << 20;

/// The most mappings, lists and scalars of a file, aliases expanded; an alias bomb has more.
const MAX_NODES: usize = 50_000;

/// How deep a file may nest.
const MAX_DEPTH: usize = 64;

/// A value and the line that it is defined at.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Line, counted from 1; 0 when unknown.
    pub line: usize,
}

/// Any value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing, `null` or `~`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as its file writes it: `1.10` is not `1.1`.
    Number(String),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping in the file's order.
    Map(Vec<(String, Node)>),
}

/// The documents of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Documents {
    /// Their trees; empty documents have none.
    pub trees: Vec<Node>,
    /// Entries of mappings that a later one with the same key replaces, as Helm and most tools have it.
    pub replaced: Vec<Replaced>,
}

/// An entry that does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// Its key.
    pub key: String,
    /// The line of its value.
    pub line: usize,
    /// The line of the value that counts.
    pub by: usize,
}

/// Reads the documents of a file.
///
/// # Errors
/// When it is no YAML, or over a bound. The error shows no line of the file, since that could hold a secret.
pub fn parse(input: &Input) -> Result<Documents, Problem> {
    let text = input.text.strip_prefix('\u{feff}').unwrap_or(&input.text);
    if text.len() > MAX_BYTES {
        return Err(Problem::new(Category::Syntax, format!("the file is too large to be read: {} bytes", text.len()))
            .in_file(&input.name)
            .hint("give the file itself, not an archive or a log of it"));
    }
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_nodes: MAX_NODES, max_events: MAX_NODES * 4, max_depth: MAX_DEPTH },
        strict_booleans: true,
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::PassThrough,
        with_snippet: false,
    };
    let documents = serde_saphyr::from_multiple_with_options::<Raw>(text, options)
        .map_err(|error| problem(input, error.without_snippet()))?;
    let mut replaced = Vec::new();
    let trees = documents.into_iter().map(|raw| raw.node(text, &mut replaced));
    let trees = trees.filter(|node| node.value != Value::Null).collect();
    Ok(Documents { trees, replaced })
}

fn problem(input: &Input, error: &serde_saphyr::Error) -> Problem {
    use serde_saphyr::Error;

    // Inside an alias; the place is where it is used.
    let cause = match error {
        Error::AliasError { error, .. } => error.without_snippet(),
        error => error,
    };
    let mut problem = match cause {
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            Problem::new(Category::Syntax, "the file is too large or too deep, aliases expanded")
                .hint("give a file with fewer aliases, or a part of it")
        }
        _ => {
            let message = UserMessageFormatter.format_message(cause).into_owned();
            Problem::new(Category::Syntax, format!("this is neither YAML nor JSON: {message}"))
                .hint("look at quotes, colons and indentation at and before this place")
        }
    };
    problem = problem.in_file(&input.name);
    if let (Some(location), Some(at)) = (&mut problem.location, error.location()) {
        location.line = usize::try_from(at.line()).unwrap_or_default();
        location.column = usize::try_from(at.column()).unwrap_or_default();
    }
    problem
}

/// A value with its place in the text, from which a number's own writing is taken.
struct Raw(Spanned<RawValue>);

enum RawValue {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Raw>),
    Map(Vec<(String, Raw)>),
}

impl Raw {
    fn node(self, text: &str, replaced: &mut Vec<Replaced>) -> Node {
        let Spanned { value, defined, .. } = self.0;
        let source = || {
            let span = defined.span();
            let start = usize::try_from(span.byte_offset()?).ok()?;
            let end = start.checked_add(usize::try_from(span.byte_len()?).ok()?)?;
            text.get(start..end).map(str::trim).filter(|source| source.parse::<f64>().is_ok())
        };
        let value = match value {
            RawValue::Null => Value::Null,
            RawValue::Bool(value) => Value::Bool(value),
            RawValue::Number(number) => Value::Number(source().map_or(number, str::to_owned)),
            RawValue::Text(value) => Value::Text(value),
            RawValue::List(items) => Value::List(items.into_iter().map(|item| item.node(text, replaced)).collect()),
            RawValue::Map(entries) => Value::Map(distinct(entries, text, replaced)),
        };
        Node { value, line: usize::try_from(defined.line()).unwrap_or_default() }
    }
}

/// The entries of a mapping, of each key the last.
fn distinct(entries: Vec<(String, Raw)>, text: &str, replaced: &mut Vec<Replaced>) -> Vec<(String, Node)> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut distinct: Vec<(String, Node)> = Vec::new();
    for (key, value) in entries {
        let node = value.node(text, replaced);
        match places.get(&key).and_then(|place| distinct.get_mut(*place)) {
            Some((_, old)) => {
                replaced.push(Replaced { key, line: old.line, by: node.line });
                *old = node;
            }
            None => {
                places.insert(key.clone(), distinct.len());
                distinct.push((key, node));
            }
        }
    }
    distinct
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Spanned::deserialize(deserializer).map(Self)
    }
}

impl<'de> Deserialize<'de> for RawValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyVisitor)
    }
}

struct AnyVisitor;

impl<'de> Visitor<'de> for AnyVisitor {
    type Value = RawValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<RawValue, E> {
        Ok(RawValue::Null)
    }

    fn visit_none<E>(self) -> Result<RawValue, E> {
        Ok(RawValue::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<RawValue, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<RawValue, E> {
        Ok(RawValue::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<RawValue, E> {
        Ok(RawValue::Number(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<RawValue, E> {
        Ok(RawValue::Number(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<RawValue, E> {
        Ok(RawValue::Number(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<RawValue, E> {
        Ok(RawValue::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<RawValue, E> {
        Ok(RawValue::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<RawValue, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(RawValue::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawValue, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(RawValue::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::{Node, Replaced, Value, parse};
    use crate::stages::import::Input;

    fn parsed(text: &str) -> Vec<Node> {
        parse(&Input { name: "f".to_owned(), text: text.to_owned() }).unwrap().trees
    }

    fn at<'a>(node: &'a Node, path: &[&str]) -> &'a Node {
        path.iter().fold(node, |node, key| match &node.value {
            Value::Map(entries) => &entries.iter().find(|(found, _)| found == key).unwrap().1,
            other => panic!("{key} in {other:?}"),
        })
    }

    #[test]
    fn numbers_keep_their_writing() {
        let node = &parsed("a: &t 1.10\nb: 2026.01.30\nc: *t\nd: 0x1F\ne: 1_000\nf: \"1.10\"\ng: 012\nü: 1.20 # ä")[0];
        for (key, expected) in [
            ("a", Value::Number("1.10".to_owned())),
            ("b", Value::Text("2026.01.30".to_owned())),
            ("c", Value::Number("1.10".to_owned())),
            ("f", Value::Text("1.10".to_owned())),
            ("ü", Value::Number("1.20".to_owned())),
        ] {
            assert_eq!(at(node, &[key]).value, expected, "{key}");
        }
    }

    #[test]
    fn merge_keys_and_aliases_are_expanded() {
        let node = &parsed("base: &b {x: 1, y: 2}\nm:\n  <<: *b\n  y: 3\nl: *b\n")[0];
        assert_eq!(at(node, &["m", "x"]).value, Value::Number("1".to_owned()));
        assert_eq!(at(node, &["m", "y"]).value, Value::Number("3".to_owned()));
        assert_eq!(at(node, &["l", "x"]).line, 1);
        assert_eq!(at(node, &["m", "y"]).line, 4);
    }

    #[test]
    fn of_a_key_that_is_there_twice_the_last_counts() {
        let input =
            Input { name: "f".to_owned(), text: "a: 1\nb: 2\na: {c: 3}\nd: &d {x: 1}\ne: {<<: *d, x: 2}\n".to_owned() };
        let found = parse(&input).unwrap();
        assert_eq!(at(&found.trees[0], &["a", "c"]).value, Value::Number("3".to_owned()));
        assert_eq!(found.replaced, [Replaced { key: "a".to_owned(), line: 1, by: 3 }]);
    }

    #[test]
    fn json_and_several_documents() {
        assert_eq!(parsed("{\n\t\"a\": [1, null, \"x\\u00e9\"],\n\t\"b\": true\n}\n").len(), 1);
        assert_eq!(parsed("---\na: 1\n---\n# nothing\n---\nb: 2\n").len(), 2);
        assert_eq!(parsed("").len(), 0);
        assert_eq!(parsed("\u{feff}a: 1").len(), 1);
    }

    #[test]
    fn bombs_and_nonsense_are_errors() {
        let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
        for (name, of) in ["b", "c", "d", "e", "f", "g"].iter().zip(["a", "b", "c", "d", "e", "f"]) {
            bomb += &format!("{name}: &{name} [*{of},*{of},*{of},*{of},*{of},*{of},*{of},*{of},*{of}]\n");
        }
        for (text, expected) in [
            (bomb.as_str(), "too large or too deep"),
            (&"[".repeat(1000), "limit exceeded"),
            ("password: \"hunter2\n", "neither YAML nor JSON"),
            ("a: *nothing", "neither YAML nor JSON"),
        ] {
            let problem = parse(&Input { name: "f".to_owned(), text: text.to_owned() }).unwrap_err();
            assert!(problem.to_string().contains(expected), "{problem}");
            assert!(!problem.to_string().contains("hunter2") && problem.source.is_none(), "{problem}");
        }
    }
}
