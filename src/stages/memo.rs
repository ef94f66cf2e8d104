//! What was made last, and of what, so that only what differs is recreated.

use std::{collections::BTreeMap, mem};

/// Values by key, with the inputs that they were made of. What is not asked for between one [`begin`](Self::begin) and the
/// next is forgotten.
pub struct Memo<K, I, T> {
    previous: BTreeMap<K, (I, T)>,
    current: BTreeMap<K, (I, T)>,
}

impl<K, I, T> Default for Memo<K, I, T> {
    fn default() -> Self {
        Self { previous: BTreeMap::new(), current: BTreeMap::new() }
    }
}

impl<K: Ord + Clone, I, T: Clone> Memo<K, I, T> {
    /// From here on values are asked for again, each at most once.
    pub fn begin(&mut self) {
        self.previous = mem::take(&mut self.current);
    }

    /// The previous value if it was made of the same inputs, else a new one. `own` gives the inputs to keep with it.
    pub fn get(
        &mut self,
        key: &K,
        is_same: impl FnOnce(&I) -> bool,
        own: impl FnOnce() -> I,
        make: impl FnOnce() -> T,
    ) -> T {
        let previous = self.previous.remove(key).filter(|(inputs, _)| is_same(inputs));
        let entry = previous.unwrap_or_else(|| (own(), make()));
        let value = entry.1.clone();
        self.current.insert(key.clone(), entry);
        value
    }
}
