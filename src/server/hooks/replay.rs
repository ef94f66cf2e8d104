//! Deliveries that were seen: a second one of the same changes nothing.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Mutex, PoisonError},
};

use sha2::{Digest as _, Sha256};

use super::sender::Sender;

/// Deliveries that are remembered at most, the latest ones.
const REMEMBERED: usize = 4096;

/// What deliveries are known by: hashes of their identities and of signed bodies.
type Mark = [u8; 32];

/// The latest deliveries.
#[derive(Default)]
pub(super) struct Seen(Mutex<(HashSet<Mark>, VecDeque<Mark>)>);

impl Seen {
    /// Whether none of these was there before. They are from now on.
    pub(super) fn is_new(&self, marks: &[Mark]) -> bool {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, order) = &mut *seen;
        let is_new = marks.iter().all(|mark| !known.contains(mark));
        for mark in marks {
            if known.insert(*mark) {
                order.push_back(*mark);
            }
        }
        while order.len() > REMEMBERED {
            if let Some(oldest) = order.pop_front() {
                known.remove(&oldest);
            }
        }
        is_new
    }
}

/// The mark of a delivery's identity.
pub(super) fn of_delivery(sender: Sender, id: &str) -> Mark {
    Sha256::new().chain_update(sender.as_str()).chain_update([0]).chain_update(id).finalize().into()
}

/// The mark of what was signed: the bytes before the body, and the body's hash. Two pushes may have the same body when a
/// branch goes back and forth; where identity and time are signed as well, they are two all the same.
pub(super) fn of_signed(before: &[u8], body: &Mark) -> Mark {
    Sha256::new().chain_update(body).chain_update(before).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::{REMEMBERED, Seen, Sender, of_delivery, of_signed};

    #[test]
    fn the_latest_are_remembered() {
        let seen = Seen::default();
        let mark = |number: usize| of_delivery(Sender::GitHub, &number.to_string());
        assert!(seen.is_new(&[mark(0), mark(1)]));
        assert!(!seen.is_new(&[mark(0)]) && !seen.is_new(&[mark(1), mark(2)]) && !seen.is_new(&[mark(2)]));
        assert!(seen.is_new(&[of_delivery(Sender::Gitea, "0")]), "senders have identities of their own");
        let signed = |before: &str, body: u8| of_signed(before.as_bytes(), &[body; 32]);
        assert!(
            seen.is_new(&[signed("7.8.", 1)]) && seen.is_new(&[signed("9.8.", 1)]) && seen.is_new(&[signed("", 1)])
        );
        assert!(!seen.is_new(&[signed("7.8.", 1)]) && !seen.is_new(&[signed("", 1)]));
        assert!(seen.is_new(&[]));
        (3..REMEMBERED + 10).for_each(|number| assert!(seen.is_new(&[mark(number)])));
        assert!(seen.is_new(&[mark(0)]), "the oldest are forgotten");
        assert!(!seen.is_new(&[mark(REMEMBERED + 9)]));
    }
}
