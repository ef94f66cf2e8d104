//! What is generated is committed: schemas, reference pages, and the schemas that come with an environment repository.
//!
//! `UPDATE=1 cargo test --test it generated` writes it again.

use std::{
    fs,
    path::{Path, PathBuf},
};

use larder::{reference, stages::schema::FileKind};
use serde_json::Value;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn schema_text(kind: FileKind) -> String {
    format!("{}\n", serde_json::to_string_pretty(&kind.schema()).unwrap())
}

#[test]
fn generated_files_are_current() {
    let mut files = vec![
        ("docs/reference/files.md".to_owned(), reference::files()),
        ("docs/reference/cli.md".to_owned(), reference::command_line(larder::cli::command())),
    ];
    for kind in FileKind::ALL {
        files.push((format!("docs/schema/{}.json", kind.name()), schema_text(kind)));
    }
    for (name, schema) in larder::cli::json::schemas() {
        let text = format!("{}\n", serde_json::to_string_pretty(&schema).unwrap());
        files.push((format!("docs/schema/output/{name}.json"), text));
    }
    // What editors need in an environment repository without a network.
    for kind in [FileKind::Settings, FileKind::Environment] {
        files.push((format!("example-repo/.larder/schema/{}.json", kind.name()), schema_text(kind)));
    }
    let mut stale = Vec::new();
    for (path, text) in files {
        let file = root().join(&path);
        if std::env::var_os("UPDATE").is_some() {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, &text).unwrap();
        }
        let found = fs::read_to_string(&file).unwrap_or_default();
        if found != text {
            let diff = similar::TextDiff::from_lines(&found, &text);
            stale.push(format!("{path}\n{}", diff.unified_diff().context_radius(1)));
        }
    }
    assert!(stale.is_empty(), "run `UPDATE=1 cargo test --test it generated`:\n{}", stale.join("\n"));
}

#[test]
fn every_document_has_its_row() {
    let page = read("docs/reference/output.md");
    for (name, schema) in larder::cli::json::schemas() {
        let kind = schema["properties"]["kind"]["const"].as_str().unwrap();
        let row = format!("| `{kind}` | [{name}.json](../schema/output/{name}.json) |");
        assert!(page.contains(&row), "docs/reference/output.md has no row with {row}");
    }
}

/// A schema, as a validator that is not ours reads it.
struct Validator(boon::Schemas, boon::SchemaIndex);

impl Validator {
    fn new(kind: FileKind) -> Self {
        let mut schemas = boon::Schemas::new();
        let mut compiler = boon::Compiler::new();
        compiler.add_resource("larder.json", kind.schema()).unwrap();
        let index = compiler.compile("larder.json", &mut schemas).unwrap();
        Self(schemas, index)
    }

    fn check(&self, text: &str) -> Result<(), String> {
        let value: Value = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
        self.0.validate(&value, self.1).map_err(|error| error.to_string())
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

#[test]
fn the_schemas_accept_what_larder_accepts() {
    let cases = [
        (FileKind::Settings, "example-repo/larder.yaml"),
        (FileKind::Settings, "tests/cases/load/tenancy/larder.yaml"),
        (FileKind::Environment, "example-repo/environments/base.yaml"),
        (FileKind::Environment, "example-repo/environments/research/geospatial.yaml"),
        (FileKind::Environment, "example-repo/environments/teaching/r-studio.yaml"),
        (FileKind::Environment, "tests/cases/load/full/environments/research/geospatial.yaml"),
        (FileKind::Environment, "tests/cases/load/full/environments/inline.yaml"),
        (FileKind::Environment, "tests/cases/load/policies/environments/t/semver.yaml"),
        (FileKind::Environment, "tests/cases/load/policies/environments/t/pattern.yaml"),
        (FileKind::JupyterImagePuller, "tests/cases/load/submarine/environments/submarine/puller.yaml"),
        (FileKind::SubmarineEnvironment, "tests/cases/load/submarine/environments/submarine/secret.json"),
        (FileKind::Lockfile, "tests/cases/lock/lockfile.yaml"),
    ];
    for (kind, path) in cases {
        Validator::new(kind).check(&read(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    }
}

#[test]
fn the_schemas_refuse_what_larder_refuses() {
    let environment = Validator::new(FileKind::Environment);
    for name in [
        "images-empty",
        "images-text",
        "missing-image",
        "missing-kind",
        "other-kind",
        "unknown",
        "strategy",
        "name",
        "effect",
    ] {
        let path = format!("tests/cases/load/schema/environments/t/{name}.yaml");
        assert!(environment.check(&read(&path)).is_err(), "{path}");
    }
}

/// Every file of the example names its schema, and the schema is there.
#[test]
fn the_example_names_its_schemas() {
    let example = root().join("example-repo");
    let mut folders = vec![example.join("environments")];
    let mut files = vec![example.join("larder.yaml")];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    assert!(files.len() > 4);
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let first = text.lines().next().unwrap();
        let schema = first.strip_prefix("# yaml-language-server: $schema=");
        let schema = schema.unwrap_or_else(|| panic!("{}: {first}", file.display()));
        let schema: &Path = &file.parent().unwrap().join(schema);
        assert!(schema.is_file(), "{}", schema.display());
    }
}
