//! From a push to the applied object, with a webhook, on the real cluster: how long, and which step has which share. Beside
//! it the floor: the same hook writes objects of that size itself, with nothing in between. Nothing is asserted.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]
#![allow(
    clippy::disallowed_methods,
    dead_code,
    reason = "it shares the scenarios' world and reads where the cluster is"
)]

#[path = "../it/scenarios/world.rs"]
mod world;

use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::fs::PermissionsExt as _,
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use world::{World, config, kubectl, kubectl_path, run, script, wait_for};

const ROUNDS: usize = 20;
const SECRET: &str = "secret-of-the-bench";

/// Seconds since 1970.
type Time = f64;

fn main() {
    let output = run(Command::new(script("git-server")).arg("up"));
    let folder = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    let mut world = World::new("bench-push", &["research"]);
    world.serve_from(&folder);
    let references: Vec<String> = (0..=ROUNDS).map(|tag| format!("{}:{tag}", world.image("notebook"))).collect();
    world.push_images(&[], &references.iter().map(String::as_str).collect::<Vec<_>>());
    fs::write(world.path("secret"), SECRET).unwrap();
    let url = format!("http://127.0.0.1:8418/open/{}.git", world.id);
    let controller = world.start(&[
        "run",
        "--interval",
        "1h",
        "--repo",
        &url,
        "--log-format",
        "json",
        "--webhook-listen",
        "127.0.0.1:0",
        "--webhook-secret-file",
        "secret",
    ]);
    let address = wait_for("the port of webhooks", || {
        let log = controller.log();
        let line = log.lines().find(|line| line.contains("taking webhooks"))?;
        let line: serde_json::Value = serde_json::from_str(line).ok()?;
        Some(line["address"].as_str()?.to_owned())
    });
    // What a forge does: it answers the push, and tells beside it.
    hook(
        &world,
        &format!(
            "read old new ref\ndate +%s.%N >>pushed\n\
         (curl -s -o /dev/null -H 'X-Gitlab-Token: {SECRET}' -H 'Content-Type: application/json' \
         --data-raw '{{\"object_kind\":\"push\",\"ref\":\"'$ref'\",\"after\":\"'$new'\"}}' http://{address}/hooks/gitlab) >/dev/null 2>&1 &\n"
        ),
    );
    let file = "environments/research/x.yaml";
    let text = |reference: &str, selector: usize| {
        format!(
            "apiVersion: larder.dev/v1alpha1\nkind: Environment\nspec:\n  images:\n    - name: notebook\n      image: {reference}\n  \
             nodeSelector: {{no: such-node-{selector}}}\n"
        )
    };
    world.commit(&[(file, &text(&references[0], 0))], "Begin");
    let puller = wait_for("the first pass", || world.puller("research/x"));
    let name = puller["metadata"]["name"].as_str().unwrap().to_owned();
    let namespace = world.namespace("research");
    let watch = Watch::new(&["daemonset", "-n", &namespace, &name], "{.spec.template.spec}");

    let mut moved = Vec::new();
    for reference in &references[1..] {
        pause();
        world.commit(&[(file, &text(reference, 0))], "Another image");
        let applied = watch.wait(&format!("{reference}@"));
        moved.push(round(&world, &controller.log(), applied));
    }
    report("a new image: resolve, lock commit, apply", &moved);
    let mut changed = Vec::new();
    for number in 1..=ROUNDS {
        pause();
        world.commit(&[(file, &text(&references[ROUNDS], number))], "Other nodes");
        let applied = watch.wait(&format!("such-node-{number}\""));
        changed.push(round(&world, &controller.log(), applied));
    }
    report("other nodes: apply alone", &changed);
    drop(controller);
    drop(watch);

    // The floor: the hook itself writes the DaemonSet and the records.
    let object = |kind: &str, name: &str| -> serde_json::Value {
        serde_json::from_str(&kubectl(&["get", kind, "-n", &namespace, name, "-o", "json"])).unwrap()
    };
    let puller = object("daemonset", &name);
    let records = object("configmap", "submarine-image-pull-operator-records");
    let metadata = |object: &serde_json::Value, name: &str| serde_json::json!({"name": name, "namespace": namespace, "annotations": object["metadata"]["annotations"], "labels": {"floor": "1"}});
    let mut spec = puller["spec"].clone();
    spec["selector"] = serde_json::json!({"matchLabels": {"floor": "1"}});
    spec["template"]["metadata"]["labels"] = serde_json::json!({"floor": "1"});
    let puller = serde_json::json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata(&puller, "floor"), "spec": spec});
    let records = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(&records, "floor"), "data": records["data"]});
    let patch = |resource: &str, body: &str| {
        let api = format!("https://127.0.0.1:6443/{resource}/floor?fieldManager=floor&force=true");
        format!(
            "-s -k -o /dev/null -X PATCH -H 'Authorization: Bearer admin-token' -H 'Content-Type: application/apply-patch+yaml' --data-binary @{body} '{api}'"
        )
    };
    let (puller_file, records_file) = (world.path("puller.json"), world.path("records.json"));
    let patches = [
        patch(&format!("api/v1/namespaces/{namespace}/configmaps"), &records_file.display().to_string()),
        patch(&format!("apis/apps/v1/namespaces/{namespace}/daemonsets"), &puller_file.display().to_string()),
    ];
    hook(&world, &format!("date +%s.%N >>pushed\n(curl {}) >/dev/null 2>&1 &\n", patches.join(" --next ")));
    fs::write(&records_file, records.to_string()).unwrap();
    let write = |number: usize| {
        let text = puller.to_string().replace(&format!("such-node-{ROUNDS}"), &format!("floor-node-{number}"));
        fs::write(&puller_file, text).unwrap();
    };
    write(0);
    world.commit(&[("README", "0")], "Begin");
    wait_for("the floor's object", || {
        (!kubectl(&["get", "daemonset", "-n", &namespace, "floor", "--ignore-not-found", "-o", "name"]).is_empty())
            .then_some(())
    });
    let watch = Watch::new(&["daemonset", "-n", &namespace, "floor"], "{.spec.template.spec}");
    let mut floor = Vec::new();
    for number in 1..=ROUNDS {
        pause();
        write(number);
        world.commit(&[("README", &number.to_string())], "Anything");
        let at = watch.wait(&format!("floor-node-{number}\""));
        floor.push(Round { pushed: pushed(&world), steps: Vec::new(), applied: at });
    }
    report("floor: the hook PATCHes two such objects (curl)", &floor);
}

/// So that no round profits from or pays for the one before it.
fn pause() {
    std::thread::sleep(Duration::from_secs(1));
}

fn hook(world: &World, script: &str) {
    let path = std::path::Path::new(&world.repository()).join("hooks/post-receive");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, format!("#!/bin/sh\n{script}")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// One push.
struct Round {
    /// When the server had taken it.
    pushed: Time,
    /// When each step had ended, by the controller's log.
    steps: Vec<(&'static str, Time)>,
    /// When the API server told of the new object.
    applied: Time,
}

/// When a person's last push was taken; our lock commit's is the line after it.
fn pushed(world: &World) -> Time {
    let file = std::path::Path::new(&world.repository()).join("pushed");
    let times: Vec<Time> = fs::read_to_string(file).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    *times.last().unwrap()
}

fn round(world: &World, log: &str, applied: Time) -> Round {
    let events: Vec<serde_json::Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let time = |event: &serde_json::Value| -> Option<Time> {
        let at: jiff::Timestamp = event["timestamp"].as_str()?.parse().ok()?;
        Some(at.as_microsecond() as f64 / 1e6)
    };
    let file = std::path::Path::new(&world.repository()).join("pushed");
    let all: Vec<Time> = fs::read_to_string(file).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    let fetched = events.iter().rfind(|event| event["message"] == "fetched").and_then(time).unwrap();
    let pushed = all.into_iter().rfind(|at| *at < fetched).unwrap();
    let step = |name: &'static str, message: &str| {
        let found =
            events.iter().filter(|event| event["message"].as_str().is_some_and(|text| text.starts_with(message)));
        Some((name, found.filter_map(time).find(|at| *at > pushed && *at < applied)?))
    };
    let steps = [
        step("webhook", "webhook: the branch"),
        step("look and fetch", "fetched"),
        step("resolve", "resolved"),
        step("lock commit", "lock committed"),
    ];
    Round { pushed, steps: steps.into_iter().flatten().collect(), applied }
}

fn report(what: &str, rounds: &[Round]) {
    let mut all: Vec<f64> = rounds.iter().map(|round| round.applied - round.pushed).collect();
    all.sort_by(f64::total_cmp);
    let milliseconds = |seconds: f64| format!("{:.0} ms", seconds * 1000.0);
    let (median, most) = (all[all.len() / 2], all[all.len() - 1]);
    println!("{what:<58} median {} of {}, at most {}", milliseconds(median), all.len(), milliseconds(most));
    let names: Vec<&str> = rounds[0].steps.iter().map(|(name, _)| *name).chain(["plan and apply"]).collect();
    if names.len() == 1 {
        return;
    }
    for (index, name) in names.iter().enumerate() {
        let mut parts: Vec<f64> = rounds
            .iter()
            .filter(|round| round.steps.len() + 1 == names.len())
            .map(|round| {
                let ends: Vec<Time> = round.steps.iter().map(|(_, at)| *at).chain([round.applied]).collect();
                ends[index] - if index == 0 { round.pushed } else { ends[index - 1] }
            })
            .collect();
        parts.sort_by(f64::total_cmp);
        println!("  {name:<56} {}", milliseconds(parts[parts.len() / 2]));
    }
}

/// `kubectl get --watch`.
struct Watch {
    child: Child,
    events: Receiver<(Time, String)>,
}

impl Watch {
    fn new(object: &[&str], path: &str) -> Self {
        let mut child = Command::new(kubectl_path())
            .args([&config(), "get", "--watch", "-o", &format!("jsonpath={path}{{\"\\n\"}}")])
            .args(object)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (sender, events) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
                if sender.send((now, line)).is_err() {
                    return;
                }
            }
        });
        let watch = Self { child, events };
        watch.events.recv_timeout(Duration::from_secs(30)).expect("kubectl tells the present object");
        watch
    }

    /// When an event with this text came.
    fn wait(&self, text: &str) -> Time {
        loop {
            let (at, line) = self.events.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| panic!("no {text}"));
            if line.contains(text) {
                return at;
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
