//! What is remembered where lock changes are proposed: answers that are not in the tracked branch yet, and the proposal.

use std::collections::{BTreeMap, BTreeSet};

use super::Memory;
use crate::model::{
    batch::succeeded,
    digest::Digest,
    lock::Lock,
    resolution::{Lookup, Resolution, ResolvedImage},
};

/// Answers that moved something, each with the digests that the lock had for the reference then.
pub(super) type Moved = BTreeMap<Lookup, (ResolvedImage, BTreeSet<Digest>)>;

/// What was proposed last, and where it waits.
#[derive(Clone, Debug)]
pub struct Proposed {
    /// Equal for equal proposals on the same commit.
    pub fingerprint: String,
    /// The pull request or branch; none when there was nothing to propose.
    pub place: Option<String>,
}

impl Memory {
    /// All answers that are not in the tracked branch yet, those of this pass included: what is proposed must not shrink
    /// only because a reference is not due now, or its registry is away. An answer counts as long as the lock that it was
    /// compared with; once that has moved, the reference is asked again.
    pub fn moved(&mut self, resolution: &Resolution, lock: &Lock) -> Resolution {
        let (answered, moved) = (&mut self.answered, &mut self.moved);
        moved.retain(|key, (_, before)| {
            let stands = *before == locked(lock, key);
            if !stands {
                answered.remove(key);
            }
            stands
        });
        for (key, answer) in resolution {
            match answer {
                Ok(image) if image.evidence.is_some() => {
                    moved.insert(key.clone(), (image.clone(), locked(lock, key)));
                }
                // It names again what the lock holds.
                Ok(_) => {
                    moved.remove(key);
                }
                Err(_) => {}
            }
        }
        let mut all = resolution.clone();
        all.extend(moved.iter().map(|(key, (image, _))| (key.clone(), Ok(image.clone()))));
        all
    }

    /// Where that very proposal waits; none when it has not been made by this controller.
    pub fn proposed(&self, fingerprint: &str) -> Option<&Proposed> {
        self.proposed.as_ref().filter(|proposed| proposed.fingerprint == fingerprint)
    }

    /// Remembers what was proposed.
    pub fn has_proposed(&mut self, proposed: Option<Proposed>) {
        self.proposed = proposed;
    }
}

/// The digests under which the lock has that reference.
fn locked(lock: &Lock, key: &Lookup) -> BTreeSet<Digest> {
    let entries = succeeded(lock).flat_map(|(_, lockfile)| lockfile.images.values());
    entries.filter(|entry| entry.reference == key.reference).map(|entry| entry.digest.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Memory;
    use crate::{
        model::{lock::Lock, resolution::Resolution},
        stages::lock::testing::{answers, batch, environment, index, key, locked},
    };

    #[test]
    fn a_proposal_does_not_shrink_until_its_lock_moves() {
        let reference = "quay.io/a:1";
        let environments = batch([environment("research/geo", &["a=quay.io/a:1"])]);
        let lock: Lock = locked(&environments, &answers(&["quay.io/a:1=old"]));
        let mut memory = Memory::default();
        let moved = answers(&["quay.io/a:1=new"]);
        memory.answered(&moved);
        assert_eq!(memory.moved(&moved, &lock), moved);
        // Not due now, or the registry is away: it still stands.
        assert_eq!(memory.moved(&Resolution::new(), &lock), moved);
        assert_eq!(memory.moved(&answers(&["quay.io/a:1=!"]), &lock), moved);
        // It names again what the lock holds.
        let mut same = index("old", &["linux/amd64"]);
        same.evidence = None;
        let back = Resolution::from([(key(reference), Ok(same))]);
        assert_eq!(memory.moved(&back, &lock), back);
        assert_eq!(memory.moved(&Resolution::new(), &lock), Resolution::new());
        // Another writer changes the lock: what was answered before that is asked again.
        memory.moved(&moved, &lock);
        let other = locked(&environments, &answers(&["quay.io/a:1=other"]));
        assert_eq!(memory.moved(&Resolution::new(), &other), Resolution::new());
        assert!(memory.answered.is_empty());
    }
}
