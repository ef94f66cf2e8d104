//! Where in a file the value stands that a finding is about. Files are only looked at for findings.

use crate::{
    model::{
        failure::{Problem, Source},
        reference::ImageReference,
        snapshot::Snapshot,
    },
    stages::source::{located::Place, tree::Tree},
};

/// The files that everything was read from.
pub struct Places<'a>(&'a Snapshot);

/// A file and a place in it.
pub type Found = (Source, Place);

impl<'a> Places<'a> {
    /// Looks into these files.
    pub fn of(snapshot: &'a Snapshot) -> Self {
        Self(snapshot)
    }

    fn source(&self, path: &str) -> Option<Source> {
        let text = std::str::from_utf8(self.0.file(path)?).ok()?;
        Some(Source { path: path.to_owned(), text: text.strip_prefix('\u{feff}').unwrap_or(text).into() })
    }

    /// Where the value of an entry stands, by the keys that lead to it.
    pub fn of_value(&self, path: &str, keys: &[&str]) -> Option<Found> {
        let source = self.source(path)?;
        let tree = Tree::of(&source.text)?;
        let slot = &tree.slots[find(&tree, keys)?];
        let place = tree.place(slot.value, slot.end - slot.value);
        Some((source, place))
    }

    /// Where the key of an entry stands.
    pub fn of_key(&self, path: &str, keys: &[&str]) -> Option<Found> {
        let source = self.source(path)?;
        let tree = Tree::of(&source.text)?;
        let slot = &tree.slots[find(&tree, keys)?];
        let place = tree.place(slot.start, slot.key_length);
        Some((source, place))
    }

    /// Where an item of a list stands, by its text.
    pub fn of_item(&self, path: &str, keys: &[&str], item: &str) -> Option<Found> {
        let source = self.source(path)?;
        let tree = Tree::of(&source.text)?;
        let list = find(&tree, keys)?;
        let text = |from: usize, to: usize| source.text.chars().skip(from).take(to - from).collect::<String>();
        let slot = tree.children(list).find(|slot| text(slot.value, slot.end).trim_matches(['"', '\'']) == item)?;
        let place = tree.place(slot.value, slot.end - slot.value);
        Some((source, place))
    }

    /// Where an image's reference stands, of which the line is known; all of the line, if it is not found there.
    pub fn of_reference(&self, path: &str, line: usize, reference: &ImageReference) -> Option<Found> {
        let source = self.source(path)?;
        let text = source.text.lines().nth(line.checked_sub(1)?)?;
        let mut parts = text.split([' ', '\t', '"', '\'', ',', '{', '}']).filter(|part| !part.is_empty());
        let part = parts.rfind(|part| part.parse().is_ok_and(|found: ImageReference| found == *reference));
        let place = match part {
            Some(part) => {
                let start = part.as_ptr().addr() - text.as_ptr().addr();
                let quote = |c: char| matches!(c, '"' | '\'');
                let before = text.get(..start).unwrap_or_default();
                // Quotes belong to a value's place.
                let before = before.strip_suffix(quote).unwrap_or(before);
                let after = text.get(start + part.len()..).unwrap_or_default().starts_with(quote);
                let start = before.chars().count();
                let length = text.chars().skip(start).take_while(|c| quote(*c)).count() + part.chars().count();
                Place { line, column: start + 1, length: length + usize::from(after) }
            }
            None => Place { line, column: 0, length: 0 },
        };
        Some((source, place))
    }

    /// Puts a finding at a place, or else only into its file.
    pub fn put(&self, problem: Problem, path: &str, place: Option<Found>) -> Problem {
        match place {
            Some((source, place)) => problem.at(&source, place.line, place.column, place.length),
            None => problem.in_file(path),
        }
    }
}

/// The entry that keys lead to from the document's root.
fn find(tree: &Tree, keys: &[&str]) -> Option<usize> {
    keys.iter().try_fold(0, |parent, key| {
        tree.slots.iter().position(|slot| slot.parent == Some(parent) && slot.key.as_deref() == Some(key))
    })
}
