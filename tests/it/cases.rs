//! Directories of `tests/cases`: each is the input of a case, and its `expected.txt` what comes of it.
//!
//! `UPDATE=1 cargo test --test it` writes the expectations again.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Where the cases of an area are.
pub fn folder(area: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(area)
}

/// Compares what `show` finds in each case's directory with its expectation.
pub fn for_each(area: &str, show: impl Fn(&Path) -> String) {
    let mut cases: Vec<PathBuf> = fs::read_dir(folder(area)).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    assert!(!cases.is_empty());
    let wrong: Vec<String> = cases.iter().filter_map(|case| difference(case, &show(case))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The difference to the expectation, if there is one.
fn difference(case: &Path, found: &str) -> Option<String> {
    let path = case.join("expected.txt");
    // The same flag for every directory of cases; not the program's own configuration.
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, found).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    (expected != found).then(|| {
        let diff = similar::TextDiff::from_lines(expected.as_str(), found);
        format!("{}\n{}", case.display(), diff.unified_diff().context_radius(3))
    })
}
