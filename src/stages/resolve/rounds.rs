//! The rounds of questions that a set of lookups needs: the digest first, then evidence about a digest that is new.

use std::collections::BTreeMap;

use crate::model::{
    digest::Digest,
    failure::Failure,
    resolution::{Answer, Lookup, Outcome, Question, Resolution, ResolvedImage},
};

/// A lookup that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// What to look up.
    pub lookup: Lookup,
    /// The digest about which the lock has all evidence.
    pub known: Option<Digest>,
}

/// Lookups on their way to a resolution.
#[derive(Debug, Default)]
pub struct Rounds {
    open: BTreeMap<Lookup, Open>,
    done: Resolution,
    not_asked: usize,
}

/// A lookup without a result yet.
#[derive(Debug)]
struct Open {
    known: Option<Digest>,
    /// The answer of the first round; evidence about it is asked next.
    found: Option<ResolvedImage>,
    /// A digest about which there was no evidence: perhaps the tag has moved on meanwhile.
    lost: Option<(Digest, Failure)>,
}

/// What a resolving step found.
#[derive(Debug, Default)]
pub struct Found {
    /// The results.
    pub resolution: Resolution,
    /// How many lookups wait for the next pass because their registry used up its time.
    pub not_asked: usize,
}

impl Rounds {
    /// Nothing asked yet. A lookup that is due twice is asked once; those who know different digests need all evidence.
    pub fn new(due: impl IntoIterator<Item = Due>) -> Self {
        let mut rounds = Self::default();
        for Due { lookup, known } in due {
            let open =
                rounds.open.entry(lookup).or_insert_with(|| Open { known: known.clone(), found: None, lost: None });
            if open.known != known {
                open.known = None;
            }
        }
        rounds
    }

    /// The questions of the next round, in order; none when every lookup has its result.
    pub fn questions(&self) -> Vec<Question> {
        let question = |(lookup, open): (&Lookup, &Open)| match &open.found {
            None => Question::Digest(lookup.clone()),
            Some(found) => Question::Evidence { lookup: lookup.clone(), digest: found.digest.clone() },
        };
        self.open.iter().map(question).collect()
    }

    /// Takes what became of one question.
    pub fn take(&mut self, question: &Question, outcome: Outcome) {
        let lookup = question.lookup();
        let Some(mut open) = self.open.remove(lookup) else { return };
        match outcome {
            Outcome::NotAsked => self.not_asked += 1,
            Outcome::Failed(failure) => match open.found.take() {
                // A tag may have moved since, and the digest be gone: it is asked once more.
                Some(found) if open.lost.is_none() && lookup.reference.digest().is_none() => {
                    open.lost = Some((found.digest, failure));
                    self.open.insert(lookup.clone(), open);
                }
                _ => self.finish(lookup, Err(failure)),
            },
            Outcome::Answered(Answer::Digest { digest, warnings }) => match open.lost.take() {
                Some((lost, failure)) if lost == digest => self.finish(lookup, Err(failure)),
                lost => {
                    open.lost = lost;
                    let is_known = open.known.as_ref() == Some(&digest);
                    let found = ResolvedImage { digest, evidence: None, warnings };
                    if is_known {
                        self.finish(lookup, Ok(found));
                    } else {
                        open.found = Some(found);
                        self.open.insert(lookup.clone(), open);
                    }
                }
            },
            Outcome::Answered(Answer::Evidence(evidence)) => {
                if let Some(found) = open.found {
                    self.finish(lookup, Ok(ResolvedImage { evidence: Some(evidence), ..found }));
                }
            }
        }
    }

    /// What was found. Lookups that are still open wait for the next pass.
    pub fn found(self) -> Found {
        Found { resolution: self.done, not_asked: self.not_asked + self.open.len() }
    }

    fn finish(&mut self, lookup: &Lookup, result: Result<ResolvedImage, Failure>) {
        self.done.insert(lookup.clone(), result);
    }
}

#[cfg(test)]
mod tests {
    use super::{Due, Rounds};
    use crate::{
        model::{
            digest::Digest,
            resolution::{Answer, ContentKind, Evidence, Outcome, Question},
        },
        stages::lock::testing::{digest, key, unavailable},
    };

    const TAG: &str = "quay.io/x/a:1";

    fn rounds(reference: &str, known: Option<Digest>) -> Rounds {
        Rounds::new([Due { lookup: key(reference), known }])
    }

    fn named(word: &str) -> Outcome {
        Outcome::Answered(Answer::Digest { digest: digest(word), warnings: Vec::new() })
    }

    fn evidence() -> Outcome {
        let evidence = Evidence { media_type: String::new(), kind: ContentKind::Image, platforms: Vec::new() };
        Outcome::Answered(Answer::Evidence(evidence))
    }

    fn failed() -> Outcome {
        Outcome::Failed(unavailable(TAG))
    }

    fn about(word: &str) -> Question {
        Question::Evidence { lookup: key(TAG), digest: digest(word) }
    }

    /// Takes these outcomes in order; the questions that were asked.
    fn play(rounds: &mut Rounds, outcomes: impl IntoIterator<Item = Outcome>) -> Vec<Question> {
        let mut asked = Vec::new();
        for outcome in outcomes {
            let question = rounds.questions().pop().unwrap();
            rounds.take(&question, outcome);
            asked.push(question);
        }
        assert_eq!(rounds.questions(), []);
        asked
    }

    #[test]
    fn a_digest_that_is_locked_needs_no_evidence() {
        let mut same = rounds(TAG, Some(digest("one")));
        assert_eq!(play(&mut same, [named("one")]), [Question::Digest(key(TAG))]);
        assert_eq!(same.found().resolution[&key(TAG)].as_ref().unwrap().evidence, None);
        let mut new = rounds(TAG, Some(digest("one")));
        assert_eq!(play(&mut new, [named("two"), evidence()]), [Question::Digest(key(TAG)), about("two")]);
        assert!(new.found().resolution[&key(TAG)].as_ref().unwrap().evidence.is_some());
        // Someone else knows nothing.
        let due = |known| Due { lookup: key(TAG), known };
        let mut both = Rounds::new([due(Some(digest("one"))), due(None)]);
        assert_eq!(play(&mut both, [named("one"), evidence()]).len(), 2);
    }

    #[test]
    fn a_tag_that_moves_between_the_rounds_is_asked_again_once() {
        let mut moved = rounds(TAG, None);
        let asked = play(&mut moved, [named("one"), failed(), named("two"), evidence()]);
        assert_eq!(asked[1..], [about("one"), Question::Digest(key(TAG)), about("two")]);
        assert_eq!(moved.found().resolution[&key(TAG)].as_ref().unwrap().digest, digest("two"));
        for outcomes in [vec![named("one")], vec![failed()], vec![named("two"), failed()]] {
            let mut gone = rounds(TAG, None);
            play(&mut gone, [named("one"), failed()].into_iter().chain(outcomes));
            assert!(gone.found().resolution[&key(TAG)].is_err());
        }
    }

    #[test]
    fn what_is_not_asked_is_neither_an_answer_nor_a_failure() {
        let mut late = rounds(TAG, None);
        play(&mut late, [named("one"), Outcome::NotAsked]);
        let found = late.found();
        assert!(found.resolution.is_empty());
        assert_eq!(found.not_asked, 1);
    }
}
