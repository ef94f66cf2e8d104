//! `larder import` as a program: what it writes, what it leaves alone, how it ends.

use std::{
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

const VALUES: &str = "singleuser: {image: {name: quay.io/jupyter/base-notebook, tag: v1}}\n";
const FILE: &str = "environments/research/singleuser.yaml";

/// Runs the verb with `input` as standard input; its exit code, and what it printed.
fn larder(folder: &Path, arguments: &[&str], input: &str) -> (i32, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_larder"))
        .args(["import", "zero-to-jupyterhub", "--into", "repo", "--tenant", "research"])
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that does not read it has closed it.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

#[test]
fn files_of_people_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("repo").join(FILE);
    fs::write(folder.path().join("values.yaml"), VALUES).unwrap();

    let (code, text) = larder(folder.path(), &["values.yaml"], "");
    assert_eq!(code, 0, "{text}");
    assert!(text.contains(&format!("created {FILE}")), "{text}");
    assert!(text.contains("1 environment, 0 entries skipped"), "{text}");
    // Without a larder.yaml there is a small one now, and all of it is valid.
    assert!(text.contains("created larder.yaml"), "{text}");
    let validated = Command::new(env!("CARGO_BIN_EXE_larder"))
        .arg("validate")
        .current_dir(folder.path().join("repo"))
        .env_clear()
        .output()
        .unwrap();
    assert!(validated.status.success(), "{}", String::from_utf8_lossy(&validated.stderr));
    let first = fs::read_to_string(&file).unwrap();
    assert!(first.contains("image: quay.io/jupyter/base-notebook:v1"), "{first}");

    let (code, text) = larder(folder.path(), &["values.yaml"], "");
    assert_eq!(code, 0, "{text}");
    assert!(text.contains(&format!("unchanged {FILE}")), "{text}");

    // From elsewhere, the same file is the same import.
    fs::create_dir(folder.path().join("other")).unwrap();
    fs::copy(folder.path().join("values.yaml"), folder.path().join("other/values.yaml")).unwrap();
    let (code, text) = larder(folder.path(), &["other/values.yaml"], "");
    assert_eq!(code, 0, "{text}");
    assert!(text.contains(&format!("unchanged {FILE}")), "{text}");

    let mine = first.clone() + "  suspend: true\n";
    fs::write(&file, &mine).unwrap();
    let (code, text) = larder(folder.path(), &["values.yaml"], "");
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("--force"), "{text}");
    assert_eq!(fs::read_to_string(&file).unwrap(), mine);

    let (code, text) = larder(folder.path(), &["values.yaml", "--force"], "");
    assert_eq!(code, 0, "{text}");
    assert!(text.contains(&format!("overwritten {FILE}")), "{text}");
    assert_eq!(fs::read_to_string(&file).unwrap(), first);
}

#[test]
fn standard_input_and_json() {
    let folder = tempfile::tempdir().unwrap();
    let (code, text) = larder(folder.path(), &["-", "--output", "json"], VALUES);
    assert_eq!(code, 0, "{text}");
    let results: serde_json::Value = serde_json::from_str(&text).unwrap();
    let made: Vec<&str> =
        results["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert!(made.contains(&FILE) && made.contains(&"larder.yaml"), "{made:?}");
    assert_eq!(results["report"][0]["to"], "research/singleuser notebook");
}

#[test]
fn what_larder_yaml_does_not_allow_is_said_at_import() {
    let folder = tempfile::tempdir().unwrap();
    let settings = "apiVersion: larder.dev/v1alpha1\nkind: Settings\nspec:\n  pools: {gpu: {nodeSelector: {gpu: yes}}}\n  \
                    tenants: {research: {namespace: r, registries: [quay.io/allowed], pools: [gpu]}}\n";
    fs::create_dir(folder.path().join("repo")).unwrap();
    fs::write(folder.path().join("repo/larder.yaml"), settings.replace("gpu: yes", "gpu: \"yes\"")).unwrap();
    let (code, text) = larder(folder.path(), &["-"], VALUES);
    assert_eq!(code, 1, "{text}");
    let unwrapped = text.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
    assert!(unwrapped.contains("images from `quay.io/jupyter/base-notebook` are not allowed"), "{text}");
    assert!(unwrapped.contains("may only use pools"), "{text}");
    assert!(!folder.path().join("repo").join(FILE).exists());
}

#[test]
fn values_without_an_image_are_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    for values in ["jupyterhub: {ingress: {enabled: true}}\n", "proxy: {https: {enabled: true}}\n", "hub: {db: {}}\n"] {
        let (code, text) = larder(folder.path(), &["-"], values);
        assert_eq!(code, 0, "{values}: {text}");
        assert!(text.contains("0 environments") && text.contains("no image of users' pods"), "{values}: {text}");
    }
    assert!(!folder.path().join("repo").exists());
}

#[test]
fn what_is_no_such_file_fails() {
    let folder = tempfile::tempdir().unwrap();
    for (input, expected) in [
        ("kind: ImageCache\napiVersion: kubefledged.io/v1alpha2\n", "larder import image-cache"),
        ("", "the file is empty"),
        ("a: [\n", "neither YAML nor JSON"),
    ] {
        let (code, text) = larder(folder.path(), &["-"], input);
        assert_eq!(code, 1, "{text}");
        // The text may be wrapped.
        let unwrapped = text.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
        assert!(unwrapped.contains(expected), "{text}");
    }
    assert!(!folder.path().join("repo/environments").exists());
    let (code, text) = larder(folder.path(), &["missing.yaml"], "");
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("missing.yaml"), "{text}");
}
