//! The way to the Git server: an authority of its own, proxies, and a password that shows nowhere.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;

use super::{
    environment,
    world::{World, kubectl, problems_of, wait_for},
};
use crate::git::{proxy::Proxy, tls};

/// A world whose repository is behind https with a login, and the directory of that server.
fn served(name: &str) -> (World, PathBuf) {
    let folder = tls::folder();
    let mut world = World::new(name, &["research"]);
    world.serve_from(folder.to_str().unwrap());
    let reference = format!("{}:1", world.image("notebook"));
    world.push_images(&[], &[&reference]);
    world.commit(&[("environments/research/x.yaml", &environment(&[("notebook", &reference)], ""))], "Add");
    (world, folder)
}

/// Larder on the repository at `host`, with its login.
fn larder(world: &World, folder: &Path, host: &str, arguments: &[&str]) -> Command {
    let mut command = world.larder(arguments);
    command.args(["--repo", &format!("https://{host}/private/{}.git", world.id), "--git-username", "larder"]);
    command.arg("--git-password-file").arg(folder.join("password"));
    command.arg("--git-ca-file").arg(folder.join("ca.crt"));
    command
}

fn report(output: &Output) -> Value {
    let log = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("no report ({error}): {log}"))
}

/// What a proxy is asked for is Git, anyone who names it; neither the API server nor a registry of this machine.
#[test]
fn a_proxy_sees_git_and_never_the_api_server() {
    let (world, folder) = served("proxy");
    let pass = ["run", "--once", "--output", "json"];
    let proxy = Proxy::start(&tls::server(), None);
    let asked = || {
        let asked = proxy.asked();
        assert!(!asked.is_empty());
        assert!(asked.iter().all(|line| line == "CONNECT git.example.com:443"), "{asked:?}");
    };

    let mut command = larder(&world, &folder, "git.example.com", &pass);
    let output = command.args(["--git-proxy", &proxy.url()]).output().unwrap();
    assert!(output.status.success(), "{:#}", report(&output));
    let lock = report(&output)["lastPass"]["lockCommit"].as_str().unwrap().to_owned();
    assert_eq!(world.tip(), lock);
    assert!(world.puller("research/x").is_some());
    asked();

    // The environment's proxy, for everything and for the tunnels of TLS.
    world.kubectl(&["delete", "daemonsets", "--all", "-n", &world.namespace("research")]);
    let mut command = larder(&world, &folder, "git.example.com", &pass);
    for name in ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY"] {
        command.env(name, proxy.url().replace("://", "://ada:pr0xy-s3cret@"));
    }
    let output = command.args(["--log", "trace"]).output().unwrap();
    assert!(output.status.success(), "{:#}", report(&output));
    let said = [output.stdout.as_slice(), &output.stderr].concat();
    assert!(!String::from_utf8_lossy(&said).contains("pr0xy-s3cret"), "a proxy's login is in an output");
    assert!(world.puller("research/x").is_some());
    asked();

    // This very machine is not asked through the environment's proxy.
    let mut command = larder(&world, &folder, &tls::server(), &pass);
    assert!(command.env("HTTPS_PROXY", proxy.url()).status().unwrap().success());
    assert!(proxy.asked().is_empty());
}

/// the password is in no log, report, status, event, commit, argument, environment or file of larder's, not even
/// when the remote itself says it.
#[test]
fn a_password_shows_nowhere() {
    let (world, folder) = served("canary");
    let password = fs::read_to_string(folder.join("password")).unwrap();
    // While a push is under way: who has the password in its arguments or environment? And the hook says it aloud.
    let hook = format!(
        "#!/bin/sh\ngrep -lFf {0}/password /proc/[0-9]*/cmdline /proc/[0-9]*/environ >seen 2>/dev/null\ntouch looked\n\
         echo \"see https://larder:$(cat {0}/password)@git.example.com, or log in with $(base64 -w0 {0}/login)\" >&2\nexit 1\n",
        folder.display()
    );
    let bare = PathBuf::from(world.repository());
    fs::create_dir_all(bare.join("hooks")).unwrap();
    fs::write(bare.join("hooks/pre-receive"), hook).unwrap();
    fs::set_permissions(bare.join("hooks/pre-receive"), fs::Permissions::from_mode(0o755)).unwrap();

    let cache = world.path("cache");
    let (log, listen) = (world.path("log"), ["--interval", "1s", "--log", "trace", "--log-format", "json"]);
    let mut command = larder(&world, &folder, &tls::server(), &["run"]);
    command.args(listen).arg("--cache-dir").arg(&cache).stderr(fs::File::create(&log).unwrap());
    let mut child = command.spawn().unwrap();
    let text = || fs::read_to_string(&log).unwrap();
    wait_for(&format!("a refusal to be logged:\n{}", text()), || text().contains("was refused").then_some(()));
    let status =
        || kubectl(&["get", "configmap", "-n", "default", &format!("larder-status-{}", world.id), "-o", "yaml"]);
    wait_for("the status", || {
        let names = kubectl(&["get", "configmaps", "-n", "default", "-o", "name"]);
        (names.contains(&world.id) && status().contains("was refused")).then_some(())
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let (_, shown) = world.status(&[]);
    assert!(problems_of(&shown, "LockRefused").contains("https://***@git.example.com"), "{shown:#}");

    assert!(bare.join("looked").exists());
    assert_eq!(fs::read_to_string(bare.join("seen")).unwrap(), "", "processes that hold the password");
    let login = Command::new("base64").arg("-w0").arg(folder.join("login")).output().unwrap();
    let secrets = [password.trim(), std::str::from_utf8(&login.stdout).unwrap()];
    let mut places =
        vec![("log".to_owned(), text().into_bytes()), ("status".to_owned(), shown.to_string().into_bytes())];
    places.push(("ConfigMap".into(), status().into_bytes()));
    places.push(("events".into(), kubectl(&["get", "events", "-A", "-o", "yaml"]).into_bytes()));
    places.push((
        "objects".into(),
        kubectl(&["get", "all,cm,sa", "-n", &world.namespace("research"), "-o", "yaml"]).into(),
    ));
    places.push(("commits".into(), world.git(&["log", "-p", "--all"]).into_bytes()));
    let mut folders = vec![cache];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else {
                places.push((path.display().to_string(), fs::read(&path).unwrap()));
            }
        }
    }
    for (place, bytes) in places {
        for secret in secrets {
            assert!(!bytes.windows(secret.len()).any(|found| found == secret.as_bytes()), "{place}");
        }
    }
    kubectl(&["delete", "configmap", "-n", "default", &format!("larder-status-{}", world.id)]);
}
