//! `larder demo`, as a stranger sees it.

use std::process::Command;

#[test]
fn the_demo_fits_on_a_screen_and_is_complete_on_standard_output() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("demo");
    let output = Command::new(env!("CARGO_BIN_EXE_larder")).arg("demo").arg("--directory").arg(&directory).output();
    let output = output.unwrap();
    let (text, errors) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{text}{errors}");
    assert_eq!(errors, "");
    assert!(text.lines().count() <= 60, "{} lines:\n{text}", text.lines().count());
    for part in [
        "16 created",
        "DaemonSet/shared-environments/larder-base:\n-",
        "environments/base.yaml:4:3",
        "did you mean `images`?",
        "larder init",
        "larder import",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    assert!(!text.contains("kind: DaemonSet"), "{text}");
    assert!(directory.join("manifests").is_dir());
}
