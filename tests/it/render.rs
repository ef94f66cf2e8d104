//! Cases of the render stage: each directory of `tests/cases/render` is an environment repository with what comes of it.

use std::{fmt::Write as _, path::Path};

use larder::{
    diagnostics::{Severity, Style, render as show_problem},
    model::{
        digest::Digest,
        lock::{LockedImage, Lockfile},
        manifest::Manifests,
        yaml::to_yaml,
    },
    stages::{
        lint::lint,
        load::{Environments, load},
        render::{Options, render},
    },
};

use crate::{cases, load::snapshot};

mod hostile;

#[test]
fn cases() {
    cases::for_each("render", |case| show(&manifests(&load(&snapshot(case)).unwrap())));
}

fn manifests(environments: &Environments) -> Manifests {
    let Environments { environments, settings, templates, lock, .. } = environments;
    render(environments, settings, templates, lock, &Options::default())
}

fn show(manifests: &Manifests) -> String {
    let mut text = String::new();
    for (owner, result) in manifests {
        writeln!(text, "=== {owner}").unwrap();
        match result {
            Ok(manifests) => manifests.iter().for_each(|m| write!(text, "---\n{}", to_yaml(&m.object)).unwrap()),
            Err(failure) => {
                for problem in failure.problems() {
                    writeln!(text, "{}", show_problem(problem, Severity::Error, Style::Plain).trim_end()).unwrap();
                }
            }
        }
    }
    text
}

/// The example that `larder init` writes has nothing to complain about, and all of it is rendered once it is locked.
#[test]
fn the_example_is_rendered() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("example-repo");
    let snapshot = snapshot(&example);
    let mut environments = load(&snapshot).unwrap();
    assert!(lint(&snapshot, &environments).is_empty() && environments.strays.is_empty(), "{environments:?}");
    for (id, environment) in &environments.environments {
        let environment = environment.as_ref().unwrap_or_else(|failure| panic!("{failure}"));
        let images = environment.images.iter().map(|image| {
            let locked = LockedImage {
                reference: image.reference.clone(),
                digest: Digest::sha256(b""),
                media_type: "application/vnd.oci.image.index.v1+json".into(),
                platforms: Vec::new(),
                previous: Vec::new(),
                hold: None,
            };
            (image.name.clone(), locked)
        });
        environments.lock.insert(id.clone(), Ok(Lockfile { images: images.collect() }));
    }
    let manifests = manifests(&environments);
    assert_eq!(manifests.len(), environments.environments.len() + environments.settings.tenants.len());
    for (owner, result) in &manifests {
        assert!(result.is_ok(), "{owner}: {result:?}");
    }
}
