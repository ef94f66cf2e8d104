//! References that may have moved, as an event reports: they are due at once, whatever their refresh is.

use super::Memory;
use crate::model::{news::Moved, registries::Registries, resolution::Lookup};

impl Memory {
    /// Makes the references that these tags concern due; how many. Those that failed do not wait either: perhaps the
    /// image is there only now.
    pub fn suspect(&mut self, moved: impl IntoIterator<Item = Moved>) -> usize {
        let moved: Vec<Moved> = moved.into_iter().collect();
        if moved.is_empty() {
            return 0;
        }
        let none = Registries::default();
        let registries = self.client.as_ref().map_or(&none, |(registries, _)| registries);
        let concerned = |key: &Lookup| moved.iter().any(|tag| tag.concerns(&key.reference, registries));
        let now = self.started.elapsed();
        let before = self.answered.len();
        // What names a digest and was answered cannot move.
        self.answered.retain(|key, _| key.reference.digest().is_some() || !concerned(key));
        let mut count = before - self.answered.len();
        for (key, failed) in &mut self.failed {
            if failed.again > now && concerned(key) {
                failed.again = now;
                count += 1;
            }
        }
        if count > 0 {
            self.next_due = Some(now);
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stages::lock::testing::{answers, key, unavailable};

    #[test]
    fn only_what_is_concerned_is_due() {
        let pinned = format!("quay.io/a/pinned@sha256:{}", "0".repeat(64));
        let mut memory = Memory::default();
        memory.answered(&answers(&["quay.io/a/b:1=one", "quay.io/a/b:2=two", &format!("{pinned}=three")]));
        memory.answered(&[(key("quay.io/a/missing:1"), Err(unavailable("quay.io/a/missing:1")))].into());
        let tag = |path: &str, tag: &str| Moved::new(None, path, tag);
        assert_eq!(memory.suspect([]), 0);
        assert_eq!(memory.suspect(tag("a/other", "1")), 0);
        assert_eq!(memory.suspect(tag("a/pinned", "1")), 0);
        assert_eq!(memory.until_due(), None);
        assert_eq!(memory.suspect([tag("a/b", "1"), tag("a/missing", "1")].into_iter().flatten()), 2);
        assert!(memory.until_due().is_some_and(|wait| wait.is_zero()));
        assert!(
            memory.answered.contains_key(&key("quay.io/a/b:2")) && !memory.answered.contains_key(&key("quay.io/a/b:1"))
        );
        assert_eq!(memory.suspect(tag("a/b", "1")), 0, "it is due already");
    }
}
