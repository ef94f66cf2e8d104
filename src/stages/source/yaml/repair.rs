//! All that is wrong with a text's structure, not only the first: what is wrong is blanked out, and the rest is read
//! again. Blanks take the same room, so that every place stays where it was.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::model::failure::{Problem, Source};

use super::{
    super::{located::Place, suggest, tree::Tree},
    required,
};

/// A text with blanks where something was wrong.
pub struct Repair {
    tree: Tree,
    characters: Vec<char>,
    /// What was blanked out, and all that it was part of.
    touched: BTreeSet<usize>,
    removed: BTreeSet<usize>,
}

/// What an error of the YAML library is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The key at its place.
    Key,
    /// The value at its place.
    Value,
    /// One word of a few; what else is in the same item may only make sense with it.
    Word,
    /// A mapping somewhere around its place.
    Missing,
    /// The file as a whole.
    File,
}

impl Repair {
    /// Begins with a text; none when its shape is too odd to be repaired.
    pub fn new(source: &Source) -> Option<Self> {
        let tree = Tree::of(&source.text)?;
        let characters = source.text.chars().collect();
        Some(Self { tree, characters, touched: BTreeSet::new(), removed: BTreeSet::new() })
    }

    /// The text as it is now.
    pub fn text(&self) -> String {
        self.characters.iter().collect()
    }

    /// Whether what is found at a place may only follow from what was blanked out before.
    pub fn hides(&self, place: Place) -> bool {
        let slot = self.tree.offset(place).and_then(|offset| self.tree.innermost(offset));
        slot.is_some_and(|slot| self.touched.contains(&slot))
    }

    /// Blanks out what is wrong; false when there is nothing left that could be.
    pub fn remove_fault(&mut self, fault: Fault, place: Place) -> bool {
        let Some(offset) = self.tree.offset(place) else { return false };
        let found = match fault {
            Fault::Key => self.tree.at_key(offset),
            Fault::Value | Fault::Word => self.tree.at_value(offset),
            Fault::Missing => None,
            Fault::File => return false,
        };
        let Some(mut slot) = found.or_else(|| self.tree.innermost(offset)) else { return false };
        if fault == Fault::Word {
            let is_item = |index: &usize| self.tree.slots[*index].key.is_none() && *index > 0;
            slot = self.tree.ancestors(slot).find(is_item).unwrap_or(slot);
        }
        // All of it is gone already: what holds it cannot do without.
        let left = self.tree.ancestors(slot).find(|slot| !self.removed.contains(slot));
        left.is_some_and(|slot| self.remove(slot))
    }

    /// Every field that is missing, as `problem` puts it, and then blanks out the mappings that cannot do without.
    /// False when that is all there can be said about the text.
    pub fn remove_incomplete(
        &mut self,
        schema: &Value,
        problems: &mut Vec<Problem>,
        problem: impl Fn(Place, &str) -> Problem,
    ) -> bool {
        let mut incomplete = BTreeSet::new();
        for (mapping, fields) in required::missing(schema, &self.tree) {
            if self.is_removed(mapping) {
                continue;
            }
            incomplete.insert(mapping);
            let place = self.place_of_keys(mapping);
            // Its misspelled key has been told of.
            let misspelled = |field: &str| {
                let keys =
                    self.removed.iter().map(|slot| &self.tree.slots[*slot]).filter(|slot| slot.parent == Some(mapping));
                keys.filter_map(|slot| slot.key.as_deref()).any(|key| suggest::closest(key, [field]).is_some())
            };
            let fields = fields.into_iter().filter(|field| !misspelled(field));
            problems.extend(fields.map(|field| problem(place, &field)));
        }
        for slot in &self.removed {
            let slot = &self.tree.slots[*slot];
            let (Some(key), Some(mapping)) = (&slot.key, slot.parent) else { continue };
            if !self.is_removed(mapping) && required::is_required(schema, &self.tree, mapping, key) {
                incomplete.insert(mapping);
            }
        }
        !incomplete.is_empty() && incomplete.into_iter().all(|slot| self.remove(slot))
    }

    fn is_removed(&self, slot: usize) -> bool {
        self.tree.ancestors(slot).any(|slot| self.removed.contains(&slot))
    }

    /// The last key of a mapping, or where an empty one is.
    fn place_of_keys(&self, mapping: usize) -> Place {
        let last = self.tree.children(mapping).last();
        let (offset, length) = last.map_or((self.tree.slots[mapping].value, 1), |slot| (slot.start, slot.key_length));
        self.tree.place(offset, length)
    }

    /// Blanks out a slot, with a comma that parted it from its neighbour.
    fn remove(&mut self, index: usize) -> bool {
        let slot = &self.tree.slots[index];
        if index == 0 || !self.removed.insert(index) {
            return false;
        }
        let end = slot.end.min(self.characters.len());
        let comma = if slot.flow {
            let is_text = |index: &usize| !self.characters[*index].is_whitespace();
            let after = (end..self.characters.len()).find(is_text).filter(|index| self.characters[*index] == ',');
            let before = || (0..slot.start).rev().find(is_text).filter(|index| self.characters[*index] == ',');
            after.or_else(before)
        } else {
            None
        };
        for character in (slot.start.min(end)..end).chain(comma) {
            if let Some(character) = self.characters.get_mut(character).filter(|c| !c.is_whitespace()) {
                *character = ' ';
            }
        }
        self.touched.extend(self.tree.ancestors(index));
        true
    }
}
