//! `larder validate`, the program itself: revisions, what a pull request changes, forms of output, exit codes.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;
use tempfile::TempDir;

const SETTINGS: &str = "apiVersion: larder.dev/v1alpha1
kind: Settings
spec:
  tenants: {t: {namespace: t}}
";

pub(crate) fn environment(image: &str) -> String {
    format!("apiVersion: larder.dev/v1alpha1\nkind: Environment\nspec:\n  images: [{{name: a, image: \"{image}\"}}]\n")
}

/// A Git repository in which `envs/` is an environment repository, with good files in its first commit.
pub(crate) struct World(TempDir);

impl World {
    pub(crate) fn new() -> Self {
        let world = Self(tempfile::tempdir().unwrap());
        world.git(&["init", "-q", "-b", "main"]);
        world.write("larder.yaml", SETTINGS);
        world.write("environments/t/a.yaml", &environment("app:1"));
        world.write("environments/t/b.yaml", &environment("app:2"));
        world.commit();
        world
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join("envs").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        command.current_dir(self.0.path()).env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        command.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]).args(arguments);
        let output = command.output().expect("git is needed: `make cluster-up` installs it");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub(crate) fn commit(&self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", "x"]);
    }

    /// Exit code, standard output and standard error.
    fn validate(&self, arguments: &[&str]) -> (i32, String, String) {
        self.validate_in("envs/environments", arguments)
    }

    fn validate_in(&self, folder: &str, arguments: &[&str]) -> (i32, String, String) {
        self.larder_in(folder, &[&["validate"], arguments].concat())
    }

    /// The path of a file of the environment repository.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.0.path().join("envs").join(path)
    }

    /// A command in the environment repository: exit code, standard output and standard error.
    pub(crate) fn larder(&self, arguments: &[&str]) -> (i32, String, String) {
        self.larder_in("envs", arguments)
    }

    fn larder_in(&self, folder: &str, arguments: &[&str]) -> (i32, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
        command.env_clear().env("HOME", self.0.path()).current_dir(self.0.path().join(folder)).args(arguments);
        let output = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }
}

#[test]
fn exit_codes_tell_errors_from_warnings() {
    let world = World::new();
    assert_eq!(
        world.validate(&["--strict"]),
        (0, "2 environments are valid, 0 errors, 0 warnings\n".into(), "".into())
    );
    world.write("environments/t/b.yaml", &environment("app"));
    let (code, out, err) = world.validate(&[]);
    assert_eq!((code, out.as_str()), (0, "2 environments are valid, 0 errors, 1 warning\n"));
    assert!(err.starts_with("warning[mutable-tag]: ") && err.contains("--> environments/t/b.yaml:4:29"), "{err}");
    assert_eq!(world.validate(&["--strict"]).0, 2);
    world.write("environments/t/a.yaml", &environment("App"));
    let (code, out, err) = world.validate(&["--strict"]);
    assert_eq!((code, out.as_str()), (1, "1 environment is valid, 1 error, 1 warning\n"));
    assert!(err.contains("error[reference]: "), "{err}");
    assert_eq!(world.validate(&["--no-such-flag"]).0, 1);
    world.write("larder.yaml", "kind: Settings\n");
    let (code, out, err) = world.validate(&[]);
    assert_eq!((code, out.as_str()), (1, "0 environments are valid, 1 error, 0 warnings\n"));
    assert!(err.contains("missing field `apiVersion`"), "{err}");
}

#[test]
fn a_revision_is_validated_instead_of_the_folder() {
    let world = World::new();
    world.git(&["tag", "v1"]);
    world.write("environments/t/a.yaml", &environment("App"));
    world.commit();
    assert_eq!(world.validate(&[]).0, 1);
    let first = world.git(&["rev-parse", "HEAD~1"]);
    for revision in ["HEAD~1", "v1", &first, &first[..8]] {
        let (code, _, err) = world.validate(&["--rev", revision]);
        assert_eq!(code, 0, "{revision}: {err}");
    }
    for revision in ["HEAD", "main"] {
        assert_eq!(world.validate(&["--rev", revision]).0, 1, "{revision}");
    }
    let repository = world.0.path().display().to_string();
    assert_eq!(world.validate_in(".", &["--repo", &repository, "--path", "envs", "--rev", "v1"]).0, 0);
    for revision in ["gone", "", "HEAD~9", "--upload-pack=x", &"0".repeat(40)] {
        let (code, out, err) = world.validate(&[&format!("--rev={revision}")]);
        assert!(code == 1 && out.is_empty() && err.contains("hint: "), "{revision}: {err}");
    }
}

#[test]
fn only_what_changed_is_told() {
    let world = World::new();
    world.write("environments/t/a.yaml", &environment("App"));
    world.commit();
    let from = |world: &World, from: &str| {
        let (code, out, _) = world.validate(&["--from", from]);
        (code, out)
    };
    assert_eq!(from(&world, "HEAD"), (0, "0 environments are valid, 0 errors, 0 warnings\n".into()));
    // Not committed yet, which counts too.
    world.write("environments/t/b.yaml", &environment("app:3"));
    world.write("environments/t/c.yaml", &environment("app"));
    assert_eq!(from(&world, "HEAD"), (0, "2 environments are valid, 0 errors, 1 warning\n".into()));
    assert_eq!(from(&world, "HEAD~1"), (1, "2 environments are valid, 1 error, 1 warning\n".into()));
    world.commit();
    let (code, out, _) = world.validate(&["--from", "HEAD~1", "--rev", "HEAD"]);
    assert_eq!((code, out.as_str()), (0, "2 environments are valid, 0 errors, 1 warning\n"));
    // Everything depends on larder.yaml.
    world.write("larder.yaml", &format!("{SETTINGS}  lints: {{allow: [mutable-tag]}}\n"));
    assert_eq!(from(&world, "HEAD"), (1, "2 environments are valid, 1 error, 0 warnings\n".into()));
    // Before there was a larder.yaml, there was nothing.
    world.git(&["checkout", "-q", "--orphan", "empty"]);
    world.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
    assert_eq!(from(&world, "empty").0, 1);
}

#[test]
fn programs_get_the_same() {
    let world = World::new();
    world.write("environments/t/a.yaml", &environment("App"));
    world.write("environments/t/b.yaml", &environment("app"));
    let json: Value = serde_json::from_str(&world.validate(&["--output", "json"]).1).unwrap();
    assert_eq!((&json["valid"], &json["errors"][0]["code"]), (&1.into(), &"reference".into()));
    let warning = &json["warnings"][0];
    assert_eq!((&warning["code"], &json["kind"]), (&"mutable-tag".into(), &"Validation".into()));
    let location = &warning["location"];
    assert_eq!((&location["path"], &location["column"]), (&"environments/t/b.yaml".into(), &29.into()));
    assert!(warning["rendered"].as_str().unwrap().contains("^^^"), "{warning}");

    // Readers of these know the whole repository only.
    let (code, out, _) = world.validate(&["--output", "github"]);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!((code, lines.len()), (1, 3));
    let expected = "::warning file=envs/environments/t/b.yaml,line=4,col=29,endColumn=34,title=larder%3A mutable-tag::";
    assert!(lines[0].starts_with(expected), "{}", lines[0]);
    assert!(lines[1].starts_with("::error file=envs/environments/t/a.yaml,line=4,col=29,"), "{}", lines[1]);

    let (code, out, err) = world.validate(&["--output", "sarif"]);
    let sarif: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &sarif["version"], err.as_str()), (1, &"2.1.0".into(), ""));
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let uris: Vec<&Value> =
        results.iter().map(|result| &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]).collect();
    assert_eq!(uris, ["envs/environments/t/b.yaml", "envs/environments/t/a.yaml"]);
}

#[test]
fn dot_files_are_ignored_and_counted() {
    let world = World::new();
    std::os::unix::fs::symlink("ada@host.1", world.path("environments/t/.#a.yaml")).unwrap();
    world.write("environments/t/.a.yaml.swp", "x");
    world.write("environments/.idea/deeply/below/c.yaml", "x: [");
    world.write("environments/.DS_Store", "x");
    let counted = "2 environments are valid, 0 errors, 0 warnings; 2 dot files ignored\n";
    assert_eq!(world.validate(&["--strict"]), (0, counted.into(), "".into()));
    world.commit();
    assert_eq!(world.validate(&["--rev", "HEAD"]).1, counted);
    let json: Value = serde_json::from_str(&world.validate(&["--output", "json"]).1).unwrap();
    assert_eq!(json["ignored"], 2, "only what would be read is counted");
}

#[test]
fn without_git_a_folder_is_enough() {
    let world = World::new();
    fs::remove_dir_all(world.0.path().join(".git")).unwrap();
    assert_eq!(world.validate(&["--output", "github"]).0, 0);
    let (code, _, err) = world.validate(&["--from", "HEAD"]);
    assert!(code == 1 && err.contains("is not in a Git repository"), "{err}");
}

#[test]
fn every_lint_has_its_section() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/lints.md");
    let page = fs::read_to_string(page).unwrap();
    let sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    for lint in larder::model::lint::Lint::ALL {
        assert!(sections.contains(&lint.as_str()), "docs/reference/lints.md has no section `## {lint}`");
    }
    assert_eq!(sections.len(), larder::model::lint::Lint::ALL.len() + 1, "{sections:?}");
}
