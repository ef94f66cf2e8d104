//! What holds for any environments, locks and answers.

use std::collections::BTreeMap;

use proptest::{collection::vec, prelude::*};

use crate::{
    model::{
        batch::Batch,
        environment::Environment,
        failure::{Category, Failure, Problem},
        lock::Lock,
        name::EnvironmentId,
        resolution::{Lookup, Resolution},
    },
    stages::{
        lock::testing::{batch, environment, id, index, lock, locked, settings, unavailable},
        resolve,
    },
};

const ENVIRONMENTS: [&str; 4] = ["research/a", "research/b", "teaching/a", "default/c"];
const REFERENCES: [&str; 4] = ["quay.io/x/a:1", "quay.io/x/a:2", "ghcr.io/y/b:1.10", "docker.io/library/c:0e1234"];
const WORDS: [&str; 4] = ["one", "two", "three", "four"];

/// References of up to three images, `retain`, `suspend`.
type Spec = (Vec<usize>, usize, bool);

fn specs() -> impl Strategy<Value = Vec<Spec>> {
    vec((vec(0..REFERENCES.len(), 0..4), 0..3usize, prop::bool::weighted(0.1)), ENVIRONMENTS.len())
}

fn build(specs: &[Spec]) -> Batch<Environment> {
    batch(specs.iter().zip(ENVIRONMENTS).map(|((images, retain, suspend), id)| {
        let images: Vec<String> =
            images.iter().enumerate().map(|(n, &reference)| format!("i{n}={}", REFERENCES[reference])).collect();
        let mut built = environment(id, &images.iter().map(String::as_str).collect::<Vec<_>>());
        built.puller.retain = *retain;
        built.suspend = *suspend;
        built
    }))
}

/// For each reference a digest's word, an error, or no answer.
fn resolutions() -> impl Strategy<Value = Resolution> {
    let answer = prop_oneof![
        4 => (0..WORDS.len()).prop_map(|word| Some(Some(word))),
        1 => Just(Some(None)),
        1 => Just(None),
    ];
    vec(answer, REFERENCES.len()).prop_map(|answers| {
        let answers = answers.into_iter().zip(REFERENCES);
        answers
            .filter_map(|(answer, reference)| {
                let answer = match answer? {
                    Some(word) => Ok(index(WORDS[word], &["linux/amd64", "linux/arm64"])),
                    None => Err(unavailable(reference)),
                };
                Some((crate::stages::lock::testing::key(reference), answer))
            })
            .collect()
    })
}

/// A lock as some earlier passes left it.
fn locks() -> impl Strategy<Value = Lock> {
    (specs(), vec(resolutions(), 0..3)).prop_map(|(specs, passes)| {
        let environments = build(&specs);
        passes.iter().fold(Lock::new(), |old, resolution| lock(&environments, &settings(), &old, resolution).lock)
    })
}

fn broken() -> Failure {
    Problem::new(Category::Syntax, "no YAML").into()
}

proptest! {
    // Run twice ⇒ identical bytes and no files.
    #[test]
    fn a_second_run_changes_nothing(specs in specs(), old in locks(), resolution in resolutions()) {
        let environments = build(&specs);
        let first = lock(&environments, &settings(), &old, &resolution);
        prop_assert_eq!(&first, &lock(&environments, &settings(), &old, &resolution));
        for again in [resolution, Resolution::new()] {
            let second = lock(&environments, &settings(), &first.lock, &again);
            // With an error, an entry keeps more previous digests than it may; they are cut once the registry answers.
            let errors = first.problems.values().flatten().count() > 0;
            prop_assert!(errors || second.files.is_empty(), "{:?}", second.files);
            prop_assert!(second.moves.is_empty());
        }
    }

    // The order of images does not matter.
    #[test]
    fn the_order_of_images_does_not_matter(specs in specs(), old in locks(), resolution in resolutions()) {
        let environments = build(&specs);
        let mut reversed = environments.clone();
        for environment in reversed.values_mut().flatten() {
            environment.images.reverse();
        }
        let (a, b) = (
            lock(&environments, &settings(), &old, &resolution),
            lock(&reversed, &settings(), &old, &resolution),
        );
        prop_assert_eq!((a.files, a.moves, a.lock), (b.files, b.moves, b.lock));
    }

    // Invariant 3: breaking one leaves the others' bytes equal, and its own untouched.
    #[test]
    fn a_broken_environment_changes_nothing_else(
        specs in specs(), old in locks(), resolution in resolutions(), victim in 0..ENVIRONMENTS.len(),
    ) {
        let victim = id(ENVIRONMENTS[victim]);
        let mut environments = build(&specs);
        let whole = lock(&environments, &settings(), &old, &resolution);
        environments.insert(victim.clone(), Err(broken()));
        let part = lock(&environments, &settings(), &old, &resolution);

        let mut expected = whole;
        expected.files.remove(&victim.lock_path());
        expected.moves.retain(|moved| moved.environment != victim);
        expected.problems.remove(&victim);
        expected.lock.remove(&victim);
        if let Some(former) = old.get(&victim) {
            expected.lock.insert(victim, former.clone());
        }
        prop_assert_eq!(part, expected);
    }

    // Invariant 7: no registry error changes an entry.
    #[test]
    fn an_error_never_changes_an_entry(specs in specs(), old in locks(), resolution in resolutions()) {
        let environments = build(&specs);
        let failed: BTreeMap<Lookup, _> =
            resolution.keys().map(|key| (key.clone(), Err(broken()))).collect();
        let change = lock(&environments, &settings(), &old, &failed);
        for (id, environment) in &environments {
            let (Ok(environment), Some(Ok(before))) = (environment, old.get(id)) else { continue };
            let after = change.lock[id].as_ref().unwrap();
            for image in &environment.images {
                let asked = resolve::key(environment, image, &settings()).is_some_and(|key| failed.contains_key(&key));
                if asked && let Some(entry) = before.images.get(&image.name) {
                    prop_assert_eq!(after.images.get(&image.name), Some(entry));
                }
            }
        }
    }

    // What `wanted` asks for is what `lock` needs: with all answers nothing is left to ask or to complain about.
    #[test]
    fn what_is_wanted_suffices(specs in specs(), old in locks()) {
        let environments = build(&specs);
        let mode = resolve::Refresh::Missing;
        let none = resolve::Answered::new();
        let now = std::time::Duration::ZERO;
        let requests = resolve::wanted(&environments, &settings(), &old, &none, now, mode);
        let answers: Resolution = requests.iter().map(|request| {
            let mut answer = index("one", &["linux/amd64"]);
            if let Some(known) = &request.known {
                answer.digest = known.clone();
                answer.evidence = None;
            }
            (request.lookup.clone(), Ok(answer))
        }).collect();
        let change = lock(&environments, &settings(), &old, &answers);
        prop_assert!(change.problems.is_empty(), "{:?}", change.problems);
        prop_assert_eq!(resolve::wanted(&environments, &settings(), &change.lock, &none, now, mode), vec![]);
    }

    // Environments alone decide for themselves: together they have the lockfiles that each would have alone.
    #[test]
    fn environments_are_locked_one_by_one(specs in specs(), resolution in resolutions()) {
        let together = locked(&build(&specs), &resolution);
        let alone: BTreeMap<EnvironmentId, _> = build(&specs)
            .into_iter()
            .flat_map(|(id, environment)| locked(&Batch::from([(id, environment)]), &resolution))
            .collect();
        prop_assert_eq!(together, alone);
    }
}
