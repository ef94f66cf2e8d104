//! Small worlds for the tests of resolve, lock, message and history.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{Inputs, rename::Renames, verdict::Guards};
use crate::model::{
    batch::Batch,
    digest::Digest,
    environment::{Environment, Image, Placement, Puller, Strategy},
    failure::{Category, Failure, Problem},
    lock::{Lock, LockChange, Lockfile},
    name::{EnvironmentId, Name},
    registries::Registries,
    resolution::{ContentKind, CredentialSource, Evidence, Lookup, PlatformManifest, Resolution, ResolvedImage},
    settings::{Defaults, Helpers, LockSettings, Prune, Records, Settings, Tenant},
};

pub(crate) fn id(text: &str) -> EnvironmentId {
    text.parse().unwrap()
}

pub(crate) fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// A digest that belongs to a word.
pub(crate) fn digest(word: &str) -> Digest {
    Digest::sha256(word.as_bytes())
}

pub(crate) fn puller(retain: usize) -> Puller {
    Puller {
        strategy: Strategy::Containers,
        max_unavailable: "10%".to_owned(),
        retain,
        deadline: Duration::from_secs(1800),
    }
}

/// An environment with images `name=reference`, that retains one previous digest and refreshes every two hours.
pub(crate) fn environment(environment: &str, images: &[&str]) -> Environment {
    let image = |(index, text): (usize, &&str)| {
        let (image, reference) = text.split_once('=').unwrap();
        Image {
            name: name(image),
            reference: reference.parse().unwrap(),
            pull_secret: None,
            platforms: vec![],
            line: 6 + index,
        }
    };
    Environment {
        id: id(environment),
        path: format!("environments/{environment}.yaml"),
        display_name: None,
        description: None,
        images: images.iter().enumerate().map(image).collect(),
        placement: Placement::default(),
        refresh: Duration::from_secs(7200),
        puller: puller(1),
        resources: None,
        suspend: false,
        allow: BTreeSet::new(),
    }
}

pub(crate) fn batch(environments: impl IntoIterator<Item = Environment>) -> Batch<Environment> {
    environments.into_iter().map(|environment| (environment.id.clone(), Ok(environment))).collect()
}

/// Settings with the tenants `research`, `teaching` and `default`; their namespaces are `ns-<tenant>`.
pub(crate) fn settings() -> Settings {
    let tenant = |tenant: &str| (name(tenant), Tenant { namespace: format!("ns-{tenant}"), ..Tenant::default() });
    Settings {
        tenants: ["research", "teaching", "default"].map(tenant).into(),
        pools: BTreeMap::new(),
        defaults: Defaults { pool: None, refresh: Duration::from_secs(7200), puller: puller(1) },
        registries: Registries::default(),
        records: Records { name: "records".to_owned() },
        lock: LockSettings::default(),
        prune: Prune { budget: 30, confirmed: vec![] },
        helpers: Helpers { hold: "busybox:1".parse().unwrap(), pause: "pause:3".parse().unwrap() },
        allow: BTreeSet::new(),
    }
}

pub(crate) fn key(reference: &str) -> Lookup {
    Lookup { reference: reference.parse().unwrap(), credentials: CredentialSource::Controller }
}

pub(crate) fn index(word: &str, platforms: &[&str]) -> ResolvedImage {
    let manifest = |&platform: &&str| PlatformManifest {
        platform: platform.parse().unwrap(),
        digest: digest(&format!("{word} {platform}")),
        size: Some(1000 + word.len() as u64),
    };
    ResolvedImage {
        digest: digest(word),
        evidence: Some(Evidence {
            media_type: "application/vnd.oci.image.index.v1+json".to_owned(),
            kind: ContentKind::Image,
            platforms: platforms.iter().map(manifest).collect(),
        }),
        warnings: Vec::new(),
    }
}

/// Answers `reference=word`: an index for amd64 with the digest of that word; `reference=!` is an error.
pub(crate) fn answers(answers: &[&str]) -> Resolution {
    let answer = |text: &&str| {
        let (reference, word) = text.split_once('=').unwrap();
        let answer = if word == "!" { Err(unavailable(reference)) } else { Ok(index(word, &["linux/amd64"])) };
        (key(reference), answer)
    };
    answers.iter().map(answer).collect()
}

pub(crate) fn unavailable(reference: &str) -> Failure {
    Problem::new(Category::Registry, format!("{reference}: the registry answered 503")).hint("try later").into()
}

/// The day on which the tests lock.
pub(crate) const TODAY: jiff::civil::Date = jiff::civil::date(2026, 12, 1);

static NONE: Renames = Renames { known: Vec::new(), undecided: BTreeSet::new() };

/// [`super::lock`] where nothing has moved since the questions, and nothing else is known.
pub(crate) fn lock(
    environments: &Batch<Environment>,
    settings: &Settings,
    old: &Lock,
    resolution: &Resolution,
) -> LockChange {
    super::lock(&inputs(environments, settings, old, resolution))
}

/// The same as inputs.
pub(crate) fn inputs<'a>(
    environments: &'a Batch<Environment>,
    settings: &'a Settings,
    old: &'a Lock,
    resolution: &'a Resolution,
) -> Inputs<'a> {
    let (guards, renames) = (Guards::default(), &NONE);
    Inputs { environments, settings, lock: old, asked: old, resolution, guards, renames, today: TODAY }
}

/// What was locked for these environments by these answers.
pub(crate) fn locked(environments: &Batch<Environment>, resolution: &Resolution) -> Lock {
    change(environments, &Lock::new(), resolution).lock
}

pub(crate) fn change(environments: &Batch<Environment>, old: &Lock, resolution: &Resolution) -> LockChange {
    lock(environments, &settings(), old, resolution)
}

pub(crate) fn lockfile<'a>(lock: &'a Lock, environment: &str) -> &'a Lockfile {
    lock[&id(environment)].as_ref().unwrap()
}

pub(crate) fn messages(change: &LockChange, environment: &str) -> Vec<String> {
    let problems = change.problems.get(&id(environment));
    problems.into_iter().flatten().map(ToString::to_string).collect()
}
