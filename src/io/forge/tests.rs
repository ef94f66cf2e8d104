//! The exact requests that each forge gets, and what is made of its answers.

use serde_json::{Value, json};
use wiremock::{
    Mock, MockServer, ResponseTemplate,
    matchers::{body_json, header, method, path, query_param},
};

use super::{Forge, Kind, Options, Posted, Proposed, WhenAbsent, dialect};
use crate::model::{
    failure::Category,
    forge::{CommitState, CommitStatus, Proposal},
};

/// Must not be seen in any error.
const TOKEN: &str = "canary-token-7f3a";
const MARKER: &str = "<!-- larder:plan:default -->";

struct World {
    server: MockServer,
    forge: Forge,
    kind: Kind,
    _folder: tempfile::TempDir,
}

impl World {
    async fn new(kind: Kind) -> Self {
        let server = MockServer::start().await;
        let folder = tempfile::tempdir().unwrap();
        let token_file = folder.path().join("token");
        std::fs::write(&token_file, format!("{TOKEN}\n")).unwrap();
        let forge = Forge::new(Options {
            kind,
            url: Some(server.uri()),
            repository: "team/environments".into(),
            token_file,
            ca_file: None,
        })
        .unwrap();
        Self { server, forge, kind, _folder: folder }
    }

    /// Below the repository's own path.
    fn path(&self, rest: &str) -> String {
        match self.kind {
            Kind::Gitea => format!("/api/v1/repos/team/environments/{rest}"),
            Kind::Github => format!("/api/v3/repos/team/environments/{rest}"),
            Kind::Gitlab => format!("/api/v4/projects/team%2Fenvironments/{rest}"),
        }
    }

    fn authorised(&self, verb: &str, at: &str) -> wiremock::MockBuilder {
        let mock = Mock::given(method(verb)).and(path(at));
        match self.kind {
            Kind::Gitea => mock.and(header("authorization", format!("token {TOKEN}").as_str())),
            Kind::Github => mock
                .and(header("authorization", format!("Bearer {TOKEN}").as_str()))
                .and(header("x-github-api-version", "2022-11-28")),
            Kind::Gitlab => mock.and(header("private-token", TOKEN)),
        }
    }

    async fn expect(&self, mock: wiremock::MockBuilder, status: u16, answer: Value) {
        mock.respond_with(ResponseTemplate::new(status).set_body_json(answer)).expect(1).mount(&self.server).await;
    }

    async fn me(&self, name: &str) {
        let at = match self.kind {
            Kind::Gitea => "/api/v1/user",
            Kind::Github => "/api/v3/user",
            Kind::Gitlab => "/api/v4/user",
        };
        let answer = json!({"login": name, "username": name});
        self.expect(self.authorised("GET", at), 200, answer).await;
    }
}

fn comment(id: u64, author: &str, body: &str) -> Value {
    json!({"id": id, "body": body, "user": {"login": author}, "author": {"username": author}})
}

const KINDS: [Kind; 3] = [Kind::Gitea, Kind::Github, Kind::Gitlab];

fn comments(kind: Kind) -> &'static str {
    if kind == Kind::Gitlab { "merge_requests/7/notes" } else { "issues/7/comments" }
}

#[tokio::test]
async fn a_comment_is_made_once() {
    for kind in KINDS {
        let world = World::new(kind).await;
        world.me("bot").await;
        let all = world.path(comments(kind));
        let others = json!([comment(1, "ada", "hello"), comment(2, "ada", &format!("{MARKER}\nquoted"))]);
        world.expect(world.authorised("GET", &all), 200, others).await;
        let body = format!("{MARKER}\nplan");
        world.expect(world.authorised("POST", &all).and(body_json(json!({"body": body}))), 201, json!({"id": 3})).await;
        let posted = world.forge.comment(7, MARKER, &body, WhenAbsent::Create).await.unwrap();
        assert_eq!(posted, Posted::Created, "{kind:?}: the comment of someone else is not ours");
    }
}

#[tokio::test]
async fn our_own_comment_is_updated_in_place() {
    for kind in KINDS {
        let world = World::new(kind).await;
        world.me("bot").await;
        let all = world.path(comments(kind));
        let ours = json!([comment(1, "ada", "hello"), comment(2, "bot", &format!("{MARKER}\r\nold"))]);
        world.expect(world.authorised("GET", &all), 200, ours).await;
        let (verb, one) = match kind {
            Kind::Gitlab => ("PUT", world.path("merge_requests/7/notes/2")),
            _ => ("PATCH", world.path("issues/comments/2")),
        };
        let body = format!("{MARKER}\nnew");
        world.expect(world.authorised(verb, &one).and(body_json(json!({"body": body}))), 200, json!({})).await;
        let posted = world.forge.comment(7, MARKER, &body, WhenAbsent::Leave).await.unwrap();
        assert_eq!(posted, Posted::Updated, "{kind:?}");
    }
}

#[tokio::test]
async fn a_comment_that_says_it_already_is_left_alone_and_none_is_made_for_nothing() {
    for kind in KINDS {
        let world = World::new(kind).await;
        let same = json!([comment(2, "bot", &format!("{MARKER}\r\nplan"))]);
        world.expect(world.authorised("GET", &world.path(comments(kind))), 200, same).await;
        // A job's own token may not ask who it is.
        let body = format!("{MARKER}\nplan\n");
        let posted = world.forge.comment(7, MARKER, &body, WhenAbsent::Create).await.unwrap();
        assert_eq!(posted, Posted::Unchanged, "{kind:?}");
        let world = World::new(kind).await;
        world.expect(world.authorised("GET", &world.path(comments(kind))), 200, json!([])).await;
        let posted = world.forge.comment(7, MARKER, "x", WhenAbsent::Leave).await.unwrap();
        assert_eq!(posted, Posted::Absent, "{kind:?}");
    }
}

#[tokio::test]
async fn comments_on_later_pages_are_found() {
    let world = World::new(Kind::Github).await;
    let all = world.path("issues/7/comments");
    let full: Vec<Value> = (0..100).map(|id| comment(id, "ada", "hello")).collect();
    world.expect(world.authorised("GET", &all).and(query_param("page", "1")), 200, json!(full)).await;
    let ours = json!([comment(200, "github-actions[bot]", MARKER)]);
    world.expect(world.authorised("GET", &all).and(query_param("page", "2")), 200, ours).await;
    assert_eq!(world.forge.comment(7, MARKER, MARKER, WhenAbsent::Create).await.unwrap(), Posted::Unchanged);
}

#[tokio::test]
async fn a_commit_status_is_set_in_each_forges_words() {
    for (kind, state, expected) in [
        (
            Kind::Gitea,
            CommitState::Failure,
            json!({"state": "failure", "context": "larder/default", "description": "why"}),
        ),
        (
            Kind::Github,
            CommitState::Pending,
            json!({"state": "pending", "context": "larder/default", "description": "why"}),
        ),
        (
            Kind::Gitlab,
            CommitState::Failure,
            json!({"state": "failed", "name": "larder/default", "description": "why"}),
        ),
        (
            Kind::Gitlab,
            CommitState::Success,
            json!({"state": "success", "name": "larder/default", "description": "why"}),
        ),
    ] {
        let world = World::new(kind).await;
        let at = world.path("statuses/abc");
        world.expect(world.authorised("POST", &at).and(body_json(expected)), 201, json!({})).await;
        world.forge.set_status("abc", "larder/default", &CommitStatus::new(state, "why")).await.unwrap();
    }
    // GitLab: the state that it has already.
    let world = World::new(Kind::Gitlab).await;
    let words = json!({"message": "Cannot transition status via :enqueue from :pending"});
    world.expect(world.authorised("POST", &world.path("statuses/abc")), 400, words).await;
    world.forge.set_status("abc", "c", &CommitStatus::new(CommitState::Pending, "")).await.unwrap();
}

fn proposal() -> Proposal {
    Proposal {
        head: "larder/lock".into(),
        base: "main".into(),
        title: "lock: research/geo".into(),
        body: "<!-- larder:lock:1 -->\nbody".into(),
        fingerprint: "<!-- larder:lock:1 -->".into(),
    }
}

fn pull_request(kind: Kind, title: &str, body: &str, base: &str) -> Value {
    match kind {
        Kind::Gitlab => json!({
            "iid": 5, "web_url": "https://forge/5", "title": title, "description": body,
            "source_branch": "larder/lock", "target_branch": base, "source_project_id": 1, "target_project_id": 1,
        }),
        _ => json!({
            "number": 5, "html_url": "https://forge/5", "title": title, "body": body, "merged": false, "merged_at": null,
            "head": {"ref": "larder/lock", "repo": {"full_name": "team/environments"}}, "base": {"ref": base},
        }),
    }
}

async fn lists(world: &World, open: Value, closed: Option<Value>) {
    let at = world.path(dialect::pull_requests(world.kind));
    let words = if world.kind == Kind::Gitlab { ["opened", "closed"] } else { ["open", "closed"] };
    let ask = |state: &str| {
        let mock = world.authorised("GET", &at).and(query_param("state", state));
        match world.kind {
            Kind::Gitea => mock.and(query_param("limit", "50")),
            Kind::Github => mock.and(query_param("head", "team:larder/lock")).and(query_param("base", "main")),
            Kind::Gitlab => {
                mock.and(query_param("source_branch", "larder/lock")).and(query_param("target_branch", "main"))
            }
        }
    };
    world.expect(ask(words[0]), 200, open).await;
    if let Some(closed) = closed {
        world.expect(ask(words[1]), 200, closed).await;
    }
}

#[tokio::test]
async fn a_proposal_is_opened_once_and_kept_up_to_date() {
    for kind in KINDS {
        let world = World::new(kind).await;
        // Between other branches, and of another fork.
        let mut fork = pull_request(kind, "x", "y", "main");
        fork["head"] = json!({"ref": "larder/lock", "repo": {"full_name": "mallory/environments"}});
        fork["source_project_id"] = json!(2);
        lists(&world, json!([pull_request(kind, "x", "y", "next"), fork]), Some(json!([]))).await;
        let made = match kind {
            Kind::Gitlab => json!({
                "title": "lock: research/geo", "description": "<!-- larder:lock:1 -->\nbody",
                "source_branch": "larder/lock", "target_branch": "main", "remove_source_branch": true,
            }),
            _ => json!({
                "title": "lock: research/geo", "body": "<!-- larder:lock:1 -->\nbody", "head": "larder/lock", "base": "main",
            }),
        };
        let at = world.path(dialect::pull_requests(kind));
        let answer = pull_request(kind, "", "", "main");
        world.expect(world.authorised("POST", &at).and(body_json(made)), 201, answer).await;
        assert_eq!(world.forge.propose(&proposal()).await.unwrap(), Proposed::Opened("https://forge/5".into()));

        let world = World::new(kind).await;
        lists(&world, json!([pull_request(kind, "lock: other", "<!-- larder:lock:0 -->", "main")]), None).await;
        let (verb, body) = if kind == Kind::Gitlab { ("PUT", "description") } else { ("PATCH", "body") };
        let change = json!({"title": "lock: research/geo", body: "<!-- larder:lock:1 -->\nbody"});
        let one = format!("{at}/5");
        world.expect(world.authorised(verb, &one).and(body_json(change)), 200, json!({})).await;
        assert_eq!(world.forge.propose(&proposal()).await.unwrap(), Proposed::Updated("https://forge/5".into()));

        let world = World::new(kind).await;
        let same = pull_request(kind, "lock: research/geo", "<!-- larder:lock:1 -->\r\nbody\n", "main");
        lists(&world, json!([same]), None).await;
        assert_eq!(world.forge.propose(&proposal()).await.unwrap(), Proposed::Unchanged("https://forge/5".into()));
    }
}

#[tokio::test]
async fn what_a_person_closed_is_not_opened_again_and_what_is_moot_is_closed() {
    for kind in KINDS {
        let world = World::new(kind).await;
        let closed = pull_request(kind, "t", "<!-- larder:lock:1 -->\nbody", "main");
        lists(&world, json!([]), Some(json!([closed]))).await;
        assert_eq!(world.forge.propose(&proposal()).await.unwrap(), Proposed::Rejected("https://forge/5".into()));

        let world = World::new(kind).await;
        lists(&world, json!([pull_request(kind, "t", "b", "main")]), None).await;
        let one = format!("{}/5", world.path(dialect::pull_requests(kind)));
        let (verb, change) = match kind {
            Kind::Gitlab => ("PUT", json!({"state_event": "close"})),
            _ => ("PATCH", json!({"state": "closed"})),
        };
        world.expect(world.authorised(verb, &one).and(body_json(change)), 200, json!({})).await;
        assert_eq!(world.forge.withdraw("larder/lock", "main").await.unwrap(), 1);
    }
}

#[tokio::test]
async fn refusals_come_in_the_forges_words_without_the_token() {
    for (status, body, category, expected) in [
        (401, json!({"message": "bad credentials"}), Category::Credentials, "bad credentials"),
        (
            403,
            json!({"message": format!("token {TOKEN} may not"), "errors": [{"message": "branch protected"}]}),
            Category::Forge,
            "branch protected",
        ),
        (404, json!({"error": "404 Project Not Found"}), Category::Forge, "404 Project Not Found"),
        (422, json!({"message": ["a", "b"]}), Category::Forge, r#"["a","b"]"#),
        (302, json!({}), Category::Forge, "status 302"),
    ] {
        let world = World::new(Kind::Gitea).await;
        world.expect(world.authorised("POST", &world.path("statuses/abc")), status, body).await;
        let status = CommitStatus::new(CommitState::Success, "");
        let problem = world.forge.set_status("abc", "c", &status).await.unwrap_err();
        assert_eq!(problem.category, category, "{problem}");
        assert!(problem.message.contains(expected) && problem.hint.is_some(), "{problem}");
        assert!(!problem.to_string().contains(TOKEN), "{problem}");
    }
}

#[tokio::test]
async fn an_enormous_answer_is_not_read_to_its_end() {
    let world = World::new(Kind::Gitea).await;
    let body = format!("[{}1]", "1,".repeat(9 * 1024 * 1024));
    world
        .authorised("GET", &world.path("issues/7/comments"))
        .respond_with(ResponseTemplate::new(200).set_body_string(body))
        .mount(&world.server)
        .await;
    world.forge.comment(7, MARKER, MARKER, WhenAbsent::Create).await.unwrap_err();
}

#[test]
fn addresses_are_those_of_browsers() {
    for (kind, given, expected) in [
        (Kind::Github, None, Some("https://api.github.com/")),
        (Kind::Github, Some("https://github.com"), Some("https://api.github.com/")),
        (Kind::Github, Some("https://api.github.com"), Some("https://api.github.com/")),
        (Kind::Github, Some("https://ghe.example.com/"), Some("https://ghe.example.com/api/v3")),
        (Kind::Gitlab, None, Some("https://gitlab.com/api/v4")),
        (Kind::Gitlab, Some("https://example.com/gitlab/"), Some("https://example.com/gitlab/api/v4")),
        (Kind::Gitea, Some("https://git.example.com/api/v1/"), Some("https://git.example.com/api/v1")),
        (Kind::Gitea, Some("http://127.0.0.1:3000"), Some("http://127.0.0.1:3000/api/v1")),
        (Kind::Gitea, Some("http://git.example.com"), None),
        (Kind::Gitea, None, None),
        (Kind::Gitea, Some("https://u:canary@git.example.com"), None),
        (Kind::Gitea, Some("ftp://git.example.com"), None),
        (Kind::Gitea, Some("nonsense"), None),
    ] {
        let found = dialect::api(kind, given);
        assert_eq!(found.as_ref().ok().map(reqwest::Url::as_str), expected, "{given:?}");
        if let Err(problem) = found {
            assert!(!problem.to_string().contains("canary"), "{problem}");
        }
    }
    for (kind, name, fits) in [
        (Kind::Gitea, "team/environments", true),
        (Kind::Github, "team/sub/environments", false),
        (Kind::Gitlab, "team/sub/environments", true),
        (Kind::Gitlab, "environments", false),
        (Kind::Gitea, "../environments", false),
        (Kind::Gitea, "team/a?b", false),
    ] {
        assert_eq!(dialect::check_repository(kind, name).is_ok(), fits, "{name}");
    }
}

#[tokio::test]
async fn a_rate_limit_is_told_from_a_missing_right_and_kept() {
    let soon = (jiff::Timestamp::now().as_second() + 1800).to_string();
    for (code, headers) in [
        (403, vec![("retry-after", "60")]),
        (403, vec![("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", soon.as_str())]),
        (429, vec![]),
    ] {
        let world = World::new(Kind::Github).await;
        let mut answer = ResponseTemplate::new(code).set_body_json(json!({"message": "secondary rate limit"}));
        for (name, value) in &headers {
            answer = answer.insert_header(*name, *value);
        }
        // Once, however often larder would like to ask.
        Mock::given(wiremock::matchers::any()).respond_with(answer).expect(1).mount(&world.server).await;
        for _ in 0..3 {
            let status = CommitStatus { state: CommitState::Success, description: "well".into() };
            let problem = world.forge.set_status("abc", "larder/x", &status).await.unwrap_err();
            let text = problem.to_string();
            assert!(text.contains("limits the rate of requests until 20") && !text.contains("write access"), "{text}");
            assert!(!text.contains(TOKEN), "{text}");
        }
    }
}

#[tokio::test]
async fn a_short_wait_is_kept_within_the_call() {
    let world = World::new(Kind::Gitea).await;
    let limited = ResponseTemplate::new(429).insert_header("retry-after", "0");
    Mock::given(wiremock::matchers::any()).respond_with(limited).up_to_n_times(1).mount(&world.server).await;
    world.expect(world.authorised("POST", &world.path("statuses/abc")), 201, json!({})).await;
    let status = CommitStatus { state: CommitState::Success, description: "well".into() };
    world.forge.set_status("abc", "larder/x", &status).await.unwrap();
}

#[tokio::test]
async fn an_address_that_has_moved_is_named() {
    let world = World::new(Kind::Gitea).await;
    let moved = ResponseTemplate::new(301).insert_header("location", "https://u:p@git.example.org/api/v1/x");
    Mock::given(wiremock::matchers::any()).respond_with(moved).mount(&world.server).await;
    let status = CommitStatus { state: CommitState::Success, description: "well".into() };
    let text = world.forge.set_status("abc", "larder/x", &status).await.unwrap_err().to_string();
    assert!(text.contains("moved to https://git.example.org;") && !text.contains("u:p"), "{text}");
}
