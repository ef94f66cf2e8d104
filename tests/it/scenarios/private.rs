//! A private registry: a login, TLS by a private authority, credentials only in a pull secret.

use std::process::Command;

use super::{
    environment,
    world::{World, kubeconfig, run, script},
};

#[test]
fn a_private_registry_needs_nothing_but_a_pull_secret_and_its_authority() {
    let output = run(Command::new(script("private-registry")).arg("up"));
    let state = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    let (ca, login) = (format!("{state}/ca.crt"), format!("{state}/login"));
    let world = World::new("private", &["research"]);
    let reference = format!("127.0.0.1:5443/{}/notebook:1", world.id);
    world.push_images(&["--ca", &ca, "--login", &login], &[&reference]);
    let more = format!("    127.0.0.1:5443: {{caFile: {ca}}}\n");
    world.commit(&[("larder.yaml", &world.settings(&["research"], &more))], "Know the authority");
    let text = environment(&[("notebook", &reference)], "") + "      pullSecret: private\n";
    world.commit(&[("environments/research/secret.yaml", &text)], "Add a private image");

    // Without the Secret: a clear failure, and nothing of the password anywhere.
    let pass = world.pass(&[]);
    assert!(!pass.well);
    assert!(pass.problems("research/secret").contains("private"), "{}", pass.problems("research/secret"));

    let (user, password) = std::fs::read_to_string(&login)
        .unwrap()
        .trim()
        .split_once(':')
        .map(|(u, p)| (u.to_owned(), p.to_owned()))
        .unwrap();
    let namespace = world.namespace("research");
    run(Command::new("kubectl").arg(format!("--kubeconfig={}", kubeconfig())).args([
        "create",
        "secret",
        "docker-registry",
        "private",
        "-n",
        &namespace,
        "--docker-server=127.0.0.1:5443",
        &format!("--docker-username={user}"),
        &format!("--docker-password={password}"),
    ]));
    let pass = world.pass(&[]);
    assert!(pass.well, "{:#}\n{}", pass.report, pass.log);
    world.wait_until_warm();
    let (_, status) = world.status(&[]);
    for text in [pass.log, pass.report.to_string(), status.to_string(), world.git(&["log", "-p", "main"])] {
        assert!(!text.contains(&password), "the password is in {text}");
    }
}
