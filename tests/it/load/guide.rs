//! `docs/guides/errors.md`: real files with what larder says about them, so that the page stays true.

use std::{fmt::Write as _, fs, path::Path};

use larder::{
    diagnostics::{Severity, Style, render},
    model::failure::Problem,
    stages::{lint::lint, load::load},
};

use super::snapshot;

const INTRODUCTION: &str = "# What larder says about mistakes

This page is made by a test from the files in `tests/cases/load`; `UPDATE=1 cargo test --test it load::` regenerates it.

Every message names the file, line and column, shows the line, says what is expected and what to do. All that is wrong with
a file is told at once, and a broken file changes nothing for any other. `larder validate --output` prints the same as
`json`, as annotations of a pull request (`github`) and for code scanning (`sarif`); [exit codes](../reference/exit-codes.md),
[lints](../reference/lints.md).
";

/// Heading, directory of cases, file.
const SECTIONS: [(&str, &str, &str); 16] = [
    ("Many mistakes in one file", "structure", "environments/t/all-at-once.yaml"),
    ("Values that do not fit", "schema", "environments/t/many-at-once.yaml"),
    ("A misspelled field", "schema", "environments/t/unknown.yaml"),
    ("A duplicate key", "schema", "environments/t/duplicate.yaml"),
    ("A space is missing", "schema", "environments/t/no-space-after-colon.yaml"),
    ("A tab as indentation", "syntax", "environments/t/tab-first.yaml"),
    ("A quote is not closed", "syntax", "environments/t/unclosed-quote.yaml"),
    ("A merge was not finished", "syntax", "environments/t/merge-conflict.yaml"),
    ("Several documents in a file", "syntax", "environments/t/two-documents.yaml"),
    ("A reference in upper case", "references", "environments/t/upper-case-path.yaml"),
    ("A password in Git", "structure", "environments/t/credentials-and-more.yaml"),
    ("A file that SOPS encrypted", "secrets", "environments/t/sops.yaml"),
    ("An unknown pool", "schema", "environments/t/pool-unknown.yaml"),
    ("An unknown lint", "lints", "environments/t/e.yaml"),
    ("Valid, but likely a mistake", "lints", "environments/t/a.yaml"),
    ("Warnings about larder.yaml", "lints-pools", "larder.yaml"),
];

#[test]
fn the_guide_shows_what_is_said() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut page = INTRODUCTION.to_owned();
    for (heading, case, path) in SECTIONS {
        let folder = root.join("tests/cases/load").join(case);
        let text = fs::read_to_string(folder.join(path)).unwrap();
        let snapshot = snapshot(&folder);
        let environments = load(&snapshot).unwrap();
        let warnings = lint(&snapshot, &environments);
        let failures = environments.environments.values().filter_map(|result| result.as_ref().err());
        let errors =
            failures.flat_map(larder::model::failure::Failure::problems).map(|problem| (problem, Severity::Error));
        let warnings = warnings.iter().map(|problem| (problem, Severity::Warning));
        let is_here = |problem: &Problem| problem.location.as_ref().is_some_and(|location| location.path == path);
        let said: Vec<String> = errors
            .chain(warnings)
            .filter(|(problem, _)| is_here(problem))
            .map(|(problem, severity)| render(problem, severity, Style::Plain))
            .collect();
        assert!(!said.is_empty(), "{path}");
        // Passwords of a file are not shown on the page either.
        let text = text.replace("canary", "…");
        write!(page, "\n## {heading}\n```yaml\n{}\n```\n```text\n{}\n```\n", text.trim_end(), said.join("\n\n"))
            .unwrap();
    }
    let file = root.join("docs/guides/errors.md");
    if std::env::var_os("UPDATE").is_some() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, &page).unwrap();
    }
    let written = fs::read_to_string(&file).unwrap_or_default();
    assert!(written == page, "docs/guides/errors.md is out of date: UPDATE=1 cargo test --test it load::guide");
}
