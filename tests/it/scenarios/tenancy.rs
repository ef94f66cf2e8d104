//! A tenant's objects are applied in the name of its own service account, which can do no more than its Role says.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use super::{
    environment,
    world::{World, config, kubeconfig, kubectl, kubectl_path, run},
};

fn apply(text: &str) {
    let mut kubectl = Command::new(kubectl_path());
    kubectl.arg(config()).args(["apply", "--filename", "-"]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = kubectl.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "{text}");
}

#[test]
fn a_tenants_objects_are_applied_in_its_name() {
    let world = World::new("tenancy", &["research"]);
    let namespace = world.namespace("research");
    let image = world.image("notebook") + ":1";
    world.push_images(&[], &[&image]);
    let user = format!("system:serviceaccount:{namespace}:deployer");
    let own = format!("createNamespace: true, impersonate: \"{user}\"");
    let settings = world.settings(&["research"], "").replace("createNamespace: true", &own);
    world.commit(&[("larder.yaml", &settings)], "Impersonate");
    world.commit(&[("environments/research/a.yaml", &environment(&[("notebook", &image)], ""))], "Add");

    // The namespace is made by larder itself; nothing else is, since the service account may do nothing yet.
    let pass = world.pass(&[]);
    assert!(!pass.well);
    assert!(world.puller("research/a").is_none() && world.service_account("research/a").is_none());
    let problems = pass.problems("research/a");
    assert!(problems.contains(&user) && problems.contains("cannot patch"), "{problems}");
    assert!(problems.contains("the tenant's `impersonate`"), "{problems}");

    // The Role of docs/concepts/tenants.md.
    let page = include_str!("../../../docs/concepts/tenants.md");
    let role =
        page.split("```yaml\n").find(|block| block.starts_with("# What a tenant's service account needs")).unwrap();
    let role = role.split("```").next().unwrap().replace("namespace: research", &format!("namespace: {namespace}"));
    apply(&role);
    let pass = world.pass(&[]);
    assert!(pass.well, "{:#}\n{}", pass.report, pass.log);
    assert!(world.puller("research/a").is_some());
    let writes = world.versions();
    assert!(world.pass(&[]).well);
    assert_eq!(world.versions(), writes, "a second pass writes nothing");
}

#[test]
fn a_secret_is_created_once() {
    let world = World::new("secret", &[]);
    let namespace = world.id.clone();
    kubectl(&["create", "namespace", &namespace]);
    let create = || {
        let arguments =
            ["secret", "hub", "--namespace", &namespace, "--server", "quay.io", "--username", "robot", "--create"];
        let mut command = world.larder(&arguments);
        command
            .arg("--kubeconfig")
            .arg(kubeconfig())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"c4n4ry").unwrap();
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        assert!(!text.contains("c4n4ry"), "{text}");
        (output.status.success(), text)
    };
    let (first, second) = (create(), create());
    let secret = world.object("secret", &namespace, "hub");
    run(Command::new(kubectl_path()).arg(config()).args(["delete", "namespace", &namespace, "--wait=false"]));
    assert!(first.0 && first.1.contains(&format!("Secret/{namespace}/hub created")), "{}", first.1);
    assert!(!second.0 && second.1.contains("exists already, and is left as it is"), "{}", second.1);
    assert_eq!(secret["type"], "kubernetes.io/dockerconfigjson");
}
