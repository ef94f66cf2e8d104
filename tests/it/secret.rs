//! `larder secret`: from a password to a Secret, with the password nowhere else.

use std::{
    fs,
    io::Write as _,
    process::{Command, Output, Stdio},
};

use larder::io::registry::Keyring;
use serde_json::Value;

const PASSWORD: &str = "c4n4ry with spaces: ä";

/// Runs `larder secret` in a directory with a `larder.yaml`, with that on standard input.
fn secret(arguments: &[&str], input: &[u8]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let settings =
        "apiVersion: larder.dev/v1alpha1\nkind: Settings\nspec: {tenants: {research: {namespace: jupyter-research}}}\n";
    fs::write(folder.path().join("larder.yaml"), settings).unwrap();
    fs::write(folder.path().join("password"), PASSWORD).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_larder"))
        .arg("secret")
        .args(arguments)
        .env_clear()
        .env("LARDER_LOG", "trace")
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A process that refuses its arguments does not read.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "nothing is written: {names:?}");
    output
}

fn manifest(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_saphyr::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_manifest_is_one_that_the_kubelet_takes() {
    let line = format!("{PASSWORD}\n");
    let piped =
        secret(&["hub", "--tenant", "research", "--server", "docker.io", "--username", "robot"], line.as_bytes());
    let secret_of = manifest(&piped);
    assert_eq!(secret_of["metadata"]["namespace"], "jupyter-research");
    assert_eq!(secret_of["type"], "kubernetes.io/dockerconfigjson");
    let filed = secret(
        &[
            "hub",
            "--namespace",
            "jupyter-research",
            "--server",
            "https://index.docker.io/v1/",
            "--username",
            "robot",
            "--password-file",
            "password",
        ],
        b"",
    );
    assert_eq!(manifest(&filed), secret_of);
    let bytes = base64(secret_of["data"][".dockerconfigjson"].as_str().unwrap());
    assert!(Keyring::parse_dockerconfigjson(&bytes).unwrap().matches(&"debian:12".parse().unwrap()));
    let config: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(config["auths"]["https://index.docker.io/v1/"]["password"], PASSWORD);
    for output in [piped, filed] {
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!text.contains("c4n4ry") && text.contains("never commit it"), "{text}");
    }
}

#[test]
fn what_cannot_be_a_secret_is_refused_without_the_password() {
    let good = ["hub", "--tenant", "research", "--server", "quay.io", "--username", "robot"];
    let cases: [(&[&str], &[u8], &str); 10] = [
        (&good, b"", "standard input holds no password"),
        (&good, b"\n", "standard input holds no password"),
        (&good, b"c4n4ry\nc4n4ry\n", "several lines"),
        (&good, b"c4n4ry\xff", "not UTF-8"),
        (&[&good[..], &["--password-file", "nowhere"]].concat(), b"", "nowhere"),
        (&[&good[..], &["--password", "c4n4ry"]].concat(), b"", "unexpected argument '--password'"),
        (&[&good[..], &["--namespace", "x"]].concat(), b"c4n4ry", "cannot be used with"),
        (
            &["hub", "--tenant", "other", "--server", "quay.io", "--username", "robot"],
            b"c4n4ry",
            "its tenants are: research",
        ),
        (
            &["hub", "--tenant", "research", "--server", "quay.io/a b", "--username", "robot"],
            b"c4n4ry",
            "not a valid address of a registry",
        ),
        (
            &["Hub_1", "--tenant", "research", "--server", "quay.io", "--username", "robot"],
            b"c4n4ry",
            "not a valid Kubernetes object name",
        ),
    ];
    for (arguments, input, expected) in cases {
        let output = secret(arguments, input);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(text.contains(expected), "{arguments:?}: {text}");
        assert!(output.stdout.is_empty());
        assert!(!text.contains("c4n4ry") || arguments.contains(&"c4n4ry"), "{arguments:?}: {text}");
    }
}

fn base64(text: &str) -> Vec<u8> {
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    BASE64_STANDARD.decode(text).unwrap()
}
