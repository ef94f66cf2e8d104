//! A scenario's world whose repository is at Gitea.

use std::{
    fs,
    process::{Child, Command, Output, Stdio},
    sync::Arc,
};

use serde_json::{Value, json};

use super::gitea::Gitea;
use crate::scenarios::world::{World, run, wait_for};

/// A world whose repository is at Gitea.
pub struct Hosted {
    pub world: World,
    pub gitea: Arc<Gitea>,
    /// `bot/<name>`.
    pub repository: String,
    token: String,
}

/// A controller that ends with its test.
pub struct Controller(Child);

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Hosted {
    /// A repository at Gitea with a `larder.yaml` (with more lines under `spec:`) on `main`.
    pub fn new(name: &str, more: &str) -> Self {
        let gitea = Gitea::shared();
        let world = World::new(name, &["research"]);
        gitea.api("POST", "user/repos", Some(&json!({"name": world.id, "default_branch": "main"})));
        let token = json!({"name": world.id, "scopes": ["write:repository", "write:issue", "read:user"]});
        let token = gitea.api("POST", "users/bot/tokens", Some(&token))["sha1"].as_str().unwrap().to_owned();
        fs::write(world.path("token"), &token).unwrap();
        let remote = format!("{}/bot/{}.git", gitea.url.replace("://", "://bot:bot-password@"), world.id);
        let hosted = Self { repository: format!("bot/{}", world.id), world, gitea, token };
        hosted.git(&["remote", "set-url", "origin", &remote]);
        hosted.git(&["push", "-q", "origin", "HEAD:main"]);
        if !more.is_empty() {
            hosted.world.commit(&[("larder.yaml", &hosted.world.settings(&["research"], more))], "Settings");
        }
        hosted
    }

    /// Git in the person's clone.
    pub fn git(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        command.arg("-C").arg(self.world.path("clone"));
        command.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]).args(arguments);
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        String::from_utf8(run(&mut command).stdout).unwrap().trim_end().to_owned()
    }

    /// The API below this repository.
    pub fn api(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        self.gitea.api(method, &format!("repos/{}/{path}", self.repository), body)
    }

    /// larder with the flags that name repository and forge.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.world.larder(arguments);
        command.args(["--repo", &format!("{}/{}.git", self.gitea.url, self.repository), "--git-username", "bot"]);
        command.args(["--git-password-file", "token", "--forge-token-file", "token", "--forge", "gitea"]);
        command.args(["--forge-url", &self.gitea.url, "--forge-repo", &self.repository]);
        command
    }

    /// larder; no output of it holds the token.
    pub fn larder(&self, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output().unwrap();
        for text in [&output.stdout, &output.stderr] {
            assert!(!String::from_utf8_lossy(text).contains(&self.token), "the token is in an output");
        }
        output
    }

    /// One pass; its report.
    pub fn pass(&self) -> Value {
        let output = self.larder(&["run", "--once", "--output", "json"]);
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("no report ({error}): {}", String::from_utf8_lossy(&output.stderr)))
    }

    /// A controller in the background.
    pub fn controller(&self) -> Controller {
        let log = fs::File::create(self.world.path("log")).unwrap();
        let mut command = self.command(&["run", "--interval", "1s"]);
        Controller(command.stdout(Stdio::null()).stderr(log).spawn().unwrap())
    }

    /// The tip of a branch at Gitea.
    pub fn tip(&self, branch: &str) -> String {
        let branch = self.api("GET", &format!("branches/{branch}"), None);
        branch["commit"]["id"].as_str().unwrap().to_owned()
    }

    /// The statuses of a commit, the newest first.
    pub fn statuses(&self, commit: &str) -> Vec<(String, String)> {
        let statuses = self.api("GET", &format!("commits/{commit}/statuses?sort=recentupdate"), None);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let ours = format!("larder/{}", self.world.id);
        let statuses = statuses.as_array().unwrap().iter().filter(|status| status["context"] == ours);
        statuses.map(|status| (text(&status["status"]), text(&status["description"]))).collect()
    }

    /// Waits until the tip of `main` has that status; its description.
    pub fn wait_for_status(&self, state: &str) -> (String, String) {
        wait_for(&format!("the status {state}"), || {
            let tip = self.tip("main");
            let (now, description) = self.statuses(&tip).into_iter().next()?;
            (now == state).then_some((tip, description))
        })
    }

    /// The open pull requests.
    pub fn open_pull_requests(&self) -> Vec<Value> {
        self.api("GET", "pulls?state=open", None).as_array().unwrap().clone()
    }

    /// Merges a pull request, once Gitea has checked whether it can be.
    pub fn merge(&self, number: u64) {
        wait_for("the pull request to be mergeable", || {
            (self.api("GET", &format!("pulls/{number}"), None)["mergeable"] == true).then_some(())
        });
        self.api("POST", &format!("pulls/{number}/merge"), Some(&json!({"Do": "merge"})));
    }
}
