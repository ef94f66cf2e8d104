//! The words that people read: documentation, manifests, messages and doc comments are American English of this field.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Where a phrase has a better one.
const PHRASES: [(&str, &str); 18] = [
    ("anew", "again, re-read, from scratch"),
    ("beside", "in addition to, next to"),
    ("besides", "in addition"),
    ("for ever", "forever, indefinitely"),
    ("somebody", "someone, another writer"),
    ("whoever", "anyone who"),
    ("heeded", "respected"),
    ("folder", "directory"),
    ("folders", "directories"),
    ("nothing else", "only"),
    ("` is no", "is not a valid"),
    ("honour", "honor"),
    ("honoured", "honored"),
    ("colour", "color"),
    ("licence", "license"),
    ("licences", "licenses"),
    ("learnt", "learned"),
    ("organisation", "organization"),
];

/// Generated from strings and doc comments of `src`, which are read there.
const GENERATED: [&str; 5] = [
    "docs/reference/cli.md",
    "docs/reference/files.md",
    "docs/guides/errors.md",
    "docs/schema",
    "example-repo/.larder/schema",
];

/// Not converted yet. This list only shrinks.
const PENDING: [&str; 8] = [
    "docs/decisions",
    "src/cli",
    "src/config.rs",
    "src/example.rs",
    "src/io/",
    "src/local",
    "src/model",
    "src/stages/",
];

fn files(start: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut paths: Vec<PathBuf> = vec![root.join(start)];
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            paths.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if let Ok(text) = fs::read_to_string(&path) {
            let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            if !GENERATED.iter().chain(&PENDING).any(|skipped| name.starts_with(skipped)) {
                found.push((name, text));
            }
        }
    }
    found
}

fn contains(line: &str, phrase: &str) -> bool {
    let letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    line.match_indices(phrase)
        .any(|(at, _)| !letter(line[..at].chars().next_back()) && !letter(line[at + phrase.len()..].chars().next()))
}

/// What a person reads of a line of Rust: its doc comment, or its string literals.
fn readable(line: &str) -> String {
    let line = line.trim();
    if line.starts_with("///") || line.starts_with("//!") {
        return line.to_owned();
    }
    line.split('"').skip(1).step_by(2).collect::<Vec<_>>().join("\n")
}

#[test]
fn texts_avoid_phrases_that_have_a_better_one() {
    let mut offenders = Vec::new();
    for (name, text) in
        ["README.md", "CONTRIBUTING.md", "docs", "example-repo", "deploy", "src"].iter().flat_map(|start| files(start))
    {
        for (number, line) in text.lines().enumerate() {
            let line = if name.ends_with(".rs") { readable(line) } else { line.to_owned() }.to_lowercase();
            for (phrase, better) in PHRASES.iter().filter(|(phrase, _)| contains(&line, phrase)) {
                offenders.push(format!("{name}:{}: `{phrase}`: {better}", number + 1));
            }
        }
    }
    assert!(offenders.is_empty(), "{}", offenders.join("\n"));
}
