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
    apply_with(text, &[]);
}

fn apply_with(text: &str, more: &[&str]) {
    let mut kubectl = Command::new(kubectl_path());
    kubectl.arg(config()).args(["apply", "--filename", "-"]).args(more).stdin(Stdio::piped()).stdout(Stdio::null());
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
fn forged_objects_in_one_tenants_namespace_do_not_touch_another() {
    let world = World::new("forged", &["alpha", "beta"]);
    let image = world.image("notebook") + ":1";
    world.push_images(&[], &[&image]);
    let text = environment(&[("notebook", &image)], "");
    let files = ["alpha/x", "beta/a", "beta/b"].map(|id| format!("environments/{id}.yaml"));
    let files: Vec<(&str, &str)> = files.iter().map(|path| (path.as_str(), text.as_str())).collect();
    world.commit(&files, "Add");
    assert!(world.pass(&[]).well);

    // An account that may write ConfigMaps in alpha's namespace, and nothing else.
    let (instance, alpha) = (&world.id, world.namespace("alpha"));
    apply(&format!(
        "{{apiVersion: v1, kind: ServiceAccount, metadata: {{name: mallory, namespace: {alpha}}}}}\n---\n\
         {{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {{name: mallory, namespace: {alpha}}},\n\
         rules: [{{apiGroups: [\"\"], resources: [configmaps], verbs: [get, create, patch, delete]}}]}}\n---\n\
         {{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {{name: mallory, namespace: {alpha}}},\n\
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: mallory}},\n\
         subjects: [{{kind: ServiceAccount, name: mallory, namespace: {alpha}}}]}}\n"
    ));
    let mallory = format!("--as=system:serviceaccount:{alpha}:mallory");
    let owners = ["beta", "beta/a", "beta/b", "beta/c", "beta/d", "beta/e", "unknown/x", "unknown"];
    let mut forged = String::new();
    for (index, owner) in owners.iter().enumerate() {
        let name = format!("forged-{index}");
        forged += &format!(
            "---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: {alpha}, finalizers: [example.com/stay],\n\
             labels: {{larder.dev/instance: {instance}}}, annotations: {{larder.dev/object: ConfigMap/{alpha}/{name},\n\
             larder.dev/owner: {owner}}}}}}}\n"
        );
    }
    apply_with(&forged, &[&mallory]);
    kubectl(&["delete", "configmap", "-n", &alpha, &mallory, "--wait=false", "forged-1", "forged-3"]);

    // Neither is beta's removal counted with them, nor is anything of theirs waited for, changed or deleted.
    world.remove(&["environments/beta/b.yaml"], "Remove one of two");
    let pass = world.pass(&[]);
    for index in 0..owners.len() {
        let patch = r#"{"metadata":{"finalizers":null}}"#;
        kubectl(&["patch", "configmap", "-n", &alpha, &format!("forged-{index}"), "--type=merge", "-p", patch]);
    }
    assert!(pass.well, "{:#}\n{}", pass.report, pass.log);
    assert!(pass.log.contains("ignoring objects"), "{}", pass.log);
    assert!(world.puller("beta/a").is_some() && world.puller("beta/b").is_none());
    kubectl(&["get", "configmap", "-n", &alpha, "forged-0", "forged-7"]);
}

#[test]
fn a_tenant_over_its_removal_budget_stops_no_other() {
    let world = World::new("budgets", &["alpha", "beta"]);
    let image = world.image("notebook") + ":1";
    world.push_images(&[], &[&image]);
    let text = environment(&[("notebook", &image)], "");
    let path = |id: &str| format!("environments/{id}.yaml");
    let all: Vec<String> = (0..6).map(|n| path(&format!("alpha/e{n}"))).chain(["beta/a", "beta/b"].map(path)).collect();
    world.commit(&all.iter().map(|path| (path.as_str(), text.as_str())).collect::<Vec<_>>(), "Add");
    assert!(world.pass(&[]).well);

    let gone: Vec<&str> = all.iter().skip(1).filter(|path| !path.contains("beta/a")).map(String::as_str).collect();
    world.remove(&gone, "Remove five of alpha's and one of beta's");
    let pass = world.pass(&[]);
    assert!(!pass.well);
    assert_eq!(pass.state("alpha/e1"), "Blocked");
    assert_eq!(pass.state("beta/b"), "absent", "{:#}", pass.report);
    assert!(world.puller("beta/b").is_none() && world.puller("alpha/e1").is_some());
    let lock = world.git(&["ls-tree", "-r", "--name-only", "main", "lock/"]);
    assert!(!lock.contains("beta/b") && lock.contains("alpha/e5"), "{lock}");
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
