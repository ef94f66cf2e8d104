//! Reads the files of an environment repository: the first stage, from bytes to checked values.
//!
//! Every broken file of `environments/` and `lock/` is a failure of that environment alone, with each problem's place
//! and a hint. Only what all environments share, `larder.yaml` and the templates, can stop the whole of it.

mod bounds;
mod check;
mod dialect;
mod documents;
mod environment;
mod file;
mod identity;
pub(super) mod located;
mod memo;
mod placement;
mod registries;
pub mod schema;
mod settings;
pub mod suggest;
mod text;
pub mod values;
pub(super) mod yaml;

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{
    batch::Batch,
    environment::Environment,
    failure::{Category, Failure, Problem, capped},
    lock::{Lock, Lockfile},
    name::{EnvironmentId, Name},
    settings::Settings,
    snapshot::{Entry, SETTINGS, Snapshot},
};

use super::lockfile;

pub use self::memo::Loader;

use self::{
    identity::{Claim, Identities},
    memo::Last,
};

/// The most problems that the environments of a snapshot have together, but for one of each; also the most files that
/// belong to no environment. What is reported of a pass must stay small whatever people commit.
const MAX_IN_ALL: usize = 500;

/// What a snapshot holds, read and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Environments {
    /// `larder.yaml`.
    pub settings: Settings,
    /// The environments by identity. One whose file is broken is here with its failure, never absent.
    pub environments: Batch<Environment>,
    /// The lockfiles by identity, those of environments that are gone included.
    pub lock: Lock,
    /// The repository's own templates, by their path below `templates/`.
    pub templates: BTreeMap<String, String>,
    /// Files under `environments/` that belong to no environment, since their paths name none.
    pub strays: Vec<Problem>,
    /// How many dot files under `environments/` were ignored.
    pub ignored: usize,
    /// Tenants whose directories cannot be read: what they have is unknown, and stays as it is.
    pub unread: BTreeSet<Name>,
}

/// Reads a snapshot.
///
/// # Errors
/// When `larder.yaml` or a template is missing, unreadable or wrong: what all environments depend on. A pass then
/// touches nothing.
pub fn load(snapshot: &Snapshot) -> Result<Environments, Failure> {
    read(snapshot, load_settings(snapshot)?, None)
}

/// Reads all but the settings, which are these.
///
/// # Errors
/// When a template cannot be read.
pub fn load_with(snapshot: &Snapshot, settings: Settings) -> Result<Environments, Failure> {
    read(snapshot, settings, None)
}

/// Reads all but the settings, and of `last` nothing anew that is the same.
fn read(snapshot: &Snapshot, settings: Settings, mut last: Option<&mut Last>) -> Result<Environments, Failure> {
    let templates = load_templates(snapshot)?;
    let Identities { claims, strays, ignored, unread } = identity::identities(snapshot, &settings);
    let lock = load_lock(snapshot, last.as_deref_mut());
    let mut environments = Batch::new();
    for (id, claim) in claims {
        let result = match claim {
            Claim::File { path, entry } => load_environment(&id, (path, entry), &settings, last.as_deref_mut()),
            Claim::Broken(failure) => Err(failure),
        };
        environments.insert(id, result);
    }
    bounds::count_images(&mut environments, &settings, &lock, snapshot);
    let strays = capped(strays, MAX_IN_ALL);
    shorten(&mut environments);
    Ok(Environments { lock, settings, environments, templates, strays, ignored, unread })
}

/// Failures beyond the bound for all of them keep their first problem.
fn shorten(environments: &mut Batch<Environment>) {
    let mut left = MAX_IN_ALL;
    for result in environments.values_mut() {
        if let Err(failure) = result {
            left = left.saturating_sub(failure.problems().len());
            if left == 0 {
                *failure = failure.clone().shortened();
            }
        }
    }
}

fn load_settings(snapshot: &Snapshot) -> Result<Settings, Failure> {
    let Some(entry) = snapshot.files.get(SETTINGS) else {
        return Err(Problem::new(Category::Schema, "there is no larder.yaml, so this is no environment repository")
            .in_file(SETTINGS)
            .hint("`larder init` makes one; if it is in a folder of this repository, name that with --path")
            .into());
    };
    settings::load(SETTINGS, entry)
}

/// Only `.j2` files are templates. One that cannot be read must not silently give way to the built-in one, which would
/// change every object.
fn load_templates(snapshot: &Snapshot) -> Result<BTreeMap<String, String>, Failure> {
    let mut templates = BTreeMap::new();
    let mut problems = Vec::new();
    for (path, entry) in snapshot.under("templates").filter(|(path, _)| path.ends_with(".j2")) {
        match text::read(path, entry) {
            Ok(source) => {
                let name = path.strip_prefix("templates/").unwrap_or(path);
                templates.insert(name.to_owned(), source.text.to_string());
            }
            Err(problem) => problems.push(problem),
        }
    }
    Failure::of(problems).map_or(Ok(templates), Err)
}

fn load_environment(
    id: &EnvironmentId,
    (path, entry): (&str, &Entry),
    settings: &Settings,
    last: Option<&mut Last>,
) -> Result<Environment, Failure> {
    let make = || environment::load(id, path, entry, settings);
    let Some(last) = last else { return make() };
    let is_same = |(of, known): &(String, Entry)| of == path && known == entry;
    last.environments.get(id, is_same, || (path.to_owned(), entry.clone()), make)
}

/// Other files below `lock/` are left alone: what larder writes there it can also name.
fn load_lock(snapshot: &Snapshot, mut last: Option<&mut Last>) -> Lock {
    let mut read = |path: &str, entry: &Entry| match &mut last {
        Some(last) => {
            let make = || load_lockfile(path, entry);
            last.lockfiles.get(&path.to_owned(), |known| known == entry, || entry.clone(), make)
        }
        None => load_lockfile(path, entry),
    };
    snapshot
        .under("lock")
        .filter_map(|(path, entry)| Some((lockfile::environment_of(path)?, read(path, entry))))
        .collect()
}

fn load_lockfile(path: &str, entry: &Entry) -> Result<Lockfile, Failure> {
    match entry {
        Entry::File(bytes) => lockfile::parse(path, bytes),
        Entry::TooLarge(_) | Entry::Link(_) | Entry::Submodule | Entry::Unread(_) => {
            Err(text::not_a_file(path, entry).into())
        }
    }
}
