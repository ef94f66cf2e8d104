//! Cases of the load stage: each directory of `tests/cases/load` is an environment repository with what is read from it.

mod guide;
mod identity;
mod isolation;
mod odd;

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

use larder::{
    diagnostics::{Severity, Style, render},
    model::{
        batch::{failed, succeeded},
        environment::{Environment, Placement, Puller},
        failure::{Failure, Problem},
        settings::{Bounds, Confirmed, Settings},
        snapshot::{Entry, Snapshot},
    },
    stages::{
        lint::lint,
        load::{Environments, load},
    },
};

use crate::cases;

#[test]
fn cases() {
    cases::for_each("load", |case| {
        let snapshot = snapshot(case);
        match load(&snapshot) {
            Ok(environments) => show_environments(&environments, &lint(&snapshot, &environments)),
            Err(failure) => format!("FAILED\n{}", show_failure(&failure)),
        }
    });
}

pub fn snapshot(case: &Path) -> Snapshot {
    fn walk(root: &Path, folder: &Path, files: &mut BTreeMap<String, Entry>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(root, &path, files);
            } else if !path.ends_with("expected.txt") {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
                files.insert(name, Entry::File(fs::read(&path).unwrap().into()));
            }
        }
    }
    let mut snapshot = Snapshot::default();
    walk(case, case, &mut snapshot.files);
    snapshot
}

/// A larder.yaml with the tenants `t`, `T2` and `default`.
const SETTINGS: &str = "apiVersion: larder.dev/v1alpha1
kind: Settings
spec:
  tenants: {t: {namespace: t}, T2: {namespace: t2}, default: {namespace: d}}
";

/// An environment with one image.
const ENVIRONMENT: &str = "apiVersion: larder.dev/v1alpha1
kind: Environment
spec:
  images:
    - name: a
      image: app:1
";

/// [`SETTINGS`] and some files, read.
fn load_with<B: AsRef<[u8]>>(files: impl IntoIterator<Item = (impl Into<String>, B)>) -> Environments {
    load_entries(files.into_iter().map(|(path, bytes)| (path.into(), Entry::File(bytes.as_ref().into()))))
}

/// [`SETTINGS`] and some entries, read.
fn load_entries(entries: impl IntoIterator<Item = (String, Entry)>) -> Environments {
    let mut snapshot = Snapshot { files: entries.into_iter().collect(), ..Snapshot::default() };
    snapshot.files.entry("larder.yaml".to_owned()).or_insert(Entry::File(SETTINGS.as_bytes().into()));
    load(&snapshot).unwrap()
}

fn show_environments(environments: &Environments, warnings: &[Problem]) -> String {
    let mut text = String::new();
    show_settings(&mut text, &environments.settings);
    for name in environments.templates.keys() {
        writeln!(text, "template {name}").unwrap();
    }
    for (_, environment) in succeeded(&environments.environments) {
        show_environment(&mut text, environment);
    }
    for (id, failure) in failed(&environments.environments) {
        write!(text, "\nFAILED {id}\n{}", show_failure(failure)).unwrap();
    }
    for (heading, problems) in [("WARNINGS", warnings), ("STRAYS", &environments.strays)] {
        if !problems.is_empty() {
            write!(text, "\n{heading}\n").unwrap();
            problems.iter().for_each(|problem| show_problem(&mut text, problem, Severity::Warning));
        }
    }
    text
}

fn show_settings(text: &mut String, settings: &Settings) {
    for (name, tenant) in &settings.tenants {
        let create = if tenant.create_namespace { " (created)" } else { "" };
        writeln!(text, "tenant {name}: namespace {}{create}", tenant.namespace).unwrap();
        if tenant.bounds != Bounds::default() {
            writeln!(text, "  {:?}", tenant.bounds).unwrap();
        }
        if !tenant.pull_secrets.is_empty() {
            writeln!(text, "  pull secrets {}", tenant.pull_secrets.join(", ")).unwrap();
        }
        if let Some(user) = &tenant.impersonate {
            writeln!(text, "  impersonate {user}").unwrap();
        }
    }
    for (name, placement) in &settings.pools {
        writeln!(text, "pool {name}: {}", show_placement(placement)).unwrap();
    }
    let defaults = &settings.defaults;
    let pool = defaults.pool.as_deref().unwrap_or("-");
    writeln!(text, "defaults: pool {pool}, refresh {:?}, {}", defaults.refresh, show_puller(&defaults.puller)).unwrap();
    for (host, options) in &settings.registries.0 {
        let mirrors: Vec<String> = options.mirrors.iter().map(ToString::to_string).collect();
        let (plain, ca) = (options.plain_http, &options.ca);
        writeln!(text, "registry {host}: mirrors {mirrors:?}, plain http {plain}, ca {ca:?}").unwrap();
    }
    let confirmed: Vec<String> = settings.prune.confirmed.iter().map(show_confirmed).collect();
    writeln!(text, "records {}", settings.records.name).unwrap();
    writeln!(text, "prune: budget {} %, confirmed {confirmed:?}", settings.prune.budget).unwrap();
    writeln!(text, "helpers: hold {}, pause {}", settings.helpers.hold, settings.helpers.pause).unwrap();
}

fn show_confirmed(confirmed: &Confirmed) -> String {
    match confirmed {
        Confirmed::Environment(id) => id.to_string(),
        Confirmed::Tenant(tenant) => format!("{tenant}/*"),
    }
}

fn show_environment(text: &mut String, environment: &Environment) {
    let suspended = if environment.suspend { " (suspended)" } else { "" };
    write!(text, "\n{} from {}{suspended}\n", environment.id, environment.path).unwrap();
    for (label, value) in [("title", &environment.display_name), ("description", &environment.description)] {
        if let Some(value) = value {
            writeln!(text, "  {label} {value:?}").unwrap();
        }
    }
    for image in &environment.images {
        write!(text, "  image {} = {} (line {})", image.name, image.reference, image.line).unwrap();
        if let Some(secret) = &image.pull_secret {
            write!(text, ", pull secret {secret}").unwrap();
        }
        for platform in &image.platforms {
            write!(text, ", {platform}").unwrap();
        }
        text.push('\n');
    }
    writeln!(text, "  nodes {}", show_placement(&environment.placement)).unwrap();
    writeln!(text, "  refresh {:?}, {}", environment.refresh, show_puller(&environment.puller)).unwrap();
    if let Some(resources) = &environment.resources {
        writeln!(text, "  resources {}", serde_json::to_string(resources).unwrap()).unwrap();
    }
}

fn show_placement(placement: &Placement) -> String {
    serde_json::to_string(placement).unwrap()
}

fn show_puller(puller: &Puller) -> String {
    let Puller { strategy, max_unavailable, retain, deadline } = puller;
    format!("{strategy}, max unavailable {max_unavailable}, retain {retain}, deadline {deadline:?}")
}

fn show_failure(failure: &Failure) -> String {
    let mut text = String::new();
    failure.problems().iter().for_each(|problem| show_problem(&mut text, problem, Severity::Error));
    text
}

fn show_problem(text: &mut String, problem: &Problem, severity: Severity) {
    writeln!(text, "{}\n", render(problem, severity, Style::Plain)).unwrap();
}
