//! Any text as a template of a repository: it renders or is an error of the environment that uses it, and larder goes on.
//!
//! Templates run in processes of their own, which are this program again.

#![no_main]

use larder::{
    cli::template_worker,
    model::{
        failure::Category,
        manifest::Owner,
        snapshot::{Entry, Snapshot},
    },
    stages::{
        load::load,
        render::{Options, render},
    },
};
use libfuzzer_sys::fuzz_target;

const SETTINGS: &str = include_str!("../../tests/cases/render/templates/larder.yaml");
const ENVIRONMENT: &str = include_str!("../../tests/cases/render/templates/environments/research/geo.yaml");
const LOCKFILE: &str = include_str!("../../tests/cases/render/templates/lock/research/geo.yaml");

fuzz_target!(
    init: {
        if template_worker::serve().is_some() {
            std::process::exit(0);
        }
        template_worker::install();
    },
    |template: &str| {
        let files = [
            ("larder.yaml", SETTINGS),
            ("environments/research/geo.yaml", ENVIRONMENT),
            ("lock/research/geo.yaml", LOCKFILE),
            ("templates/puller.yaml.j2", template),
        ];
        let files = files.map(|(path, text)| (path.to_owned(), Entry::File(text.as_bytes().into())));
        let snapshot = Snapshot { files: files.into(), ..Snapshot::default() };
        // A template that is not text fails the whole of it, before it is rendered.
        let Ok(loaded) = load(&snapshot) else { return };
        let manifests =
            render(&loaded.environments, &loaded.settings, &loaded.templates, &loaded.lock, &Options::default());
        for (owner, result) in manifests {
            match (owner, result) {
                (_, Ok(_)) => {}
                (Owner::Environment(_), Err(failure)) => assert_eq!(failure.category(), Category::Template, "{failure}"),
                (Owner::Tenant(_), Err(failure)) => panic!("{failure}"),
            }
        }
    }
);
