//! Lock commits as plain `git log` reads them.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use larder::{
    io::folder,
    model::{
        digest::Digest,
        lock::{LockChange, Lockfile, Move, Previous},
        snapshot::Entry,
    },
    stages::lock::message,
};

/// Runs git in a directory, with no configuration but its own.
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

/// A file that is not checked out is not a removed file.
#[test]
fn a_sparse_checkout_removes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (up, clone) = (directory.path().join("up"), directory.path().join("clone"));
    let root = up.join("images");
    for path in ["larder.yaml", "environments/a/x.yaml", "environments/b/y.yaml", "lock/a/x.yaml", "lock/b/y.yaml"] {
        let file = root.join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, path).unwrap();
    }
    git(directory.path(), &["init", "--quiet", "up"]);
    git(&up, &["add", "-A"]);
    git(&up, &["commit", "--quiet", "-m", "all"]);
    let complete = folder::snapshot(&root).unwrap().files;
    assert_eq!(complete.len(), 5);
    let removed = complete.iter().filter(|(path, _)| path.as_str() != "environments/a/x.yaml");
    let removed: std::collections::BTreeMap<_, _> =
        removed.map(|(path, entry)| (path.clone(), entry.clone())).collect();
    let (url, clone_path) = (format!("file://{}", up.display()), clone.display().to_string());
    for (sparse, is_partial) in [
        (vec!["--no-cone", "/images/larder.yaml", "/images/environments/a"], false),
        (vec!["--cone", "--no-sparse-index", "images/environments/a"], false),
        (vec!["--cone", "--sparse-index", "images/environments/a"], false),
        (vec!["--cone", "images/environments/a"], true),
    ] {
        let filter = if is_partial { "--filter=blob:none" } else { "--no-hardlinks" };
        git(&up, &["config", "uploadpack.allowFilter", "true"]);
        git(directory.path(), &["clone", "--quiet", "--no-checkout", filter, &url, &clone_path]);
        git(&clone, &[&["sparse-checkout", "set"], &*sparse].concat());
        git(&clone, &["checkout", "--quiet"]);
        assert_eq!(git(&clone, &["status", "--porcelain"]), "");
        assert!(!clone.join("images/lock/b/y.yaml").exists(), "{sparse:?}");
        let found = folder::snapshot(&clone.join("images"));
        if is_partial {
            // What Git does not have either is unknown, and not removed.
            let found = found.unwrap().files;
            assert!(found.keys().eq(complete.keys()), "{found:?}");
            assert!(
                matches!(&found["lock/b/y.yaml"], Entry::Unread(why) if why.contains("sparse checkout")),
                "{found:?}"
            );
        } else {
            assert_eq!(found.unwrap().files, complete, "{sparse:?}");
            std::fs::remove_file(clone.join("images/environments/a/x.yaml")).unwrap();
            assert_eq!(
                folder::snapshot(&clone.join("images")).unwrap().files,
                removed,
                "what a person removes is removed"
            );
        }
        std::fs::remove_dir_all(&clone).unwrap();
    }
}
