//! From paths to identities: `environments/<tenant>/<name>.yaml`, or `.json`. A file that is there in a wrong way still
//! claims its identity, so that it counts as broken and never as removed.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{
    failure::{Category, Failure, Problem},
    name::{DEFAULT_TENANT, EnvironmentId, Name, NameError},
    settings::Settings,
    snapshot::{Entry, Snapshot},
};

use crate::stages::{
    lockfile::environment_of,
    source::{suggest, text},
};

/// What the paths of a snapshot come to.
pub struct Identities<'a> {
    /// The environments that there are.
    pub claims: BTreeMap<EnvironmentId, Claim<'a>>,
    /// Files whose paths name none.
    pub strays: Vec<Problem>,
    /// How many dot files there are, or files in such directories: what editors and systems leave behind.
    pub ignored: usize,
    /// Tenants whose directories cannot be read.
    pub unread: BTreeSet<Name>,
}

/// Why there is an environment.
pub enum Claim<'a> {
    /// A file at the right place.
    File {
        /// Its path.
        path: &'a str,
        /// What it holds.
        entry: &'a Entry,
    },
    /// Something else, whose content is not looked at.
    Broken(Failure),
}

/// How a path is an environment's.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Proper,
    Extension,
    Nested,
}

struct Candidate<'a> {
    path: &'a str,
    entry: &'a Entry,
    form: Form,
}

/// Finds the environments of a snapshot.
pub fn identities<'a>(snapshot: &'a Snapshot, settings: &Settings) -> Identities<'a> {
    let mut strays = Vec::new();
    let mut ignored = 0;
    let mut candidates: BTreeMap<EnvironmentId, Vec<Candidate<'a>>> = BTreeMap::new();
    for (path, entry) in snapshot.under("environments") {
        match of_path(path) {
            _ if path.split('/').any(|part| part.starts_with('.')) => ignored += 1,
            Some(Ok((id, form))) => candidates.entry(id).or_default().push(Candidate { path, entry, form }),
            Some(Err(error)) => strays.push(name_problem(path, &error)),
            // A directory's worth of environments may be behind it.
            None if !matches!(entry, Entry::File(_) | Entry::TooLarge(_)) => {
                strays.push(text::not_a_file(path, entry));
            }
            None => {}
        }
    }
    // A file in a directory too deep does not break the environment that has the identity by right.
    for files in candidates.values_mut().filter(|files| files.iter().any(|file| file.form != Form::Nested)) {
        let nested = files.extract_if(.., |file| file.form == Form::Nested);
        strays.extend(nested.map(|file| nested_problem(file.path)));
    }
    let mut folded: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (id, files) in &candidates {
        folded.entry(id.to_string().to_lowercase()).or_default().extend(files.iter().map(|file| file.path));
    }
    let mut claims: BTreeMap<EnvironmentId, Claim<'a>> = candidates
        .into_iter()
        .map(|(id, files)| {
            let rivals = folded.get(&id.to_string().to_lowercase()).map_or(&[][..], Vec::as_slice);
            let claim = claim(&id, &files, rivals, settings);
            (id, claim)
        })
        .collect();
    let unread = unread(snapshot);
    let lockfiles = snapshot.under("lock").filter_map(|(path, _)| environment_of(path));
    let known: BTreeSet<EnvironmentId> = claims.keys().cloned().chain(lockfiles).collect();
    for (id, problem) in known.into_iter().filter_map(|id| unread.get(&id.tenant).map(|problem| (id, problem))) {
        claims.insert(id, broken([problem.clone()]));
    }
    let is_in_lock = |problem: &&Problem| problem.location.as_ref().is_some_and(|at| at.path.starts_with("lock/"));
    strays.extend(unread.values().filter(is_in_lock).cloned());
    Identities { claims, strays, ignored, unread: unread.into_keys().collect() }
}

/// Tenants of whose directories something else than a directory is known: what they hold is unknown, not removed.
fn unread(snapshot: &Snapshot) -> BTreeMap<Name, Problem> {
    let mut unread = BTreeMap::new();
    for root in ["lock", "environments"] {
        for (path, entry) in snapshot.under(root) {
            let name = path.strip_prefix(root).and_then(|path| path.strip_prefix('/')).unwrap_or(path);
            if matches!(entry, Entry::Link(_) | Entry::Submodule | Entry::Unread(_))
                && let Ok(tenant) = name.parse()
            {
                unread.insert(tenant, text::not_a_file(path, entry));
            }
        }
    }
    unread
}

/// The file of an environment, if there is exactly one at the right place.
pub fn file<'a>(snapshot: &'a Snapshot, id: &EnvironmentId) -> Option<&'a Entry> {
    let is_its = |path: &str| of_path(path) == Some(Ok((id.clone(), Form::Proper)));
    let mut files = snapshot.under("environments").filter(|(path, _)| is_its(path));
    files.next().map(|(_, entry)| entry).filter(|_| files.next().is_none())
}

fn claim<'a>(id: &EnvironmentId, files: &[Candidate<'a>], rivals: &[&str], settings: &Settings) -> Claim<'a> {
    let [file] = files else {
        return broken(files.iter().map(|file| {
            let others = files.iter().map(|other| other.path).filter(|path| *path != file.path).collect::<Vec<_>>();
            Problem::new(Category::Name, format!("environment {id} is also claimed by {}", others.join(" and ")))
                .in_file(file.path)
                .hint("keep one of these files, as environments/<tenant>/<name>.yaml")
        }));
    };
    if let Some(rival) = rivals.iter().find(|path| **path != file.path) {
        return broken([Problem::new(Category::Name, format!("the path differs from {rival} by case only"))
            .in_file(file.path)
            .hint("rename one of them: many file systems cannot hold both")]);
    }
    match file.form {
        Form::Nested => broken([nested_problem(file.path)]),
        Form::Extension => broken([wrong_extension(file.path)]),
        Form::Proper if !settings.tenants.contains_key(&id.tenant) => broken([undeclared(id, file.path, settings)]),
        Form::Proper => Claim::File { path: file.path, entry: file.entry },
    }
}

fn broken<'a>(problems: impl IntoIterator<Item = Problem>) -> Claim<'a> {
    let mut problems = problems.into_iter();
    let first = problems.next().unwrap_or_else(|| Problem::new(Category::Name, "the path names no environment"));
    Claim::Broken(Failure::new(first, problems))
}

/// The identity of a path below `environments/`; none for what is neither YAML nor JSON.
fn of_path(path: &str) -> Option<Result<(EnvironmentId, Form), NameError>> {
    let relative = path.strip_prefix("environments/")?;
    let (folder, file) = relative.rsplit_once('/').unwrap_or(("", relative));
    let extension = &file[stem(file).len()..];
    if !matches!(extension.to_ascii_lowercase().as_str(), ".yaml" | ".yml" | ".json") {
        return None;
    }
    let form = match (extension, folder.contains('/')) {
        (_, true) => Form::Nested,
        (".yaml" | ".json", false) => Form::Proper,
        _ => Form::Extension,
    };
    let tenant = match folder.split('/').next() {
        None | Some("") => DEFAULT_TENANT,
        Some(tenant) => tenant,
    };
    Some(name(tenant).and_then(|tenant| Ok((EnvironmentId::new(tenant, name(stem(file))?), form))))
}

/// A name, of characters that Git really holds: U+FFFD stands for bytes that are no UTF-8.
fn name(text: &str) -> Result<Name, NameError> {
    if text.contains(char::REPLACEMENT_CHARACTER) {
        return Err(NameError::Character(text.to_owned(), char::REPLACEMENT_CHARACTER));
    }
    text.parse()
}

/// A path without its last extension.
fn stem(path: &str) -> &str {
    path.rfind('.').map_or(path, |dot| &path[..dot])
}

fn name_problem(path: &str, error: &NameError) -> Problem {
    Problem::new(Category::Name, error.to_string())
        .in_file(path)
        .hint("rename it: an environment's file is environments/<tenant>/<name>.yaml")
}

fn wrong_extension(path: &str) -> Problem {
    let stem = stem(path);
    let right = if path[stem.len()..].eq_ignore_ascii_case(".json") { "json" } else { "yaml" };
    Problem::new(Category::Name, "an environment's file ends in .yaml, or in .json if it is Submarine's")
        .in_file(path)
        .hint(format!("rename it: git mv {path} {stem}.{right}"))
}

fn nested_problem(path: &str) -> Problem {
    Problem::new(
        Category::Name,
        "an environment's file is directly in its tenant's directory, not in a directory below it",
    )
    .in_file(path)
    .hint("move it to environments/<tenant>/<name>.yaml")
}

/// The problem of an environment whose tenant `larder.yaml` does not have.
pub fn undeclared(id: &EnvironmentId, path: &str, settings: &Settings) -> Problem {
    let tenant = &id.tenant;
    let meant = suggest::closest(tenant.as_str(), settings.tenants.keys().map(Name::as_str))
        .map(|name| format!("did you mean the directory `{name}`? Otherwise "))
        .unwrap_or_default();
    Problem::new(Category::Policy, format!("the tenant `{tenant}` is not in larder.yaml")).in_file(path).hint(format!(
        "{meant}add `{tenant}: {{namespace: …}}` to spec.tenants of larder.yaml: that gives it a namespace"
    ))
}
