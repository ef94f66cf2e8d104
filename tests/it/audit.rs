//! Auditors' answers, compared with those that plain git gives to the commands of `docs/guides/audit.md`.

mod generate;
mod odd;
mod random;
mod unreadable;
mod verify;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use generate::{Size, command, generate};
use tempfile::TempDir;

/// Runs larder on a repository.
fn run(repository: &Path, arguments: &[&str]) -> Output {
    let mut larder = Command::new(env!("CARGO_BIN_EXE_larder"));
    larder.args(arguments).arg("--repo").arg(repository).env("TZ", "UTC").env_remove("LARDER_CACHE_DIR");
    larder.output().unwrap()
}

/// What larder prints, having succeeded without a warning.
fn larder(repository: &Path, arguments: &[&str]) -> String {
    let output = run(repository, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !errors.contains("warning"), "larder {arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// The rows of an answer in CSV, each by its columns' names.
fn rows(repository: &Path, arguments: &[&str]) -> Vec<BTreeMap<String, String>> {
    let text = larder(repository, &[arguments, &["--output", "csv"]].concat());
    csv::Reader::from_reader(text.as_bytes()).deserialize().map(Result::unwrap).collect()
}

/// Some columns of rows, joined by spaces.
fn columns(rows: &[BTreeMap<String, String>], names: &[&str]) -> Vec<String> {
    rows.iter().map(|row| names.iter().map(|name| row[*name].as_str()).collect::<Vec<_>>().join(" ")).collect()
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}

/// The command of the guide that follows the comment `# name`, run in the repository with these variables.
fn guide(repository: &Path, name: &str, variables: &[(&str, &str)]) -> Vec<String> {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guides/audit.md");
    let text = std::fs::read_to_string(guide).unwrap();
    let start = format!("```sh\n# {name}\n");
    let (_, script) = text.split_once(&start).unwrap_or_else(|| panic!("docs/guides/audit.md has no `{name}`"));
    let (script, _) = script.split_once("```").unwrap();
    let mut shell = Command::new("bash");
    let git = command(repository);
    shell.envs(git.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = shell.current_dir(repository).args(["-euc", script]).envs(variables.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn generated() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let repository = folder.path().join("environments.git");
    generate(&repository, Size { commits: 120, environments: 6, images: 3 });
    (folder, repository)
}

#[test]
fn what_moved_and_when_is_what_the_trailers_say() {
    let (_folder, repository) = generated();
    let moved = |row: &&BTreeMap<String, String>| row["old_digest"] != row["new_digest"];
    let all = rows(&repository, &["history"]);
    let held = all.iter().filter(|row| !moved(row)).count();
    assert!(held > 2 && all.iter().filter(|row| !row["hold"].is_empty()).count() == held, "{held}");
    let found: Vec<_> = all.iter().filter(moved).cloned().collect();
    let found = columns(&found, &["commit", "time", "environment", "image", "old_digest", "new_digest"]);
    let expected: Vec<_> = guide(&repository, "what moved, and when", &[])
        .into_iter()
        .map(|line| {
            let cells: Vec<_> = line.split(' ').map(|cell| if cell == "none" { "" } else { cell }).collect();
            cells.join(" ").replace("+00:00", "Z")
        })
        .collect();
    assert!(expected.len() > 120, "{}", expected.len());
    assert_eq!(found, expected);

    let one = columns(&rows(&repository, &["history", "tenant-03/env-003"]), &["commit"]);
    let variables = [("environment", "tenant-03/env-003")];
    assert_eq!(
        one[..one.len() - 2],
        guide(&repository, "one environment", &variables),
        "the first commit has 3 images"
    );

    let named = rows(&repository, &["history", "--image", "image 1"]);
    assert!(!named.is_empty() && named.iter().all(|row| row["image"] == "image 1"));
}

#[test]
fn who_brought_what_is_here_is_what_git_finds() {
    let (_folder, repository) = generated();
    let blame = rows(&repository, &["blame", "tenant-03/env-003"]);
    assert_eq!(blame.len(), 3);
    for row in blame {
        let variables = [("environment", "tenant-03/env-003"), ("image", row["image"].as_str())];
        let expected = guide(&repository, "who brought an image its digest", &variables);
        assert_eq!(expected, [format!("{} {}", row["commit"], row["author"])]);
    }
}

#[test]
fn who_ran_a_digest_is_what_git_finds() {
    let (_folder, repository) = generated();
    let history = rows(&repository, &["history"]);
    for row in history.iter().step_by(17) {
        let digest = row["new_digest"].as_str();
        let spans = rows(&repository, &["who-ran", &digest[..digest.len() - 40]]);
        let lines = guide(&repository, "who ran a digest", &[("digest", digest)]);
        let found = columns(&spans, &["from_commit", "environment", "image"]).into_iter();
        let ends = spans.iter().filter(|span| !span["to_commit"].is_empty()).cloned().collect::<Vec<_>>();
        let ends = columns(&ends, &["to_commit", "environment", "image"]).into_iter();
        let all: Vec<_> =
            found.map(|line| format!("from {line}")).chain(ends.map(|line| format!("to {line}"))).collect();
        assert_eq!(sorted(all), sorted(lines), "{digest}");
        assert!(spans.iter().all(|span| span["digest"] == digest && span["platform"].is_empty()));
    }
}

#[test]
fn the_state_then_is_what_git_shows() {
    let (_folder, repository) = generated();
    for (time, rev) in [("2023-11-16T00:00:00Z", "main~70"), ("2023-11-15T06:00:00Z", "main~100")] {
        let then = rows(&repository, &["at", time]);
        let shown =
            guide(&repository, "what was locked at a time", &[("time", time), ("environment", "tenant-03/env-003")]);
        let wanted: Vec<_> = then.iter().filter(|row| row["environment"] == "tenant-03/env-003").cloned().collect();
        let found = columns(&wanted, &["digest"]);
        assert_eq!(found, shown, "{time}");
        assert_eq!(then.len(), 18);

        let moved = columns(&rows(&repository, &["diff", time, rev]), &["environment", "image"]);
        assert_eq!(rows(&repository, &["diff", rev, rev]), []);
        let after = rows(&repository, &["at", rev]);
        let changed = then.iter().zip(&after).filter(|(a, b)| a != b).map(|(a, _)| a.clone()).collect::<Vec<_>>();
        assert_eq!(moved, columns(&changed, &["environment", "image"]));
        let files = guide(&repository, "which environments differ", &[("old", rev), ("new", "main")]);
        let mut environments = columns(&rows(&repository, &["diff", rev, "main"]), &["environment"]);
        environments.dedup();
        assert_eq!(environments, files);
    }
}
