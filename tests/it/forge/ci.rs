//! The workflows of `docs/guides/ci`, each step as it is written, in the image that they name and as its user.

use std::{fs, process::Command};

use serde_json::{Value, json};
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate};

use super::hosted::Hosted;
use crate::scenarios::{
    environment,
    world::{run, script},
};

fn guide(name: &str) -> Value {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guides/ci").join(name);
    serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// The container image, pushed to the local registry.
fn image() -> String {
    let output = run(Command::new(script("build-image")).arg(env!("CARGO_BIN_EXE_larder")));
    String::from_utf8(output.stdout).unwrap().lines().last().unwrap().trim().to_owned()
}

/// A text with its expressions `${{ … }}` evaluated.
fn evaluate(text: &str, known: &[(&str, &str)]) -> String {
    let mut parts = text.split("${{ ");
    let mut evaluated = parts.next().unwrap().to_owned();
    for part in parts {
        let (expression, rest) = part.split_once(" }}").unwrap();
        let found = known.iter().find(|(name, _)| *name == expression);
        evaluated += found.unwrap_or_else(|| panic!("{expression} is not known")).1;
        evaluated += rest;
    }
    evaluated
}

/// `export` lines for the entries of `env`.
fn exports(env: &Value, known: &[(&str, &str)]) -> String {
    let entries = env.as_object().into_iter().flatten();
    let line = |(key, value): (&String, &Value)| {
        format!("export {key}='{}'\n", evaluate(value.as_str().unwrap(), known).replace('\'', "'\\''"))
    };
    entries.map(line).collect()
}

/// All steps of a job in one script, each in a shell of its own, as a runner starts them.
fn steps(job: &Value, known: &[(&str, &str)]) -> String {
    let mut text = exports(&job["env"], known);
    for step in job["steps"].as_array().unwrap() {
        let run = step["run"].as_str().expect("each step is a script: nothing else is needed in the image");
        text += &format!("(\n{}sh -e <<'END_OF_STEP'\n{run}\nEND_OF_STEP\n)\n", exports(&step["env"], known));
    }
    text
}

/// A pull request that changes a tag, and a runner for its jobs.
struct Change {
    hosted: Hosted,
    /// The container image.
    image: String,
    /// The name of the environment's image.
    notebook: String,
    base: String,
    head: String,
    token: String,
}

const FILE: &str = "environments/research/geo.yaml";

impl Change {
    /// `main` has the locked tag 1, the branch `change` the tag 2.
    fn new(name: &str) -> Self {
        let hosted = Hosted::new(name, "");
        let world = &hosted.world;
        let notebook = world.image("notebook");
        world.push_images(&[], &[&format!("{notebook}:1")]);
        world.push_images(&["--seed", "2"], &[&format!("{notebook}:2")]);
        world.commit(&[(FILE, &environment(&[("notebook", &format!("{notebook}:1"))], ""))], "Add");
        hosted.pass();
        let (base, token) = (hosted.tip("main"), fs::read_to_string(world.path("token")).unwrap());
        hosted.git(&["fetch", "-q", "origin"]);
        hosted.git(&["checkout", "-q", "-b", "change", "origin/main"]);
        let mut change = Self { hosted, image: image(), notebook, head: String::new(), base, token };
        change.push_tag("2");
        change
    }

    fn push_tag(&mut self, tag: &str) {
        let text = environment(&[("notebook", &format!("{}:{tag}", self.notebook))], "");
        fs::write(self.hosted.world.path("clone").join(FILE), text).unwrap();
        self.hosted.git(&["commit", "-q", "-a", "-m", "Another tag"]);
        self.hosted.git(&["push", "-q", "origin", "change"]);
        self.head = self.hosted.git(&["rev-parse", "HEAD"]);
    }

    /// What a job writes into its log, and whether it ends well. `variables` are what its runner sets by itself.
    fn run(&self, job: &str, variables: &[(&str, &str)]) -> (bool, String) {
        let path = self.hosted.world.path("job");
        fs::write(&path, job).unwrap();
        let mut command = Command::new(script("in-image"));
        let output = command.arg(&self.image).arg(path).envs(variables.iter().copied()).output().unwrap();
        let log = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(!log.contains(&self.token), "the token is in the job's log");
        (output.status.success(), log)
    }

    /// A job of GitHub, Gitea or Forgejo, with the forge at that address.
    fn run_workflow(&self, guide_name: &str, url: &str, number: &str) -> (bool, String) {
        let known = [
            ("github.server_url", url),
            ("github.repository", &self.hosted.repository),
            ("github.sha", &self.head),
            ("github.event.pull_request.base.sha", &self.base),
            ("github.event.pull_request.head.sha", &self.head),
            ("github.event.pull_request.number", number),
            ("secrets.GITEA_TOKEN", &self.token),
            ("secrets.GITHUB_TOKEN", &self.token),
        ];
        let job = steps(&guide(guide_name)["jobs"]["plan"], &known);
        self.run(&job, &[("GITHUB_SERVER_URL", url), ("GITHUB_REPOSITORY", &self.hosted.repository)])
    }
}

#[test]
fn the_workflow_for_gitea_validates_plans_and_comments() {
    let mut change = Change::new("ci");
    let opened = json!({"title": "Tag", "head": "change", "base": "main"});
    let number = change.hosted.api("POST", "pulls", Some(&opened))["number"].to_string();
    let comments = |change: &Change| {
        let comments = change.hosted.api("GET", &format!("issues/{number}/comments"), None);
        let bodies = comments.as_array().unwrap().iter().map(|one| one["body"].as_str().unwrap().to_owned());
        bodies.collect::<Vec<_>>()
    };
    let url = change.hosted.gitea.url.clone();
    let (good, log) = change.run_workflow("gitea.yml", &url, &number);
    assert!(good && log.contains("1 environment is valid") && log.contains("comment created"), "{log}");
    let posted = comments(&change);
    assert!(posted.len() == 1 && posted[0].contains("2 to change"), "{posted:?}");
    change.push_tag("99");
    let (good, log) = change.run_workflow("gitea.yml", &url, &number);
    assert!(!good && log.contains("comment updated"), "{log}");
    let posted = comments(&change);
    assert!(posted.len() == 1 && posted[0].contains("not resolved"), "{posted:?}");
}

/// Another forge's API without any comment, in front of Gitea's Git.
struct Front {
    gitea: String,
}

impl Respond for Front {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        if request.url.path().starts_with("/api/") {
            return match request.method.as_str() {
                "GET" if request.url.path().ends_with("/user") => ResponseTemplate::new(404),
                "GET" => ResponseTemplate::new(200).set_body_json(json!([])),
                _ => ResponseTemplate::new(201).set_body_json(json!({"id": 1})),
            };
        }
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        fs::write(path("body"), &request.body).unwrap();
        let mut curl = Command::new("curl");
        curl.args(["-s", "-o", &path("answer"), "-w", "%{http_code} %{content_type}", "-X", request.method.as_str()]);
        curl.args(["--data-binary", &format!("@{}", path("body"))]);
        for (name, value) in
            request.headers.iter().filter(|(name, _)| !matches!(name.as_str(), "host" | "content-length"))
        {
            curl.args(["-H", &format!("{name}: {}", value.to_str().unwrap())]);
        }
        let query = request.url.query().map(|query| format!("?{query}")).unwrap_or_default();
        let said =
            String::from_utf8(run(curl.arg(format!("{}{}{query}", self.gitea, request.url.path()))).stdout).unwrap();
        let (status, kind) = said.split_once(' ').unwrap();
        ResponseTemplate::new(status.parse::<u16>().unwrap())
            .insert_header("www-authenticate", "Basic realm=\"git\"")
            .set_body_raw(fs::read(path("answer")).unwrap_or_default(), kind)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_workflows_for_github_and_gitlab_do_so_too() {
    let change = tokio::task::spawn_blocking(|| Change::new("ci-others")).await.unwrap();
    let server = MockServer::start().await;
    let front = Front { gitea: change.hosted.gitea.url.clone() };
    Mock::given(wiremock::matchers::any()).respond_with(front).mount(&server).await;
    let url = server.uri();
    let posted = async || {
        let requests = server.received_requests().await.unwrap();
        let posts = requests.iter().filter(|one| one.url.path().starts_with("/api/") && one.method.as_str() == "POST");
        posts
            .map(|one| (one.url.path().to_owned(), String::from_utf8_lossy(&one.body).into_owned()))
            .collect::<Vec<_>>()
    };
    let (good, log) = change.run_workflow("github.yml", &url, "7");
    assert!(good && log.contains("1 environment is valid") && log.contains("comment created"), "{log}");
    let (path, body) = posted().await.pop().unwrap();
    assert!(path.ends_with("/issues/7/comments") && body.contains("2 to change"), "{path}: {body}");

    let job = guide("gitlab.yml")["larder plan"].clone();
    let mut text = "printf '%s' \"$CI_JOB_TOKEN\" >/tmp/file; export LARDER_TOKEN=/tmp/file\n".to_owned();
    for (name, value) in job["variables"].as_object().unwrap() {
        text += &format!("export {name}=\"{}\"\n", value.as_str().unwrap());
    }
    for line in job["script"].as_array().unwrap() {
        text += &format!("{}\n", line.as_str().unwrap());
    }
    let (good, log) = change.run(
        &text,
        &[
            ("CI_JOB_TOKEN", &change.token),
            ("CI_PROJECT_URL", &format!("{url}/{}", change.hosted.repository)),
            ("CI_PROJECT_PATH", &change.hosted.repository),
            ("CI_SERVER_URL", &url),
            ("CI_COMMIT_SHA", &change.head),
            ("CI_MERGE_REQUEST_DIFF_BASE_SHA", &change.base),
            ("CI_MERGE_REQUEST_IID", "8"),
        ],
    );
    assert!(good && log.contains("1 environment is valid") && log.contains("comment created"), "{log}");
    let (path, body) = posted().await.pop().unwrap();
    assert!(path.ends_with("/merge_requests/8/notes") && body.contains("2 to change"), "{path}: {body}");
    tokio::task::spawn_blocking(|| drop(change)).await.unwrap();
}
