//! Whether an image may take a new answer: not against a person who took it back, and not back at the first word.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::past::{ImagePast, Kind, Past};
use crate::model::{
    digest::Digest,
    environment::{Environment, Image},
    failure::{Category, Failure, Problem},
    lock::{LockedImage, Waiting},
    resolution::{Lookup, ResolvedImage},
};

/// What is known beside the answers. By default nothing is, and every answer is taken at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Evidence<'a> {
    /// What the lock's history says.
    pub past: Option<&'a Past>,
    /// How long each question has had its present answer; none takes every answer at once.
    pub steadiness: Option<&'a Steadiness>,
}

/// How long each question has had its present answer, as far as this controller knows.
pub type Steadiness = BTreeMap<Lookup, Steady>;

/// How long a question has had its present answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steady {
    /// Between the first and the last time that it was given without another one in between.
    pub time: Duration,
    /// Whether it was given before somebody else moved the lock away from it: then it is the registry that lags behind.
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

/// Judges one image by its former entry, its question with the answer, and what else is known.
pub fn judge(
    environment: &Environment,
    image: &Image,
    former: Option<&LockedImage>,
    asked: Option<(&Lookup, &Result<ResolvedImage, Failure>)>,
    evidence: &Evidence<'_>,
) -> Verdict {
    let Some(former) = former.filter(|former| former.hold.is_none()) else { return Verdict::Free };
    let past = evidence.past.and_then(|past| past.get(&environment.id)?.get(&image.name));
    let other = asked
        .and_then(|(key, answer)| Some((key, &answer.as_ref().ok()?.digest)))
        .filter(|(_, digest)| former.reference == image.reference && **digest != former.digest);
    if let Some(reversal) = past.and_then(|past| past.reversal.as_ref())
        && (reversal.kind == Kind::WentBack || other.is_some())
    {
        return Verdict::Hold(Box::new(LockedImage { hold: Some(reversal.reason.clone()), ..former.clone() }));
    }
    let (Some((key, answer)), Some(steadiness)) = (other, evidence.steadiness) else { return Verdict::Free };
    if past.is_some_and(|past| past.released) || !goes_back(former, past, answer) {
        return Verdict::Free;
    }
    match reason_to_wait(environment, former, past, steadiness.get(key)) {
        None => Verdict::Free,
        Some(reason) => {
            let (reference, now, then) = (&former.reference, former.digest.short(), answer.short());
            let message = format!(
                "image `{}` stays at {reference} ({now}): its registry answers {then}, which it had before; {reason}",
                image.name
            );
            let hint = "`larder lock --accept-earlier` takes it at once; `larder hold` keeps what is locked";
            let note = Problem::new(Category::Lock, message).hint(hint);
            Verdict::Wait(Box::new(Waiting { environment: environment.id.clone(), key: key.clone(), note }))
        }
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
/// good, undo each other for ever: so an answer that was there before the lock moved away from it is never news, and one
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
