//! Where a key that is there twice was first.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};

use super::super::located::{Located, Place};

/// The line of the first key of the same mapping that equals the one at `second`.
pub fn first_line(text: &str, second: Place, mut options: serde_saphyr::Options) -> Option<usize> {
    options.duplicate_keys = serde_saphyr::DuplicateKeyPolicy::PassThrough;
    find(&serde_saphyr::from_str_with_options(text, options).ok()?, second)
}

fn find(node: &Node, second: Place) -> Option<usize> {
    match node {
        Node::Scalar => None,
        Node::List(items) => items.iter().find_map(|item| find(item, second)),
        Node::Mapping(entries) => {
            let at = |place: Place| (place.line, place.column);
            match entries.iter().position(|(key, _)| at(key.place) == at(second)) {
                Some(index) => {
                    let (key, _) = &entries[index];
                    entries[..index].iter().find(|(other, _)| other.value == key.value).map(|(key, _)| key.place.line)
                }
                None => entries.iter().find_map(|(_, value)| find(value, second)),
            }
        }
    }
}

/// The keys of a document.
enum Node {
    Scalar,
    List(Vec<Node>),
    Mapping(Vec<(Located<String>, Node)>),
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("YAML")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_i128<E>(self, _: i128) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_u128<E>(self, _: u128) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_str<E>(self, _: &str) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Node::Mapping(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::{Place, first_line};

    #[test]
    fn the_first_key_is_found() {
        let cases = [
            ("a: 1\nb: 2\na: 3\n", (3, 1), Some(1)),
            ("x:\n- image: a\n- image: b\n  name: c\n  image: d\n", (5, 3), Some(3)),
            ("x: {a: 1,\n  \"a\": 2}\n", (2, 3), Some(1)),
            ("a: 1\n", (1, 1), None),
            ("a: [", (1, 1), None),
        ];
        for (text, (line, column), expected) in cases {
            let place = Place { line, column, length: 1 };
            assert_eq!(first_line(text, place, serde_saphyr::Options::default()), expected, "{text:?}");
        }
    }
}
