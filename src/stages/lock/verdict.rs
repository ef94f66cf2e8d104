//! Whether an image may take a new answer: not against a person who took it back, and not back at the first word.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::past::{ImagePast, Past};
use crate::model::{
    digest::Digest,
    environment::{Environment, Image},
    failure::{Category, Failure, Problem},
    lock::{Hold, HoldOrigin, LockedImage, Waiting},
    resolution::{Lookup, ResolvedImage},
};

/// What may keep an image where it is, in addition to its answer. By default nothing does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Guards<'a> {
    /// What the lock's history says.
    pub past: History<'a>,
    /// How long each question has had its present answer; none takes every answer at once.
    pub steadiness: Option<&'a Steadiness>,
}

/// What is known of the lock's history.
#[derive(Clone, Copy, Debug, Default)]
pub enum History<'a> {
    /// There is none, or nothing that is asked of it matters.
    #[default]
    Irrelevant,
    /// What the commits say.
    Read(&'a Past),
    /// It cannot be read. A person may have reverted the lock: no image moves whose reference is the same.
    Unreadable(&'a Problem),
}

impl<'a> From<&'a Result<Past, Problem>> for History<'a> {
    fn from(read: &'a Result<Past, Problem>) -> Self {
        read.as_ref().map_or_else(Self::Unreadable, Self::Read)
    }
}

/// How long each question has had its present answer, as far as this controller knows.
pub type Steadiness = BTreeMap<Lookup, Steady>;

/// How long a question has had its present answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steady {
    /// Between the first and the last time that it was given without another one in between.
    pub time: Duration,
    /// Whether it was given before someone else moved the lock away from it: then it is the registry that lags behind.
    pub lags: bool,
    /// The answer before it, if there was one.
    pub instead_of: Option<Digest>,
}

/// What becomes of an image's entry, before its answer is looked at.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It follows the answer.
    Free,
    /// It stays, held from now on.
    Hold(Box<LockedImage>),
    /// It stays until the answer is given again.
    Wait(Box<Waiting>),
}

/// An image, and what the lock and its registry have for it.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// Its environment.
    pub environment: &'a Environment,
    /// The image.
    pub image: &'a Image,
    /// Its entry in the lock.
    pub former: Option<&'a LockedImage>,
    /// Its question, where it has one.
    pub key: Option<&'a Lookup>,
    /// The answer to that, where it was asked.
    pub answer: Option<&'a Result<ResolvedImage, Failure>>,
}

/// Judges one image.
pub fn judge(case: &Case<'_>, guards: &Guards<'_>) -> Verdict {
    let &Case { environment, image, .. } = case;
    let Some(former) = case.former.filter(|former| former.hold.is_none()) else { return Verdict::Free };
    let past = match guards.past {
        History::Read(past) => past.get(&environment.id).and_then(|images| images.get(&image.name)),
        History::Irrelevant | History::Unreadable(_) => None,
    };
    if let Some(reason) = past.and_then(|past| past.reverted.clone()) {
        let origin = HoldOrigin::Revert { instead_of: image.reference.clone() };
        return Verdict::Hold(Box::new(LockedImage {
            hold: Some(Hold { reason, origin, until: None }),
            ..former.clone()
        }));
    }
    let Some((key, answer)) = case.other(former) else { return Verdict::Free };
    let wait = |reason: &str, hint: &str| {
        let (reference, now, then) = (&former.reference, former.digest.short(), answer.short());
        let message =
            format!("image `{}` stays at {reference} ({now}): its registry answers {then}, {reason}", image.name);
        let note = Problem::new(Category::Lock, message).hint(hint);
        Verdict::Wait(Box::new(Waiting { environment: environment.id.clone(), key: key.clone(), note }))
    };
    if let History::Unreadable(problem) = guards.past {
        let reason =
            format!("and the lock's history, which could tell of a revert, cannot be read: {}", problem.message);
        return wait(&reason, problem.hint.as_deref().unwrap_or("`larder hold` keeps what is locked"));
    }
    let Some(steadiness) = guards.steadiness else { return Verdict::Free };
    if past.is_some_and(|past| past.released) || !goes_back(former, past, answer) {
        return Verdict::Free;
    }
    reason_to_wait(environment, former, past, steadiness.get(key)).map_or(Verdict::Free, |reason| {
        let hint = "`larder lock --accept-earlier` takes it at once; `larder hold` keeps what is locked";
        wait(&format!("which it had before; {reason}"), hint)
    })
}

impl<'a> Case<'a> {
    /// The question and the digest that answers it, where that is another one than what is locked for the reference.
    fn other(&self, former: &LockedImage) -> Option<(&'a Lookup, &'a Digest)> {
        let digest = &self.answer?.as_ref().ok()?.digest;
        let is_other = former.reference == self.image.reference && *digest != former.digest;
        Some((self.key?, digest)).filter(|_| is_other)
    }
}

/// Whether the image had that digest before its present one.
fn goes_back(former: &LockedImage, past: Option<&ImagePast>, answer: &Digest) -> bool {
    let none = BTreeSet::new();
    former.previous.iter().any(|previous| previous.digest == *answer)
        || past.map_or(&none, |past| &past.former).contains(answer)
}

/// Why an answer that goes back is not taken yet.
///
/// The same answer has to be given a refresh apart. That alone would let two controllers, whose registries disagree for
/// good, undo each other forever: so an answer that was there before the lock moved away from it is never news, and one
/// that would undo a going back is only taken by who has seen its registry change its mind.
fn reason_to_wait(
    environment: &Environment,
    former: &LockedImage,
    past: Option<&ImagePast>,
    steady: Option<&Steady>,
) -> Option<String> {
    let refresh = environment.refresh;
    let Some(steady) = steady.filter(|steady| steady.time >= refresh || steady.lags) else {
        return Some(format!("it goes back when the registry answers the same again after a refresh ({refresh:?})"));
    };
    let saw_the_change = steady.instead_of.as_ref() == Some(&former.digest);
    if steady.lags {
        return Some(
            "the registry answered so before the lock moved, so it may be a mirror that lags behind".to_owned(),
        );
    }
    if past.is_some_and(|past| past.turned) && !saw_the_change {
        return Some("the lock has gone back and forth already, so registries may disagree".to_owned());
    }
    None
}
