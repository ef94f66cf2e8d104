//! Where the three forges differ: addresses, paths, words, limits.
//!
//! Sources: <https://docs.gitea.com/api/>, <https://docs.github.com/en/rest>, <https://docs.gitlab.com/api/rest/>.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Url;
use serde_json::{Value, json};

use super::Kind;
use crate::{
    io::http::is_loopback,
    model::{
        failure::{Category, Problem},
        forge::{CommitState, Proposal, PullRequest},
    },
};

/// The API's address: `url` as a browser has it, with what the forge puts below it.
pub(super) fn api(kind: Kind, url: Option<&str>) -> Result<Url, Problem> {
    let refuse = |problem: &str| {
        Problem::new(Category::Forge, format!("--forge-url {problem}"))
            .hint("give the address that a browser uses, such as https://git.example.com")
    };
    let text = match (kind, url) {
        (_, Some(url)) => url,
        (Kind::Github, None) => "https://api.github.com",
        (Kind::Gitlab, None) => "https://gitlab.com",
        (Kind::Gitea, None) => return Err(refuse("is missing: Gitea has no address of its own")),
    };
    let mut url: Url = text.parse().map_err(|_| refuse("is not an address"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(refuse("is no http(s) address"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refuse("holds a user or a token; put the token into a file and name that with --forge-token-file"));
    }
    if url.scheme() == "http" && !is_loopback(url.host_str().unwrap_or_default()) {
        return Err(refuse("would send the token unencrypted; use https"));
    }
    url.set_query(None);
    url.set_fragment(None);
    let suffix = match (kind, url.host_str().unwrap_or_default()) {
        (Kind::Github, "api.github.com") => "",
        (Kind::Github, "github.com") => {
            return "https://api.github.com".parse().map_err(|_| refuse("is not an address"));
        }
        (Kind::Github, _) => "/api/v3",
        (Kind::Gitea, _) => "/api/v1",
        (Kind::Gitlab, _) => "/api/v4",
    };
    let base = url.path().trim_end_matches('/').trim_end_matches(suffix).to_owned();
    url.set_path(&format!("{base}{suffix}"));
    Ok(url)
}

pub(super) fn check_repository(kind: Kind, repository: &str) -> Result<(), Problem> {
    let parts: Vec<&str> = repository.split('/').collect();
    let letters = |part: &&str| {
        let known = part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
        !part.is_empty() && known && !matches!(*part, "." | "..")
    };
    let count = if kind == Kind::Gitlab { parts.len() >= 2 } else { parts.len() == 2 };
    if count && parts.iter().all(letters) {
        return Ok(());
    }
    Err(Problem::new(Category::Forge, format!("--forge-repo `{repository}` is not a repository"))
        .hint("write owner/name"))
}

pub(super) fn repository_path(kind: Kind, repository: &str) -> String {
    match kind {
        Kind::Gitea | Kind::Github => format!("repos/{repository}"),
        Kind::Gitlab => format!("projects/{}", utf8_percent_encode(repository, NON_ALPHANUMERIC)),
    }
}

/// GitHub takes 65,536 characters, GitLab 1,000,000; Gitea takes more, which nobody would read.
pub(super) fn longest_text(kind: Kind) -> usize {
    match kind {
        Kind::Github => 65_000,
        Kind::Gitea => 250_000,
        Kind::Gitlab => 990_000,
    }
}

pub(super) fn state(kind: Kind, state: CommitState) -> &'static str {
    match (state, kind) {
        (CommitState::Pending, _) => "pending",
        (CommitState::Success, _) => "success",
        (CommitState::Failure, Kind::Gitlab) => "failed",
        (CommitState::Failure, _) => "failure",
    }
}

/// Where pull requests are.
pub(super) fn pull_requests(kind: Kind) -> &'static str {
    if kind == Kind::Gitlab { "merge_requests" } else { "pulls" }
}

/// The list of pull requests between two branches, one page. Gitea cannot be asked by branch.
pub(super) fn list(kind: Kind, repository: &str, (head, base): (&str, &str), open: bool, page: usize) -> String {
    let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let owner = repository.split('/').next().unwrap_or_default();
    let state = if open { "open" } else { "closed" };
    let (head, base) = (encode(head), encode(base));
    match kind {
        Kind::Gitea => format!("pulls?state={state}&sort=recentupdate&limit=50&page={page}"),
        Kind::Github => {
            format!("pulls?state={state}&head={}%3A{head}&base={base}&per_page=100&page={page}", encode(owner))
        }
        Kind::Gitlab => {
            let state = if open { "opened" } else { "closed" };
            format!("merge_requests?state={state}&source_branch={head}&target_branch={base}&per_page=100&page={page}")
        }
    }
}

/// Reads a pull request, if it is one between these branches of this very repository and was not merged.
pub(super) fn read(kind: Kind, repository: &str, (head, base): (&str, &str), value: &Value) -> Option<PullRequest> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if kind == Kind::Gitlab {
        let fits = value["source_branch"] == head
            && value["target_branch"] == base
            && value["source_project_id"] == value["target_project_id"];
        return fits.then(|| PullRequest {
            number: value["iid"].as_u64().unwrap_or_default(),
            url: text(&value["web_url"]),
            title: text(&value["title"]),
            body: text(&value["description"]),
        });
    }
    let own = value["head"]["repo"]["full_name"].as_str().is_some_and(|name| name.eq_ignore_ascii_case(repository));
    let merged = value["merged"] == true || value["merged_at"].is_string();
    let fits = value["head"]["ref"] == head && value["base"]["ref"] == base && own && !merged;
    fits.then(|| PullRequest {
        number: value["number"].as_u64().unwrap_or_default(),
        url: text(&value["html_url"]),
        title: text(&value["title"]),
        body: text(&value["body"]),
    })
}

pub(super) fn create(kind: Kind, proposal: &Proposal) -> Value {
    let Proposal { head, base, title, body, .. } = proposal;
    match kind {
        Kind::Gitlab => json!({
            "title": title, "description": body, "source_branch": head, "target_branch": base, "remove_source_branch": true,
        }),
        Kind::Gitea | Kind::Github => json!({"title": title, "body": body, "head": head, "base": base}),
    }
}

pub(super) fn update(kind: Kind, proposal: &Proposal) -> Value {
    let body = if kind == Kind::Gitlab { "description" } else { "body" };
    json!({"title": proposal.title, body: proposal.body})
}

pub(super) fn close(kind: Kind) -> Value {
    if kind == Kind::Gitlab { json!({"state_event": "close"}) } else { json!({"state": "closed"}) }
}
