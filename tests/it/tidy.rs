//! House rules that a machine can check.

use std::{
    fs,
    path::{Path, PathBuf},
};

use larder::model::text::is_unseen;

fn rust_files(folder: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    assert!(!found.is_empty(), "{folder} holds no Rust file");
    found
}

/// A file without its unit tests.
fn code(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text)
}

fn is_test(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "tests.rs") || path.components().any(|part| part.as_os_str() == "tests")
}

fn complain_about(rule: &str, offenders: &[String]) {
    assert!(offenders.is_empty(), "{rule}:\n{}", offenders.join("\n"));
}

#[test]
fn every_file_says_what_it_is_for() {
    let files = rust_files("src").into_iter().chain(rust_files("tests"));
    let offenders: Vec<_> =
        files.filter(|(_, text)| !text.starts_with("//!")).map(|(path, _)| path.display().to_string()).collect();
    complain_about("a file starts with a //! line", &offenders);
}

#[test]
fn files_are_small() {
    let size = |text: &str| {
        code(text).lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
    };
    let files: Vec<_> = rust_files("src").into_iter().filter(|(path, _)| !is_test(path)).collect();
    let large: Vec<_> = files
        .iter()
        .filter(|(_, text)| size(text) > 500)
        .map(|(path, text)| format!("{}: {} lines of code", path.display(), size(text)))
        .collect();
    complain_about("no file has more than 500 lines of code", &large);
    let mut sizes: Vec<_> = files.iter().map(|(_, text)| size(text)).collect();
    sizes.sort_unstable();
    let median = sizes[sizes.len() / 2];
    assert!(median <= 150, "half of the files have more than {median} lines of code; about 130 is wanted");
}

#[test]
fn decisions_are_pure() {
    let forbidden = [
        "tokio",
        "async ",
        ".await",
        "kube::",
        "reqwest",
        "std::fs",
        "std::env",
        "TcpStream",
        "UdpSocket",
        "ToSocketAddrs",
        "::now()",
        "SystemTime",
        "Instant",
        "crate::io",
        "crate::pipeline",
        "crate::controller",
        "crate::cli",
        "crate::server",
    ];
    let mut offenders = Vec::new();
    for (path, text) in ["src/stages", "src/model"].into_iter().flat_map(rust_files) {
        if is_test(&path) {
            continue;
        }
        for (number, line) in code(&text).lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
            for word in forbidden.iter().filter(|word| line.contains(**word)) {
                offenders.push(format!("{}:{}: {word}", path.display(), number + 1));
            }
        }
    }
    complain_about("stages and model know no client, clock, file or environment", &offenders);
}

#[test]
fn the_arrows_of_the_architecture_hold() {
    let mut offenders = Vec::new();
    for (folder, forbidden) in [
        ("src/model", &["crate::stages", "crate::io"][..]),
        ("src/io", &["crate::stages", "crate::pipeline", "crate::controller", "crate::cli", "crate::server"]),
        ("src/server", &["crate::stages", "crate::io", "crate::pipeline", "crate::cli"]),
        ("src/pipeline", &["crate::controller", "crate::cli", "crate::server"]),
    ] {
        for (path, text) in rust_files(folder) {
            for word in forbidden.iter().filter(|word| code(&text).contains(**word)) {
                offenders.push(format!("{}: {word}", path.display()));
            }
        }
    }
    complain_about("edges → pipeline → {stages, io} → model", &offenders);
}

/// One place says which characters are not seen: a second list would miss some, or soon differ.
#[test]
fn text_from_outside_is_cleaned_in_one_place() {
    /// What is not about showing text: marks at the start of files, and what YAML or Markdown need escaped.
    const OTHERS: [(&str, &str); 4] = [
        ("src/stages/source/text.rs", "what a file may hold"),
        ("src/stages/render/sandbox.rs", "what YAML needs escaped"),
        ("src/stages/review/markdown/escape.rs", "@\\u{2060}"),
        ("src/model/text.rs", "this place"),
    ];
    let mut offenders = Vec::new();
    for (path, text) in rust_files("src").into_iter().filter(|(path, _)| !is_test(path)) {
        if OTHERS.iter().any(|(other, _)| path.ends_with(other)) {
            continue;
        }
        for (number, line) in code(&text).lines().enumerate() {
            let mut escapes = line.split("\\u{").skip(1).filter_map(|rest| {
                let code = u32::from_str_radix(rest.split('}').next()?, 16).ok()?;
                char::from_u32(code)
            });
            let is_list = escapes.any(is_unseen) && !line.contains("strip_prefix") && !line.contains("trim_start");
            if is_list || line.contains("is_control") {
                offenders.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
            }
        }
    }
    complain_about("use the functions of src/model/text.rs", &offenders);
}

/// `tests/cases/README.md` names a test for each case.
#[test]
fn the_tests_of_the_cases_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("tests/cases/README.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| case"));
    let names = rows.flat_map(|row| row.split('`').skip(1).step_by(2)).filter(|name| name.contains('/'));
    let missing: Vec<String> = names
        .filter(|name| match name.split_once("::") {
            Some((file, test)) => {
                let text = fs::read_to_string(root.join(file)).unwrap_or_default();
                !text.contains(&format!("fn {test}("))
            }
            None if name.starts_with("load/") => !root.join("tests/cases").join(name).is_file(),
            None => false,
        })
        .map(str::to_owned)
        .collect();
    complain_about("a test that tests/cases/README.md names", &missing);
}

/// The number of a case in a private collection: a letter and one or two digits, such as in a name or in a comment.
fn is_private_number(word: &str) -> bool {
    let word = word.to_ascii_uppercase();
    let digits = word.strip_prefix(|c: char| matches!(c, 'A'..='F' | 'T' | 'R')).unwrap_or_default();
    let digits = digits.strip_suffix(|c: char| matches!(c, 'A'..='E')).unwrap_or(digits);
    matches!(digits.len(), 1 | 2) && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Comments state the fact or link the public issue or specification: a private number tells a reader nothing.
#[test]
fn comments_name_no_private_numbers() {
    let mut offenders = Vec::new();
    for (path, text) in ["src", "tests"].into_iter().flat_map(rust_files) {
        for (number, line) in text.lines().enumerate() {
            // What stands in quotes is a name of the code's own.
            let Some((_, comment)) = line.split_once("// ").or_else(|| line.split_once("/// ")) else { continue };
            let prose: String = comment.split('`').step_by(2).collect();
            let mut words = prose.split(|c: char| !c.is_alphanumeric() && c != '+');
            if let Some(word) =
                words.find(|word| word.starts_with(|c: char| c.is_ascii_uppercase()) && is_private_number(word))
            {
                offenders.push(format!("{}:{}: {word}", path.display(), number + 1));
            }
        }
    }
    complain_about("a comment states the fact or links the public source", &offenders);
}

#[test]
fn tests_and_cases_are_named_by_what_they_show() {
    let mut offenders = Vec::new();
    for (path, text) in ["src", "tests"].into_iter().flat_map(rust_files) {
        let names = text
            .lines()
            .filter_map(|line| line.trim_start().trim_start_matches("async ").strip_prefix("fn ")?.split('(').next());
        let numbered = names.filter(|name| name.split('_').next().is_some_and(is_private_number));
        offenders.extend(numbered.map(|name| format!("{}: {name}", path.display())));
    }
    let mut directories = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy();
            if name.split(['-', '_', '.']).next().is_some_and(is_private_number) {
                offenders.push(path.display().to_string());
            }
            if path.is_dir() && !path.is_symlink() {
                directories.push(path);
            }
        }
    }
    complain_about("a name says what is shown", &offenders);
}
