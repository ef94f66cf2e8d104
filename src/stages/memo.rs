//! What was made last, and of what, so that only what differs is made anew.

use std::{collections::BTreeMap, mem};

/// Values by key, with the inputs that they were made of. What is not asked for between [`begin`](Self::begin) and
/// [`end`](Self::end) is forgotten, so it grows no larger than what was made last.
pub struct Memo<K, I, T> {
    former: BTreeMap<K, (I, T)>,
    current: BTreeMap<K, (I, T)>,
}

impl<K, I, T> Default for Memo<K, I, T> {
    fn default() -> Self {
        Self { former: BTreeMap::new(), current: BTreeMap::new() }
    }
}

impl<K: Ord + Clone, I, T: Clone> Memo<K, I, T> {
    /// From here on values are asked for once more, each at most once.
    pub fn begin(&mut self) {
        self.former = mem::take(&mut self.current);
    }

    /// All were asked for.
    pub fn end(&mut self) {
        self.former.clear();
    }

    /// The former value if it was made of the same inputs, else a new one. `own` gives the inputs to keep beside that.
    pub fn get(
        &mut self,
        key: &K,
        is_same: impl FnOnce(&I) -> bool,
        own: impl FnOnce() -> I,
        make: impl FnOnce() -> T,
    ) -> T {
        let former = self.former.remove(key).filter(|(inputs, _)| is_same(inputs));
        let entry = former.unwrap_or_else(|| (own(), make()));
        let value = entry.1.clone();
        self.current.insert(key.clone(), entry);
        value
    }
}
