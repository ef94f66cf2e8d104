//! Cases of the importers: each directory of `tests/cases/import` has files of one format, named by `format`, and what they
//! come to. A `larder.yaml` among them is that of the environment repository.

mod verb;

use std::{fmt::Write as _, fs, path::Path};

use larder::{
    model::{
        batch::failed,
        name::Name,
        snapshot::{Entry, Snapshot},
    },
    stages::{
        import::{Format, Imported, Input, import},
        load::{Environments, load},
    },
};

use crate::cases;

/// Stands for every password in the cases; nothing that is printed or written may hold it.
const CANARY: &str = "canary-5f1c";

/// What holds for all cases when a case brings no larder.yaml.
const SETTINGS: &str = "apiVersion: larder.dev/v1alpha1
kind: Settings
spec:
  tenants: {research: {namespace: research-ns}}
";

fn tenant() -> Name {
    "research".parse().unwrap()
}

#[test]
fn cases() {
    cases::for_each("import", found);
}

/// What a case comes to, once it is checked that nothing broken is written and no password shown.
fn found(case: &Path) -> String {
    let mut names: Vec<String> =
        fs::read_dir(case).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let text = |name: &str| fs::read_to_string(case.join(name)).unwrap();
    let format: Format = text("format").trim().parse().unwrap();
    let settings = names.iter().find(|name| *name == "larder.yaml").map_or(SETTINGS.to_owned(), |name| text(name));
    let is_input = |name: &&String| !["format", "expected.txt", "larder.yaml"].contains(&name.as_str());
    let inputs: Vec<Input> =
        names.iter().filter(is_input).map(|name| Input { name: name.clone(), text: text(name) }).collect();
    let known = load_files(&settings, &Imported::default()).settings;
    let imported = import(format, &inputs, &tenant(), Some(&known));
    assert_eq!(imported, import(format, &inputs, &tenant(), Some(&known)), "{}", case.display());
    let environments = load_files(&settings, &imported);
    let broken: Vec<_> = failed(&environments.environments).collect();
    assert!(broken.is_empty(), "{}: {broken:?}", case.display());
    assert!(environments.strays.is_empty(), "{}: {:?}", case.display(), environments.strays);
    let found = show(&imported);
    assert!(!found.contains(CANARY), "{}: a password is shown", case.display());
    found
}

fn load_files(settings: &str, imported: &Imported) -> Environments {
    let mut snapshot = Snapshot::default();
    snapshot.files.insert("larder.yaml".to_owned(), Entry::File(settings.as_bytes().into()));
    for (path, text) in &imported.files {
        snapshot.files.insert(path.clone(), Entry::File(text.as_bytes().into()));
    }
    load(&snapshot).unwrap()
}

fn show(imported: &Imported) -> String {
    let mut text = String::new();
    for problem in &imported.problems {
        writeln!(text, "PROBLEM {problem}").unwrap();
    }
    for line in &imported.report {
        writeln!(text, "{}\n  {}", line.from, line.to.as_ref().map_or("left out".to_owned(), |to| format!("→ {to}")))
            .unwrap();
        if !line.note.is_empty() {
            writeln!(text, "  {}", line.note).unwrap();
        }
    }
    for (path, file) in &imported.files {
        write!(text, "\n--- {path}\n{file}").unwrap();
    }
    text
}

/// Two hubs that want the same names get them whatever the order of their files.
#[test]
fn the_order_of_files_does_not_matter() {
    let hub = |name: &str, image: &str| Input {
        name: format!("{name}.values.yaml"),
        text: format!("singleuser: {{image: {{name: quay.io/{image}, tag: v1}}}}"),
    };
    let (a, b) = (hub("a", "x/one"), hub("b", "x/two"));
    let forth = import(Format::Zero2Jupyterhub, &[a.clone(), b.clone()], &tenant(), None).files;
    let back = import(Format::Zero2Jupyterhub, &[b, a], &tenant(), None).files;
    assert_eq!(forth, back);
    let paths: Vec<&String> = forth.keys().collect();
    assert_eq!(paths, ["environments/research/a-singleuser.yaml", "environments/research/b-singleuser.yaml"]);
}

/// Every format on every case's inputs: what is no such file is a problem or a note, never a panic.
#[test]
fn no_file_of_another_format_is_taken() {
    let cases = fs::read_dir(cases::folder("import")).unwrap().map(|entry| entry.unwrap().path());
    // There it is the files that are not of the case's own format.
    for case in cases.filter(|case| !case.ends_with("bad")) {
        let own: Format = fs::read_to_string(case.join("format")).unwrap().trim().parse().unwrap();
        for file in fs::read_dir(&case).unwrap().map(|entry| entry.unwrap().path()) {
            let input = Input { name: "file".to_owned(), text: fs::read_to_string(&file).unwrap() };
            for format in Format::ALL.into_iter().filter(|format| *format != own) {
                let imported = import(format, std::slice::from_ref(&input), &tenant(), None);
                assert!(!show(&imported).contains(CANARY), "{}", file.display());
                let nothing = imported.files.is_empty() && !imported.problems.is_empty();
                assert!(nothing, "{} as {format}: {}", file.display(), show(&imported));
            }
        }
    }
}

/// Files that end too early, read as everything.
#[test]
fn no_text_makes_an_importer_panic() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/import");
    for case in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
        for file in fs::read_dir(&case).unwrap().map(|entry| entry.unwrap().path()) {
            let text = fs::read_to_string(&file).unwrap();
            for end in (0..text.len()).step_by(61).filter(|end| text.is_char_boundary(*end)) {
                let input = Input { name: "file".to_owned(), text: text[..end].to_owned() };
                for format in Format::ALL {
                    let imported = import(format, std::slice::from_ref(&input), &tenant(), None);
                    assert!(!show(&imported).contains(CANARY), "{} up to {end} as {format}", file.display());
                }
            }
        }
    }
}
