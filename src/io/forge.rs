//! Forges: comments on pull requests, pull requests of larder's own, commit statuses. Gitea (and Forgejo), GitHub, GitLab.

mod comment;
mod dialect;
mod http;
mod pull_request;
#[cfg(test)]
mod tests;

use std::{path::PathBuf, sync::Arc};

use reqwest::{Client, Method, Url};
use serde_json::{Value, json};

pub use self::{
    comment::{Posted, WhenAbsent},
    pull_request::Proposed,
};
use crate::{
    io::http::Limits,
    model::{
        failure::{Category, Problem},
        forge::CommitStatus,
    },
};

/// Which forge it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// Gitea or Forgejo.
    Gitea,
    /// GitHub, or GitHub Enterprise.
    Github,
    /// GitLab.
    Gitlab,
}

/// Which repository at which forge. Never holds a secret.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which forge it is.
    pub kind: Kind,
    /// Its address, as a browser has it. None for GitHub's and GitLab's own.
    pub url: Option<String>,
    /// The repository: `owner/name`, at GitLab with as many groups as there are.
    pub repository: String,
    /// A file with a token in its first line, re-read at each use.
    pub token_file: PathBuf,
    /// A file of certificates that are trusted in addition to the system's.
    pub ca_file: Option<PathBuf>,
}

/// A repository at a forge.
#[derive(Clone, Debug)]
pub struct Forge {
    options: Options,
    /// The address that all paths of the API are below, without a final slash.
    api: Url,
    client: Client,
    /// Until when it asked to be left alone.
    limits: Arc<Limits>,
}

impl Forge {
    /// Checks the options; asks nothing yet.
    ///
    /// # Errors
    /// When the address, the repository's name or the certificates cannot be used.
    pub fn new(options: Options) -> Result<Self, Problem> {
        let api = dialect::api(options.kind, options.url.as_deref())?;
        dialect::check_repository(options.kind, &options.repository)?;
        let client = http::client(&api, options.ca_file.as_deref())?;
        Ok(Self { options, api, client, limits: Arc::default() })
    }

    /// The most bytes that a comment or a description may have here.
    pub fn longest_text(&self) -> usize {
        dialect::longest_text(self.options.kind)
    }

    /// Sets the status that a commit has under `context`.
    ///
    /// # Errors
    /// The forge's words.
    pub async fn set_status(&self, commit: &str, context: &str, status: &CommitStatus) -> Result<(), Problem> {
        let state = dialect::state(self.options.kind, status.state);
        let name = if self.options.kind == Kind::Gitlab { "name" } else { "context" };
        let body = json!({"state": state, name: context, "description": status.description});
        match self.call(Method::POST, &format!("statuses/{commit}"), Some(&body)).await {
            // GitLab refuses to set the state that is set already.
            Err(error) if self.options.kind == Kind::Gitlab && error.message.contains("Cannot transition status") => {
                Ok(())
            }
            other => other.map(drop),
        }
    }

    /// One call below the repository's own path.
    async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Problem> {
        let below = dialect::repository_path(self.options.kind, &self.options.repository);
        self.call_api(method, &format!("{below}/{path}"), body).await
    }

    async fn call_api(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Problem> {
        http::call(self, method, path, body).await
    }
}

/// An answer that is JSON, but not what its forge's documentation says.
fn unexpected(what: &str) -> Problem {
    Problem::new(Category::Forge, format!("the forge's answer holds no {what}"))
        .hint("check that --forge and --forge-url name the same forge")
}
