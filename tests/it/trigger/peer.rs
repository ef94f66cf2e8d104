//! Senders: deliveries as forges sign them, and a larder that takes them.

use std::{fs, process::Command};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::scenarios::world::{Controller, World, wait_for};

/// A secret that no output may hold.
pub const SECRET: &str = "canary-webhook-secret-1";

/// The hexadecimal HMAC-SHA256 of a body.
pub fn sign(secret: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(body);
    mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A push to a branch, as GitHub and Gitea tell it.
pub fn push(branch: &str, commit: &str) -> String {
    serde_json::json!({"ref": format!("refs/heads/{branch}"), "after": commit, "repository": {"full_name": "team/environments"}})
        .to_string()
}

/// A push of a tag, as a registry tells it.
pub fn pushed(repository: &str, tag: &str) -> String {
    let target = serde_json::json!({"repository": repository, "tag": tag, "digest": "sha256:00"});
    serde_json::json!({"events": [{"id": "1", "action": "push", "target": target}]}).to_string()
}

/// A controller that polls once an hour, takes webhooks and tells its metrics. `more` are further arguments.
pub fn listening(world: &World, more: &[&str]) -> Controller {
    fs::write(world.path("secret"), format!("{SECRET}\n")).unwrap();
    let mut arguments = vec!["run", "--interval", "1h", "--listen", "127.0.0.1:0"];
    arguments.extend(["--webhook-listen", "127.0.0.1:0", "--webhook-secret-file", "secret"]);
    arguments.extend(more);
    world.start(&arguments)
}

/// The address of its webhooks.
pub fn address(controller: &Controller) -> String {
    wait_for("the port of webhooks", || {
        let log = controller.log();
        let line = log.lines().find(|line| line.contains("listening for webhooks"))?;
        Some(line.split_once("address=")?.1.split_whitespace().next()?.to_owned())
    })
}

/// Waits until a pass was carried out; how many there were.
pub fn passes(controller: &Controller) -> f64 {
    wait_for("a pass", || {
        let metrics = controller.get("/metrics");
        let line = metrics.lines().find(|line| line.starts_with("larder_passes_total{result=\"carried-out\"}"))?;
        line.rsplit(' ').next()?.parse::<f64>().ok().filter(|count| *count > 0.0)
    })
}

/// Sends a delivery with `curl`; the status.
pub fn send(url: &str, headers: &[String], body: &str) -> u16 {
    let mut command = Command::new("curl");
    command.args(["-s", "-o", "/dev/null", "-w", "%{http_code}", "-H", "content-type: application/json"]);
    for header in headers {
        command.args(["-H", header]);
    }
    let output = command.args(["--data-raw", body, url]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).parse().unwrap()
}

/// A signed push of GitHub's kind.
pub fn send_push(address: &str, branch: &str, commit: &str) -> u16 {
    let body = push(branch, commit);
    let signature = format!("X-Hub-Signature-256: sha256={}", sign(SECRET, body.as_bytes()));
    let delivery = format!("X-GitHub-Delivery: {}", fastrand::u64(..));
    send(&format!("http://{address}/hooks/github"), &[signature, delivery, "X-GitHub-Event: push".to_owned()], &body)
}
