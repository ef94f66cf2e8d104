//! One image's entry: whether it stays, moves or has to be left out.

use super::{demand, holds::describe};
use crate::{
    model::{
        environment::{Environment, Image},
        failure::{Category, Failure, Location, Problem},
        lock::{LockedImage, Lockfile, Previous},
        resolution::{Evidence, PlatformManifest, ResolvedImage},
    },
    stages::lockfile::diff::locked_as,
};

/// The entry of an image, or none when it cannot be locked and never was; and what is wrong with it.
///
/// `former` is the entry it had, `answer` the registry's answer to its question, none when it was not asked. With any
/// problem the previous entry stays as it is.
pub fn lock(
    environment: &Environment,
    image: &Image,
    former: Option<&LockedImage>,
    answer: Option<&Result<ResolvedImage, Failure>>,
) -> (Option<LockedImage>, Vec<Problem>) {
    let stay = |problems: Vec<Problem>| {
        let problems = problems.into_iter().map(|problem| explained(environment, image, former, problem)).collect();
        (former.cloned(), problems)
    };
    if former.is_some_and(|former| former.hold.is_some()) {
        return stay(former.and_then(|former| refused(environment, image, former)).into_iter().collect());
    }
    if let Some(Ok(ResolvedImage { evidence: Some(evidence), .. })) = answer
        && let Some(problem) = demand::not_an_image(environment, image, evidence)
    {
        return stay(vec![problem]);
    }
    let next = match (answer, former) {
        (Some(Err(failure)), _) => return stay(failure.problems().to_vec()),
        (Some(Ok(resolved)), former) => match moved(environment, image, former, resolved) {
            Some(next) => next,
            None => return stay(vec![unanswered(image)]),
        },
        (None, Some(former)) if former.reference == image.reference => kept(environment, former),
        (None, _) => return stay(vec![unanswered(image)]),
    };
    match demand::unmet(environment, image, &next.platforms) {
        Some(problem) => stay(vec![problem]),
        None => (Some(next), vec![]),
    }
}

/// The entry as the answer has it; none for the answer "as known" when something else is known here.
fn moved(
    environment: &Environment,
    image: &Image,
    former: Option<&LockedImage>,
    resolved: &ResolvedImage,
) -> Option<LockedImage> {
    if let Some(former) = former.filter(|former| former.digest == resolved.digest) {
        let platforms = match &resolved.evidence {
            Some(evidence) => completed(&former.platforms, evidence),
            None => former.platforms.clone(),
        };
        return Some(LockedImage { reference: image.reference.clone(), platforms, ..kept(environment, former) });
    }
    let evidence = resolved.evidence.as_ref()?;
    Some(LockedImage {
        reference: image.reference.clone(),
        digest: resolved.digest.clone(),
        media_type: evidence.media_type.clone(),
        platforms: evidence.platforms.clone(),
        previous: previous(environment, former, resolved),
        hold: None,
    })
}

/// What was written about a digest, with its gaps filled. The same digest has the same content: what is complete stays,
/// so that two versions of larder that see platforms differently do not undo each other's commits.
fn completed(written: &[PlatformManifest], evidence: &Evidence) -> Vec<PlatformManifest> {
    if !written.is_empty() && written.iter().all(|manifest| manifest.size.is_some()) {
        return written.to_vec();
    }
    let known = |platform| written.iter().find(|manifest| manifest.platform == platform && manifest.size.is_some());
    let merged = |manifest: &PlatformManifest| match (manifest.size, known(manifest.platform.clone())) {
        (None, Some(known)) => known.clone(),
        _ => manifest.clone(),
    };
    let found: Vec<PlatformManifest> = evidence.platforms.iter().map(merged).collect();
    if found.is_empty() { written.to_vec() } else { found }
}

/// The previous digests, newest first, without the new one and without repetitions, as many as are retained.
fn previous(environment: &Environment, former: Option<&LockedImage>, resolved: &ResolvedImage) -> Vec<Previous> {
    let mut kept: Vec<Previous> = Vec::new();
    for candidate in
        former.into_iter().flat_map(|former| [locked_as(former)].into_iter().chain(former.previous.clone()))
    {
        if candidate.digest != resolved.digest && kept.iter().all(|known| known.digest != candidate.digest) {
            kept.push(candidate);
        }
    }
    kept.truncate(environment.puller.retain);
    kept
}

/// The previous entry, with no more previous digests than are retained now.
fn kept(environment: &Environment, former: &LockedImage) -> LockedImage {
    let mut entry = former.clone();
    entry.previous.truncate(environment.puller.retain);
    entry
}

fn unanswered(image: &Image) -> Problem {
    Problem::new(Category::Registry, format!("{} was not resolved", image.reference))
        .hint("the next pass asks its registry again; `larder lock` asks at once")
}

/// That a held image is asked for by another reference.
fn refused(environment: &Environment, image: &Image, former: &LockedImage) -> Option<Problem> {
    let hold = former
        .hold
        .as_ref()
        .filter(|hold| former.reference != image.reference && !hold.is_lifted_by(&image.reference))?;
    let held = describe(hold);
    let problem = Problem::new(Category::Lock, format!("{} is asked for, but the image is {held}", image.reference))
        .hint(format!("`larder release {} {}` lets it move again", environment.id, image.name));
    Some(problem)
}

/// What a pass will say about held images that their files ask for by another reference.
pub fn refusals(environment: &Environment, lockfile: &Lockfile) -> Vec<Problem> {
    let held = environment.images.iter().filter_map(|image| Some((image, lockfile.images.get(&image.name)?)));
    held.filter_map(|(image, former)| {
        refused(environment, image, former).map(|problem| explained(environment, image, Some(former), problem))
    })
    .collect()
}

/// Says which image is meant, what holds for it now, and where it stands in its file.
fn explained(environment: &Environment, image: &Image, former: Option<&LockedImage>, problem: Problem) -> Problem {
    let state = former.map_or_else(
        || "is not locked yet".to_owned(),
        |former| format!("stays at {} ({})", former.reference, former.digest.short()),
    );
    let message = format!("{state}: {}", problem.message);
    located(environment, image, " ", Problem { message, ..problem })
}

/// Says which image is meant, and where it stands in its file.
pub(super) fn located(environment: &Environment, image: &Image, then: &str, problem: Problem) -> Problem {
    let place = Location { path: environment.path.clone(), line: image.line, column: 0, length: 0 };
    Problem {
        message: format!("image `{}`{then}{}", image.name, problem.message),
        location: problem.location.or(Some(place)),
        ..problem
    }
}
