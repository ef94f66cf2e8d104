//! Reads the files of an environment repository: the first stage, from bytes to checked values.
//!
//! Every broken file of `environments/` and `lock/` is a failure of that environment alone, with each problem's place
//! and a hint. Only what all environments share, `larder.yaml` and the templates, can stop the whole of it.

#[cfg(test)]
mod tests;

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

use super::{
    environment::{
        self,
        identity::{self, Claim, Identities},
        limits,
    },
    lockfile,
    memo::Memo,
    settings,
    source::text,
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
    Loader::default().load(snapshot)
}

/// Reads all but the settings, which are these.
///
/// # Errors
/// When a template cannot be read.
pub fn load_with(snapshot: &Snapshot, settings: Settings) -> Result<Environments, Failure> {
    Loader::default().read(snapshot, settings)
}

/// Reads like [`load`], and remembers one snapshot's files: of the next one it reads only those that differ.
#[derive(Default)]
pub struct Loader {
    settings: Option<(Entry, Settings)>,
    /// From the path and what the file holds.
    environments: Memo<EnvironmentId, (String, Entry), Result<Environment, Failure>>,
    /// By path.
    lockfiles: Memo<String, Entry, Result<Lockfile, Failure>>,
}

impl Loader {
    /// Exactly what [`load`] gives.
    ///
    /// # Errors
    /// As there.
    pub fn load(&mut self, snapshot: &Snapshot) -> Result<Environments, Failure> {
        let entry = snapshot.files.get(SETTINGS);
        let settings = match self.settings.take() {
            Some((known, settings)) if Some(&known) == entry => settings,
            _ => {
                *self = Self::default();
                load_settings(snapshot)?
            }
        };
        self.settings = entry.map(|entry| (entry.clone(), settings.clone()));
        self.read(snapshot, settings)
    }

    fn read(&mut self, snapshot: &Snapshot, settings: Settings) -> Result<Environments, Failure> {
        let templates = load_templates(snapshot)?;
        let Identities { claims, strays, ignored, unread } = identity::identities(snapshot, &settings);
        let lock = self.load_lock(snapshot);
        let mut environments = self.load_environments(claims, &settings);
        limits::count_images(&mut environments, &settings, &lock, snapshot);
        let strays = capped(strays, MAX_IN_ALL);
        shorten(&mut environments);
        Ok(Environments { lock, settings, environments, templates, strays, ignored, unread })
    }

    fn load_environments(
        &mut self,
        claims: BTreeMap<EnvironmentId, Claim<'_>>,
        settings: &Settings,
    ) -> Batch<Environment> {
        self.environments.begin();
        let load = |(id, claim)| {
            let result = match claim {
                Claim::File { path, entry } => self.environments.get(
                    &id,
                    |(known_path, known)| known_path == path && known == entry,
                    || (path.to_owned(), entry.clone()),
                    || environment::load(&id, path, entry, settings),
                ),
                Claim::Broken(failure) => Err(failure),
            };
            (id, result)
        };
        claims.into_iter().map(load).collect()
    }

    /// Other files below `lock/` are left alone: what larder writes there it can also name.
    fn load_lock(&mut self, snapshot: &Snapshot) -> Lock {
        self.lockfiles.begin();
        let load = |(path, entry): (&str, &Entry)| {
            let id = lockfile::environment_of(path)?;
            let make = || load_lockfile(path, entry);
            Some((id, self.lockfiles.get(&path.to_owned(), |known| known == entry, || entry.clone(), make)))
        };
        snapshot.under("lock").filter_map(load).collect()
    }
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
        return Err(Problem::new(
            Category::Schema,
            "there is no larder.yaml, so this is not an environment repository",
        )
        .in_file(SETTINGS)
        .hint("`larder init` makes one; if it is in a directory of this repository, name that with --path")
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

fn load_lockfile(path: &str, entry: &Entry) -> Result<Lockfile, Failure> {
    match entry {
        Entry::File(bytes) => lockfile::parse(path, bytes),
        Entry::TooLarge(_) | Entry::Link(_) | Entry::Submodule | Entry::Unread(_) => {
            Err(text::not_a_file(path, entry).into())
        }
    }
}
