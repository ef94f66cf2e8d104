//! `larder plan`, `apply`, `status` and `lock --check` against directories, the program itself, with a real registry where one is
//! asked.

use std::{fs, process::Command};

use larder::cli::json;
use serde_json::Value;

use crate::{
    registry::peer::{Registry, push, retag},
    validate::{World, environment},
};

/// `environments/t/a.yaml` and `b.yaml` name the image `app:1` of that registry; all is locked and committed.
async fn locked(registry: &Registry) -> World {
    push(registry, "app", "1").await;
    let world = World::new();
    let host = registry.host();
    world.write(
        "larder.yaml",
        &format!(
            "apiVersion: larder.dev/v1alpha1\nkind: Settings\nspec:\n  tenants: {{t: {{namespace: t}}}}\n  registries: {{\"{host}\": {{plainHttp: true}}}}\n"
        ),
    );
    for name in ["a", "b"] {
        world.write(&format!("environments/t/{name}.yaml"), &environment(&format!("{host}/app:1")));
    }
    let (code, out, err) = world.larder(&["lock"]);
    assert_eq!(code, 0, "{out}{err}");
    world.commit();
    world
}

/// A document, checked against its schema.
fn document(name: &str, text: &str) -> Value {
    let value: Value = serde_json::from_str(text).unwrap();
    let (_, schema) = json::schemas().into_iter().find(|(known, _)| *known == name).unwrap();
    let mut schemas = boon::Schemas::new();
    let mut compiler = boon::Compiler::new();
    compiler.add_resource("output.json", schema).unwrap();
    let index = compiler.compile("output.json", &mut schemas).unwrap();
    schemas.validate(&value, index).unwrap_or_else(|error| panic!("{error}\n{value:#}"));
    assert!(!has_null(&value), "what is not known is absent: {text}");
    value
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(fields) => fields.values().any(has_null),
        _ => false,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_tag_is_planned_with_its_digest_and_one_that_is_not_there_fails() {
    let registry = Registry::open();
    let world = locked(&registry).await;
    let image = push(&registry, "app", "2").await;
    let host = registry.host();
    world.write("environments/t/a.yaml", &environment(&format!("{host}/app:2")));

    let (code, out, _) = world.larder(&["plan", "--from", "HEAD"]);
    let unknown =
        "1 environment, 1 image; objects change once the new digest is known (`--resolve` asks the registries)\n";
    assert!(code == 2 && out.starts_with(unknown), "{out}");

    let (code, out, err) = world.larder(&["plan", "--from", "HEAD", "--resolve"]);
    assert_eq!(code, 2, "{err}");
    let mut lines = out.lines();
    assert_eq!(lines.next(), Some("1 environment, 1 image; objects: 0 to create, 2 to change, 0 to delete"));
    let moved = format!("→ {host}/app:2 ({}), to pull on each node: up to", image.index.short());
    assert!(lines.next().unwrap().contains(&moved), "{out}");
    let order: Vec<_> = out.lines().filter_map(|line| line.strip_prefix("+++ b/")?.split('/').next()).collect();
    assert_eq!(order, ["DaemonSet", "ConfigMap"]);

    let json = document("plan", &world.larder(&["plan", "--from", "HEAD", "--resolve", "--output", "json"]).1);
    assert_eq!(json["images"][0]["new"]["digest"], image.index.as_str());
    assert_eq!(json["images"][0]["pull"][0]["bytes"], image.size);
    assert_eq!(json["from"]["commit"], world.git(&["rev-parse", "HEAD"]));
    assert_eq!((&json["summary"]["change"], &json["to"]), (&2.into(), &serde_json::json!({})));

    world.write("environments/t/a.yaml", &environment(&format!("{host}/app:99")));
    assert_eq!(world.larder(&["plan", "--from", "HEAD"]).0, 2, "nobody was asked");
    let (code, out, err) = world.larder(&["plan", "--from", "HEAD", "--resolve"]);
    assert_eq!(code, 1);
    assert!(err.contains("app:99") && err.contains("environments/t/a.yaml:4"), "{err}");
    assert!(out.contains("1 image not resolved") && out.contains("app:99 (not resolved)"), "{out}");
    let (code, out, _) = world.larder(&["plan", "--from", "HEAD", "--resolve", "--output", "markdown"]);
    assert!(code == 1 && out.contains("not resolved") && out.contains("1 problem"), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_check_of_a_change_asks_about_nothing_else() {
    let registry = Registry::open();
    let world = locked(&registry).await;
    let host = registry.host();
    let check = |more: &[&str]| world.larder(&[&["lock", "--check"], more].concat());
    let changed = |more: &[&str]| check(&[&["--changed-from", "HEAD"], more].concat());
    let is = |(code, out, err): (i32, String, String), expected: i32, last: &str| {
        assert_eq!((code, out.lines().last()), (expected, Some(last)), "{out}{err}");
        out
    };

    // A tag that moves is nothing that the change does.
    push(&registry, "app", "2").await;
    retag(&registry, "app", "2", "1").await;
    is(check(&[]), 2, "2 images would be updated, 2 lockfiles would be written");
    is(changed(&[]), 0, "0 images would be updated, 0 lockfiles would be written");

    // Of an environment that changes, what is not locked is.
    world.write("environments/t/a.yaml", &environment(&format!("{host}/app:2")));
    let out = is(changed(&[]), 2, "1 image would be updated, 1 lockfile would be written");
    assert!(out.contains("t/a") && !out.contains("t/b"), "{out}");
    assert_eq!(world.larder(&["lock", "--missing"]).0, 0);
    is(changed(&["--missing"]), 0, "0 images would be updated, 0 lockfiles would be written");
    world.write("environments/t/a.yaml", &environment(&format!("{host}/app:99")));
    let (code, _, err) = changed(&[]);
    assert!(code == 1 && err.contains("app:99"), "{err}");
    world.git(&["checkout", "-q", "--", "."]);

    // A lockfile whose environment goes has to go with it.
    fs::remove_file(world.path("environments/t/b.yaml")).unwrap();
    is(changed(&[]), 2, "1 image would be updated, 1 lockfile would be written");

    // What was broken before is not the change's fault; what it breaks is.
    world.write("environments/t/b.yaml", "kind: Environment\n");
    let (code, _, err) = changed(&[]);
    assert!(code == 1 && err.contains("environments/t/b.yaml"), "{err}");
    world.commit();
    is(changed(&[]), 0, "0 images would be updated, 0 lockfiles would be written");

    assert!(world.larder(&["lock", "--changed-from", "HEAD"]).2.contains("--check"));
    assert_eq!(check(&["--changed-from", "nowhere"]).0, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_is_planned_as_the_pass_carries_it_out() {
    let registry = Registry::open();
    let world = locked(&registry).await;
    let push_to = world.path("../origin.git").display().to_string();
    world.git(&["clone", "-q", "--bare", ".", &push_to]);
    let run = |from: &str| {
        let (code, out, err) =
            world.larder(&["run", "--once", "--repo", from, "--path", "envs", "--target", "dir:../manifests"]);
        assert_eq!(code, 0, "{out}{err}");
        out.lines().last().unwrap().to_owned()
    };
    run(&push_to);
    fs::remove_file(world.path("environments/t/b.yaml")).unwrap();
    let (_, out, _) = world.larder(&["plan", "--from", "HEAD"]);
    assert!(out.starts_with("1 environment, 1 image; objects: 0 to create, 0 to change, 2 to delete\n"), "{out}");
    // With an image of its own, the tenant's records lose it.
    world.git(&["checkout", "-q", "--", "."]);
    push(&registry, "other", "1").await;
    world.write("environments/t/b.yaml", &environment(&format!("{}/other:1", registry.host())));
    assert_eq!(world.larder(&["lock"]).0, 0);
    world.commit();
    world.git(&["push", "-q", &push_to, "main"]);
    run(&push_to);
    fs::remove_file(world.path("environments/t/b.yaml")).unwrap();
    let (_, out, _) = world.larder(&["plan", "--from", "HEAD"]);
    assert!(out.starts_with("1 environment, 1 image; objects: 0 to create, 1 to change, 2 to delete\n"), "{out}");
    world.commit();
    world.git(&["push", "-q", &push_to, "main"]);
    let done = run(&push_to);
    assert!(done.starts_with("0 created, 1 changed, 2 deleted"), "{done}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_is_planned_applied_and_compared() {
    let registry = Registry::open();
    let world = locked(&registry).await;
    let target = ["--target", "dir:manifests"];
    let larder = |arguments: &[&str]| world.larder(&[arguments, &target[..]].concat());

    let (code, out, err) = larder(&["plan"]);
    assert_eq!(code, 2, "{err}");
    let mut lines = out.lines();
    assert_eq!(lines.next(), Some("5 to create, 0 to change, 0 to delete, 0 unchanged"));
    assert!(lines.next().unwrap().starts_with(&format!("t/a a: {}/app:1 (", registry.host())), "{out}");
    let json = document("plan", &larder(&["plan", "--output", "json"]).1);
    assert_eq!((&json["summary"]["create"], &json["images"][1]["environment"]), (&5.into(), &"t/b".into()));
    assert!(json.get("from").is_none());
    let states = || {
        let json = document("directory-status", &larder(&["status", "--output", "json"]).1);
        let states = json["environments"].as_array().unwrap().iter();
        states.map(|one| one["state"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(states(), ["NotApplied", "NotApplied"]);

    // What is not committed is applied only when that is asked for.
    let file = environment(&format!("{}/app:1", registry.host())) + "  displayName: A\n";
    world.write("environments/t/a.yaml", &file);
    let (code, _, err) = larder(&["apply"]);
    assert!(code == 1 && err.contains("environments/t/a.yaml has uncommitted changes"), "{err}");
    assert!(err.contains("--uncommitted") && !world.path("manifests").exists(), "{err}");
    assert_eq!(larder(&["apply", "--uncommitted"]).0, 0);
    world.git(&["checkout", "-q", "--", "."]);
    let (code, out, err) = larder(&["apply"]);
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(states(), ["Applied", "Applied"]);
    assert_eq!(larder(&["plan"]).0, 0);

    let puller = fs::read_dir(world.path("manifests/t")).unwrap().map(|entry| entry.unwrap().path());
    let puller = puller.into_iter().find(|path| path.display().to_string().contains("daemonset-")).unwrap();
    fs::remove_file(puller).unwrap();
    let mut found = states();
    found.sort();
    assert_eq!(found, ["Applied", "NotApplied"]);

    let (code, out, err) = larder(&["status", "t/aa"]);
    assert!(code == 1 && out.is_empty() && err.contains("there is no environment t/aa"), "{err}");
    assert!(larder(&["status", "--wait"]).2.contains("has no nodes to wait for"));
}

#[test]
fn files_in_no_repository_are_applied_only_when_that_is_asked_for() {
    let world = World::new();
    fs::remove_dir_all(world.path("../.git")).unwrap();
    let (code, _, err) = world.larder(&["apply", "--target", "dir:manifests"]);
    assert!(code == 1 && err.contains("is not in a Git repository") && err.contains("--uncommitted"), "{err}");
}

#[test]
fn a_repository_without_a_commit_is_an_error_of_one_pass() {
    let world = World::new();
    let bare = world.path("../empty.git").display().to_string();
    world.git(&["init", "-q", "--bare", &bare]);
    let (code, _, err) = world.larder(&["run", "--once", "--repo", &bare, "--target", "dir:manifests"]);
    assert!(code == 1 && err.contains("the repository has no commit yet") && err.contains("larder init"), "{err}");
}

#[test]
fn a_cluster_that_is_not_there_is_one_clear_error() {
    let world = World::new();
    let (code, _, err) = world.larder(&["status"]);
    assert_eq!((code, err.matches("error").count()), (1, 1), "{err}");
    assert!(
        err.contains("no cluster is configured: there is no kubeconfig /") && err.contains("/.kube/config"),
        "{err}"
    );
    assert!(!err.contains("'/") && !err.contains('"'), "{err}");

    // Nobody listens on a port that was free just now.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    world.write(
        "kubeconfig",
        &format!(
            "{{apiVersion: v1, kind: Config, current-context: a, users: [], contexts: [{{name: a, context: {{cluster: a}}}}],\n\
             clusters: [{{name: a, cluster: {{server: \"http://127.0.0.1:{port}\"}}}}]}}\n"
        ),
    );
    for command in ["status", "plan", "apply"] {
        let more: &[&str] = if command == "apply" { &["--uncommitted"] } else { &[] };
        let (code, out, err) = world.larder(&[&[command, "--kubeconfig", "kubeconfig"], more].concat());
        assert_eq!((code, out.as_str(), err.matches("error[").count()), (1, "", 1), "{err}");
        assert!(err.contains("Connection refused") && err.contains("API server"), "{err}");
        assert!(!err.contains("ServiceError"), "{err}");
    }
}

#[test]
fn a_name_that_no_environment_has_fails_every_command_that_takes_one() {
    let world = World::new();
    world.write("../.gitconfig", "[user]\nname = Ada\nemail = ada@example.com\n");
    for arguments in [
        &["hold", "x/a", "--reason", "r"][..],
        &["release", "x/a"],
        &["rollback", "x/a", "--to", "HEAD"],
        &["status", "x/a", "--target", "dir:manifests"],
        &["render", "x/a"],
    ] {
        let (code, out, err) = world.larder(arguments);
        assert!(code == 1 && out.is_empty() && err.contains("x/a") && err.contains("hint: "), "{arguments:?}: {err}");
    }
}

#[test]
fn an_empty_password_names_where_it_may_come_from() {
    let world = World::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.env_clear().current_dir(world.path(".")).stdin(std::process::Stdio::null());
    command.args(["secret", "pull", "--namespace", "t", "--server", "quay.io", "--username", "u"]);
    let err = String::from_utf8(command.output().unwrap().stderr).unwrap();
    assert!(err.contains("standard input holds no password") && err.contains("--password-file"), "{err}");
}
