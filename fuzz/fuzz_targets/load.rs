//! Any bytes as a file of an environment repository: nothing panics, every problem can be shown, has the file's path and
//! says what to do, and the same bytes give the same result.

#![no_main]

use larder::{
    diagnostics::{Severity, Style, github, render},
    model::{
        failure::Problem,
        snapshot::{Entry, Snapshot},
        text::is_unseen,
    },
    stages::{lint::lint, load::load},
};
use libfuzzer_sys::fuzz_target;

const SETTINGS: &[u8] = b"apiVersion: larder.dev/v1alpha1
kind: Settings
spec:
  tenants: {t: {namespace: t}}
  pools: {gpu: {nodeSelector: {pool: gpu}}}
";
const FILE: &str = "environments/t/a.yaml";

fuzz_target!(|data: &[u8]| {
    check(&[("larder.yaml", SETTINGS), (FILE, data)], FILE);
    check(&[("larder.yaml", data)], "larder.yaml");
});

fn check(files: &[(&str, &[u8])], path: &str) {
    let files = files.iter().map(|(path, bytes)| ((*path).to_owned(), Entry::File((*bytes).into()))).collect();
    let snapshot = Snapshot { files, ..Snapshot::default() };
    let result = load(&snapshot);
    assert!(result == load(&snapshot), "the same bytes give another result");
    let (errors, warnings) = match result {
        Ok(found) => {
            let failures = found.environments.values().filter_map(|result| result.as_ref().err());
            (failures.flat_map(|failure| failure.problems().to_vec()).collect(), lint(&snapshot, &found))
        }
        Err(failure) => (failure.problems().to_vec(), Vec::new()),
    };
    errors.iter().for_each(|problem| show(problem, Severity::Error));
    warnings.iter().for_each(|problem| show(problem, Severity::Warning));
    for problem in errors {
        assert_eq!(problem.location.map(|location| location.path).as_deref(), Some(path));
        assert!(problem.hint.is_some() || problem.message.starts_with("invalid YAML"), "{}", problem.message);
    }
}

fn show(problem: &Problem, severity: Severity) {
    let text = render(problem, severity, Style::Plain);
    assert!(text.chars().all(|c| c == '\n' || !is_unseen(c)), "{text:?}");
    assert!(!github::annotation(problem, severity, "").contains('\n'));
}
