//! The shape of a YAML text: where each entry of a mapping and each item of a list stands. Offsets count characters.

use serde_saphyr::granit_parser::{Event, Parser, Span, StructureStyle};

use super::located::Place;

/// Deeper ones are over the budget of every file.
const MAX_DEPTH: usize = 100;

/// The entries and items of a document, each after the one that it is part of. The first is the document itself.
pub struct Tree {
    /// All of them.
    pub slots: Vec<Slot>,
    lines: Vec<usize>,
}

/// An entry of a mapping, or an item of a list.
#[derive(Debug)]
pub struct Slot {
    /// What it is an entry or item of; none for the document itself.
    pub parent: Option<usize>,
    /// The key of an entry.
    pub key: Option<String>,
    /// Where its key or dash begins.
    pub start: usize,
    /// Where its value begins.
    pub value: usize,
    /// Behind its last character.
    pub end: usize,
    /// Characters of its key.
    pub key_length: usize,
    /// Whether commas part it from its neighbours.
    pub flow: bool,
    /// Whether its value is a mapping.
    pub mapping: bool,
}

/// A mapping or list that has not ended yet.
struct Open {
    slot: usize,
    mapping: bool,
    flow: bool,
    key: Option<(String, Span)>,
}

impl Tree {
    /// Reads a document; none for what is no YAML, is nested too deep, or has keys that are no scalars.
    pub fn of(text: &str) -> Option<Self> {
        let characters: Vec<char> = text.chars().collect();
        let ends = characters.iter().enumerate().filter(|(_, c)| **c == '\n').map(|(index, _)| index + 1);
        let mut tree = Self { slots: Vec::new(), lines: std::iter::once(0).chain(ends).collect() };
        let mut open: Vec<Open> = Vec::new();
        for event in Parser::new_from_str(text) {
            let (event, span) = event.ok()?;
            if open.len() > MAX_DEPTH {
                return None;
            }
            match event {
                Event::Scalar(key, ..) if expects_key(&open) => open.last_mut()?.key = Some((key.into_owned(), span)),
                Event::Alias(_) if expects_key(&open) => open.last_mut()?.key = Some((String::new(), span)),
                Event::Scalar(..) | Event::Alias(_) => {
                    tree.add(&mut open, span, &characters, false);
                }
                Event::MappingStart(..) | Event::SequenceStart(..) if expects_key(&open) => return None,
                Event::MappingStart(style, ..) => {
                    let slot = tree.add(&mut open, span, &characters, true);
                    open.push(Open { slot, mapping: true, flow: style == StructureStyle::Flow, key: None });
                }
                Event::SequenceStart(style, ..) => {
                    let slot = tree.add(&mut open, span, &characters, false);
                    open.push(Open { slot, mapping: false, flow: style == StructureStyle::Flow, key: None });
                }
                Event::MappingEnd | Event::SequenceEnd => {
                    let ended = open.pop()?;
                    // The end of a block is only noticed where the next one begins.
                    let end = if ended.flow { span.end.index() } else { tree.slots[ended.slot].end };
                    tree.extend(ended.slot, end);
                }
                _ => {}
            }
        }
        (!tree.slots.is_empty()).then_some(tree)
    }

    fn add(&mut self, open: &mut [Open], span: Span, characters: &[char], mapping: bool) -> usize {
        let (value, end) = (span.start.index(), span.end.index());
        let top = open.last_mut();
        let (parent, flow) = top.as_ref().map_or((None, false), |top| (Some(top.slot), top.flow));
        let key = top.and_then(|top| top.key.take());
        let start = match (&key, parent) {
            (Some((_, span)), _) => span.start.index(),
            (None, Some(parent)) if !flow => dash(characters, self.slots[parent].start, value),
            (None, _) => value,
        };
        let key_length = key.as_ref().map_or(1, |(_, span)| span.len());
        let key = key.map(|(key, _)| key);
        // An empty value is where the colon before it is.
        let end = match characters.get(value) {
            Some('[' | '{') => value + 1,
            Some(':') if end <= value => value + 1,
            _ => end.max(value),
        };
        self.slots.push(Slot { parent, key, start, value, end, key_length, flow, mapping });
        let index = self.slots.len() - 1;
        self.extend(index, end);
        index
    }

    /// Moves the end of a slot, and of all that it is part of.
    fn extend(&mut self, slot: usize, end: usize) {
        let mut next = Some(slot);
        while let Some(index) = next {
            let slot = &mut self.slots[index];
            slot.end = slot.end.max(end);
            next = slot.parent;
        }
    }

    /// The slot itself and what it is part of, from the inside out.
    pub fn ancestors(&self, slot: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(slot), |index| self.slots[*index].parent)
    }

    /// The parts of a slot.
    pub fn children(&self, slot: usize) -> impl Iterator<Item = &Slot> {
        let below = self.slots[slot + 1..].iter().take_while(move |other| other.parent >= Some(slot));
        below.filter(move |child| child.parent == Some(slot))
    }

    /// The offset of a place.
    pub fn offset(&self, place: Place) -> Option<usize> {
        let line = self.lines.get(place.line.checked_sub(1)?)?;
        Some(line + place.column.saturating_sub(1))
    }

    /// The place of an offset.
    pub fn place(&self, offset: usize, length: usize) -> Place {
        let line = self.lines.partition_point(|start| *start <= offset);
        let start = line.checked_sub(1).and_then(|index| self.lines.get(index)).copied().unwrap_or_default();
        Place { line, column: offset - start + 1, length }
    }

    /// The innermost slot that holds an offset.
    pub fn innermost(&self, offset: usize) -> Option<usize> {
        self.slots.iter().rposition(|slot| (slot.start..=slot.end).contains(&offset))
    }

    /// The entry whose key begins there.
    pub fn at_key(&self, offset: usize) -> Option<usize> {
        self.slots.iter().position(|slot| slot.key.is_some() && slot.start == offset)
    }

    /// The line of an earlier entry of the same mapping with the same key as the one whose key begins there.
    pub fn first_line(&self, offset: usize) -> Option<usize> {
        let second = &self.slots[self.at_key(offset)?];
        let first = self.children(second.parent?).find(|slot| slot.key == second.key)?;
        (first.start != offset).then(|| self.place(first.start, 1).line)
    }

    /// The outermost slot whose value begins there.
    pub fn at_value(&self, offset: usize) -> Option<usize> {
        self.slots.iter().position(|slot| slot.value == offset)
    }
}

fn expects_key(open: &[Open]) -> bool {
    open.last().is_some_and(|top| top.mapping && top.key.is_none())
}

/// Where the dash before an item is.
fn dash(characters: &[char], from: usize, value: usize) -> usize {
    let blank = |index: usize| characters.get(index).is_none_or(|c| c.is_whitespace());
    let is_dash = |index: &usize| {
        characters.get(*index) == Some(&'-') && blank(index + 1) && index.checked_sub(1).is_none_or(blank)
    };
    (from..value).rev().find(is_dash).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::{Place, Tree};

    /// Each slot's text from its start to its end.
    fn texts(text: &str) -> Vec<String> {
        let tree = Tree::of(text).unwrap();
        let part = |slot: &super::Slot| text.chars().skip(slot.start).take(slot.end - slot.start).collect();
        tree.slots.iter().skip(1).map(part).collect()
    }

    #[test]
    fn every_part_has_its_text() {
        let cases: [(&str, &[&str]); 9] = [
            ("a: 1\nb: 2 # c\n", &["a: 1", "b: 2"]),
            ("a: {b: 1, 'c': [x, \"é\"]}\n", &["a: {b: 1, 'c': [x, \"é\"]}", "b: 1", "'c': [x, \"é\"]", "x", "\"é\""]),
            ("a:\n- x\n-  y\n", &["a:\n- x\n-  y", "- x", "-  y"]),
            ("a:\n  - b: 1\n    c: 2\n\n# d\n", &["a:\n  - b: 1\n    c: 2", "- b: 1\n    c: 2", "b: 1", "c: 2"]),
            ("a: &x 1\nb: *x\n", &["a: &x 1", "b: *x"]),
            ("a:\nb: []\n", &["a:", "b: []"]),
            ("- - x\n  - y\n", &["- - x\n  - y", "- x", "- y"]),
            ("a: |\n  x\n\n  y\nb: 1\n", &["a: |\n  x\n\n  y\n", "b: 1"]),
            ("é: 1\n- ", &[]),
        ];
        for (text, expected) in &cases[..8] {
            assert_eq!(texts(text), *expected, "{text:?}");
        }
        assert!(Tree::of(cases[8].0).is_none());
        assert!(Tree::of("? {a: 1}\n: 2\n").is_none());
        assert!(Tree::of("").is_none());
    }

    #[test]
    fn the_first_of_two_keys_is_found() {
        let cases = [
            ("a: 1\nb: 2\na: 3\n", (3, 1), Some(1)),
            ("x:\n- image: a\n- image: b\n  name: c\n  image: d\n", (5, 3), Some(3)),
            ("x: {a: 1,\n  \"a\": 2}\n", (2, 3), Some(1)),
            ("a: 1\n", (1, 1), None),
            ("a: 1\n", (9, 9), None),
        ];
        for (text, (line, column), expected) in cases {
            let tree = Tree::of(text).unwrap();
            let offset = tree.offset(Place { line, column, length: 1 });
            assert_eq!(offset.and_then(|offset| tree.first_line(offset)), expected, "{text:?}");
        }
    }

    #[test]
    fn what_is_nested_too_deep_is_refused_at_once() {
        assert!(Tree::of(&"[".repeat(100_000)).is_none());
        assert!(Tree::of("a: [").is_none());
    }

    #[test]
    fn places_and_offsets_agree() {
        let tree = Tree::of("é: 1\nb:\n- c\n").unwrap();
        for offset in 0..11 {
            assert_eq!(tree.offset(tree.place(offset, 1)), Some(offset));
        }
    }
}
