//! Bytes that nobody would write, and bytes that nobody can predict.

use larder::{
    diagnostics::{Severity, Style, render},
    model::{
        failure::Category,
        snapshot::{Entry, Snapshot},
    },
    stages::{lint::lint, load::load},
};
use proptest::prelude::*;

use super::{ENVIRONMENT, SETTINGS, load_with};

/// Reads one environment; its first problem's category and text, or `None` when it is good.
fn problem(bytes: impl AsRef<[u8]>) -> Option<(Category, String)> {
    let environments = load_with([("environments/t/a.yaml", bytes)]);
    let result = environments.environments.into_values().next().unwrap();
    result.err().map(|failure| (failure.category(), render(&failure.problems()[0], Severity::Error, Style::Plain)))
}

/// An environment with a line after its first image.
fn with(line: &str) -> String {
    format!("{ENVIRONMENT}{line}\n")
}

#[test]
fn line_ends_and_byte_order_marks_do_not_matter() {
    assert_eq!(problem(ENVIRONMENT.replace('\n', "\r\n")), None);
    assert_eq!(problem(format!("\u{feff}{ENVIRONMENT}")), None);
    assert_eq!(problem(format!("\u{feff}---\r\n{ENVIRONMENT}")), None);
    assert_eq!(problem(ENVIRONMENT.trim_end()), None);
    let (category, text) = problem(with("---\n\u{feff}# c")).unwrap();
    assert!(category == Category::Syntax && text.contains("a.yaml:8:1"), "{text}");
}

/// What is reported of a pass must fit an object of Kubernetes.
#[test]
fn problems_are_few_and_the_rest_are_counted() {
    let unknown: String = (0..20).map(|field| format!("  field{field}: 1\n")).collect();
    let text = format!("{ENVIRONMENT}{unknown}");
    let files: Vec<(String, &[u8])> =
        (0..1500).map(|number| (format!("environments/t/e{number}.yaml"), text.as_bytes())).collect();
    let environments = load_with(files.iter().map(|(path, bytes)| (path.as_str(), *bytes))).environments;
    let failures: Vec<_> = environments.values().filter_map(|result| result.as_ref().err()).collect();
    assert_eq!(failures.len(), 1500);
    let total: usize = failures.iter().map(|failure| failure.problems().len()).sum();
    assert!(total <= 3500, "{total}");
    let last = failures.last().unwrap().problems();
    assert_eq!(last.len(), 2);
    assert_eq!(last[1].message, "and 19 more problems");
}

#[test]
fn bombs_are_refused() {
    let rows: String =
        (1..10).map(|i| format!("  a{i}: &a{i} [{}]\n", vec![format!("*a{}", i - 1); 9].join(","))).collect();
    let aliases = format!("spec:\n  a0: &a0 [{}]\n{rows}", ["x"; 9].join(","));
    let million = with(&format!("  affinity: [{}]", "x,".repeat(1_000_000)));
    let block: String = (0..2_000).map(|i| format!("{}a:\n", " ".repeat(i))).collect();
    for (what, text) in [
        ("aliases", aliases.replace("spec:", "  affinity:").replace("\n  a", "\n    a")),
        ("aliases in an unknown file", aliases),
        ("brackets", "[".repeat(100_000)),
        ("braces", "{".repeat(100_000)),
        ("nested brackets", with(&format!("  affinity: {}", "[".repeat(100_000)))),
        ("indentation", block),
        ("elements", million),
        ("a long scalar", with(&format!("  displayName: {}", "x".repeat(5_000_000)))),
        ("a long reference", ENVIRONMENT.replace("app:1", &"x".repeat(3_000_000))),
        ("a long key", with(&format!("  {}: 1", "x".repeat(100_000)))),
        ("anchors", with(&format!("  affinity: {}x", "&a ".repeat(10_000)))),
        ("comments", with(&"#\n".repeat(100_000)).replace("app:1", "App/:1")),
    ] {
        let text = if what == "aliases" { format!("{ENVIRONMENT}{text}") } else { text };
        let (_, message) = problem(&text).unwrap_or_else(|| panic!("{what} was accepted"));
        assert!(message.len() < 2_000, "{what}: {message}");
    }
}

#[test]
fn no_secret_is_repeated() {
    for line in [
        "  password: canary",
        "  images: [{name: a, image: app:1, auth: {username: u, password: canary}}]",
        "  displayName: a: b password canary",
        "  pool: &x https://u:canary@h/a\n  refresh: *x",
    ] {
        let (_, text) = problem(with(line)).unwrap();
        assert!(!text.contains("canary"), "{text}");
    }
    for image in
        ["user:canary@quay.io/a/b:1", "https://user:canary@quay.io/a", "\"user:canary@quay.io/a b\"", "user:canary@A/B"]
    {
        let (_, text) = problem(ENVIRONMENT.replace("app:1", image)).unwrap();
        assert!(!text.contains("canary"), "{text}");
    }
}

/// Submarine's files are the ones that come with passwords.
#[test]
fn no_secret_of_other_kinds_is_repeated() {
    let puller = "apiVersion: org.apache.submarine/v1\nkind: JupyterImagePuller\nspec:\n  images:\n    - name: a\n      image: app:1\n";
    for auth in [
        "      auth: {username: u, password: canary}",
        "      auth: {username: canary, password: canary}",
        "      auth: {username: canary1, password: canary}",
        "      auth: {username: u, password: [canary]}",
        "      auth: {username: u, password: {canary: canary}}",
        "      auth: {username: u, password: canary, email: a: b}",
        "      auth: {username: u, pasword: canary}",
        "      auth: {password: canary}\n      auth: {password: canary}",
        "      auth: canary",
        "      auth: {password: canary\n",
        "      auth:\n        username: u\n        password: canary\n       email: x",
    ] {
        let (_, text) = problem(format!("{puller}{auth}\n")).unwrap_or_else(|| panic!("{auth}"));
        assert!(!text.contains("canary"), "{auth}: {text}");
    }
    for spec in [
        "{\"type\": \"password\", \"username\": \"u\", \"password\": \"canary\"}",
        "{\"username\": \"canary\", \"password\": \"canary\"",
        "\"canary\"",
        "[\"canary\"]",
    ] {
        let (_, text) =
            problem(format!("{{\"name\": \"a\", \"dockerImage\": \"app:1\", \"dockerAuthSpec\": {spec}}}")).unwrap();
        assert!(!text.contains("canary"), "{spec}: {text}");
    }
}

fn load_and_render(files: Vec<(String, Vec<u8>)>) {
    let files = files.into_iter().map(|(path, bytes)| (path, Entry::File(bytes.into()))).collect();
    let snapshot = Snapshot { files, ..Snapshot::default() };
    let problems = match load(&snapshot) {
        Ok(found) => {
            let failures = found.environments.values().filter_map(|result| result.as_ref().err());
            let problems = failures.flat_map(|failure| failure.problems().to_vec());
            problems.chain(lint(&snapshot, &found)).chain(found.strays.clone()).collect()
        }
        Err(failure) => failure.problems().to_vec(),
    };
    for problem in problems {
        render(&problem, Severity::Error, Style::Coloured);
    }
}

/// Pieces that YAML gives a meaning, to be put anywhere.
const PIECES: [&str; 24] = [
    ":", "- ", "\n", "  ", "\t", "{", "}", "[", "]", "\"", "'", "&a ", "*a", "<<: *a", "!x ", "|\n", ">\n", "#",
    "---\n", "~", "\u{feff}", "é", "\r", "%",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), path in "\\PC{0,12}") {
        load_and_render(vec![
            ("larder.yaml".to_owned(), SETTINGS.into()),
            ("environments/t/a.yaml".to_owned(), bytes.clone()),
            (format!("environments/{path}.yaml"), ENVIRONMENT.into()),
            (format!("lock/{path}.yaml"), bytes.clone()),
        ]);
        load_and_render(vec![("larder.yaml".to_owned(), bytes)]);
    }

    #[test]
    fn no_edit_panics(edits in proptest::collection::vec((any::<proptest::sample::Index>(), 0..PIECES.len(), 0..4_usize), 1..6)) {
        let full = include_str!("../../cases/load/full/environments/research/geospatial.yaml");
        let settings = include_str!("../../cases/load/full/larder.yaml");
        let edit = |text: &str| {
            let mut characters: Vec<char> = text.chars().collect();
            for (at, piece, remove) in &edits {
                let start = at.index(characters.len().max(1)).min(characters.len());
                let end = (start + remove).min(characters.len());
                characters.splice(start..end, PIECES[*piece].chars());
            }
            characters.into_iter().collect::<String>().into_bytes()
        };
        load_and_render(vec![
            ("larder.yaml".to_owned(), settings.into()),
            ("environments/research/a.yaml".to_owned(), edit(full)),
        ]);
        load_and_render(vec![("larder.yaml".to_owned(), edit(settings))]);
    }
}
