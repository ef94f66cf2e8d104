//! Reads the files of an environment repository: the first stage, from bytes to checked values.
//!
//! Every broken file of `environments/` and `lock/` is a failure of that environment alone, with each problem's place
//! and a hint. Only what all environments share, `larder.yaml` and the templates, can stop the whole of it.

mod bounds;
mod check;
mod dialect;
mod environment;
mod file;
mod identity;
pub(super) mod located;
mod placement;
mod policy;
mod registries;
pub mod schema;
mod settings;
mod suggest;
mod text;
pub mod values;
pub(super) mod yaml;

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{
    batch::Batch,
    environment::Environment,
    failure::{Category, Failure, Problem},
    lint::{Allowed, Lint},
    lock::{Lock, Lockfile},
    settings::Settings,
    snapshot::{Entry, Snapshot},
};

use super::{lint, lock};

use self::identity::{Claim, Identities};

/// Where the settings are.
pub(super) const SETTINGS: &str = "larder.yaml";

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
    /// What is allowed and yet looks like a mistake.
    pub warnings: Vec<Problem>,
    /// Files under `environments/` that belong to no environment, since their paths name none.
    pub strays: Vec<Problem>,
}

/// Reads a snapshot.
///
/// # Errors
/// When `larder.yaml` or a template is missing, unreadable or wrong: what all environments depend on. A pass then
/// touches nothing.
pub fn load(snapshot: &Snapshot) -> Result<Environments, Failure> {
    let (settings, everywhere) = load_settings(snapshot)?;
    let mut allowed = Allowed { everywhere, ..Allowed::default() };
    let templates = load_templates(snapshot)?;
    let Identities { claims, strays } = identity::identities(snapshot, &settings);
    let lock = load_lock(snapshot);
    let mut environments: Batch<Environment> = claims
        .into_iter()
        .map(|(id, claim)| {
            let result = match claim {
                Claim::File { path, entry } => environment::load(&id, path, entry, &settings, &mut allowed),
                Claim::Broken(failure) => Err(failure),
            };
            (id, result)
        })
        .collect();
    bounds::count_images(&mut environments, &settings, &lock, snapshot);
    let warnings = lint::lint(&settings, &environments, &allowed, snapshot);
    Ok(Environments { lock, settings, environments, templates, warnings, strays })
}

fn load_settings(snapshot: &Snapshot) -> Result<(Settings, BTreeSet<Lint>), Failure> {
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

/// Other files below `lock/` are left alone: what larder writes there it can also name.
fn load_lock(snapshot: &Snapshot) -> Lock {
    snapshot
        .under("lock")
        .filter_map(|(path, entry)| Some((identity::of_lockfile(path)?, load_lockfile(path, entry))))
        .collect()
}

fn load_lockfile(path: &str, entry: &Entry) -> Result<Lockfile, Failure> {
    match entry {
        Entry::File(bytes) => lock::file::parse(path, bytes),
        Entry::TooLarge(_) | Entry::Link(_) | Entry::Submodule => Err(text::not_a_file(path, entry).into()),
    }
}
