//! Lock commits as plain `git log` reads them.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use larder::{
    model::{
        digest::Digest,
        lock::{LockChange, Lockfile, Move, Previous},
    },
    stages::lock::message,
};

/// Runs git in a folder, with no configuration but its own.
fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(folder)
        .args(["-c", "user.name=larder", "-c", "user.email=larder@example.org"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::null())
        .output()
        .expect("git is needed for this test: `make test` installs it");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn digest(word: &str) -> Digest {
    Digest::sha256(word.as_bytes())
}

fn side(tag: &str, word: &str) -> Option<Previous> {
    let reference = format!("quay.io/jupyter/scipy-notebook:{tag}").parse().unwrap();
    Some(Previous { reference, digest: digest(word) })
}

fn moved(environment: &str, image: &str, old: Option<Previous>, new: Option<Previous>) -> Move {
    Move { environment: environment.parse().unwrap(), image: image.parse().unwrap(), old, new }
}

fn change(moves: Vec<Move>) -> LockChange {
    let files = moves.iter().map(|moved| (moved.environment.lock_path(), Some(vec![]))).collect();
    let lock = moves.iter().map(|moved| (moved.environment.clone(), Ok(Lockfile::default()))).collect();
    LockChange { lock, files, moves, ..LockChange::default() }
}

#[test]
fn git_log_reads_the_trailers() {
    let folder = tempfile::tempdir().unwrap();
    git(folder.path(), &["init", "--quiet", "."]);
    let one = moved("research/geospatial", "notebook", side("2026-11-02", "one"), side("2026-11-09", "two"));
    // Names that look like trailers, comments and dividers.
    let crafted = moved("research/Larder-New-Digest: x", "--- Larder-Image: y", None, side("1", "three"));
    let removed = moved("teaching/#intro", "Signed-off-by: z", side("1", "one"), None);
    let messages =
        [change(vec![one.clone()]), change(vec![one, crafted, removed])].map(|change| message(&change, "0.1.0"));
    for message in &messages {
        git(folder.path(), &["commit", "--quiet", "--allow-empty", "--cleanup=verbatim", "--message", message]);
    }
    let log = |format: &str| -> Vec<String> {
        let format = format!("--format={format}");
        git(folder.path(), &["log", "--reverse", &format])
            .lines()
            .filter(|line| !line.is_empty())
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(
        log("%s"),
        ["lock: research/geospatial notebook 2026-11-02 → 2026-11-09", "lock: 3 images of 3 environments"]
    );
    let two = digest("two").to_string();
    let three = digest("three").to_string();
    let none = "none".to_owned();
    let trailer = |key: &str| log(&format!("%(trailers:key={key},valueonly)"));
    assert_eq!(trailer("Larder-New-Digest"), [two.clone(), two, three, none.clone()]);
    assert_eq!(trailer("Larder-Old-Digest")[2], none);
    assert_eq!(trailer("Larder-Version"), ["0.1.0", "0.1.0"]);
    assert_eq!(
        trailer("Larder-Environment")[1..],
        ["research/geospatial", "research/Larder-New-Digest: x", "teaching/#intro"]
    );
    assert_eq!(trailer("Larder-Image")[1..], ["notebook", "--- Larder-Image: y", "Signed-off-by: z"]);
    assert_eq!(trailer("Signed-off-by"), Vec::<String>::new());
}
