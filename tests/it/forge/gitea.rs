//! A real Gitea on loopback, shared by the tests that run at the same time.

use std::{
    net::TcpListener,
    path::PathBuf,
    process::Command,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use serde_json::Value;

use crate::scenarios::world::{run, script};

/// The user that `tests/cluster/gitea` makes, an administrator.
const LOGIN: &str = "bot:bot-password";

/// A running Gitea. It ends with the last test that uses it.
pub struct Gitea {
    /// Its address, as a browser has it.
    pub url: String,
    state: PathBuf,
    ports: [u16; 2],
}

static SHARED: Mutex<Weak<Gitea>> = Mutex::new(Weak::new());

impl Gitea {
    pub fn shared() -> Arc<Self> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gitea) = shared.upgrade() {
            return gitea;
        }
        let ports = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port());
        // Gitea runs as nobody, who may not look into a temporary directory of ours.
        let state = PathBuf::from(format!("/var/tmp/larder-gitea-{}", fastrand::u32(..)));
        let gitea = Arc::new(Self { url: format!("http://127.0.0.1:{}", ports[0]), state, ports });
        run(&mut gitea.script("up"));
        *shared = Arc::downgrade(&gitea);
        gitea
    }

    /// The port of its own SSH server.
    pub fn ssh_port(&self) -> u16 {
        self.ports[1]
    }

    /// Makes a hook of a repository (owner/name) that sees each push, a shell script.
    pub fn hook(&self, repository: &str, text: &str) {
        let folder = self.state.join(format!("repos/{repository}.git/hooks/pre-receive.d"));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("policy");
        std::fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }

    fn script(&self, verb: &str) -> Command {
        let mut command = Command::new(script("gitea"));
        command.arg(verb).env("GITEA_STATE", &self.state);
        command.env("GITEA_PORT", self.ports[0].to_string()).env("GITEA_SSH_PORT", self.ports[1].to_string());
        command
    }

    /// A call of the API as the administrator; its answer. Gitea takes a moment to see a branch that was just pushed, and
    /// answers 404, or even 500, until then: such a call is made again.
    pub fn api(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let mut last = String::new();
        for _ in 0..100 {
            match self.call(method, path, body) {
                Ok(answer) => return answer,
                Err(error) if error.contains("error: 404") || error.contains("error: 500") => last = error,
                Err(error) => panic!("{method} {path}: {error}"),
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        panic!("{method} {path}: {last}");
    }

    fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, String> {
        let mut command = Command::new("curl");
        command.args(["--fail-with-body", "-sS", "-u", LOGIN, "-X", method, "-H", "content-type: application/json"]);
        if let Some(body) = body {
            command.args(["-d", &body.to_string()]);
        }
        let output = command.arg(format!("{}/api/v1/{path}", self.url)).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        if output.status.success() {
            return Ok(serde_json::from_str(&text).unwrap_or_default());
        }
        Err(format!("{text}{}", String::from_utf8_lossy(&output.stderr)))
    }
}

impl Drop for Gitea {
    fn drop(&mut self) {
        let _ = self.script("down").output();
    }
}
