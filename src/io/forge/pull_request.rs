//! One pull request of larder's own between two branches: made, kept up to date, closed.

use reqwest::Method;

use super::{Forge, dialect, unexpected};
use crate::model::{
    failure::Problem,
    forge::{Proposal, PullRequest},
};

/// Pages of a list that are looked through.
const PAGES: usize = 10;

/// What became of a proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proposed {
    /// It is a new pull request, at this address.
    Opened(String),
    /// The open pull request says something else now.
    Updated(String),
    /// It is open already and says all that.
    Unchanged(String),
    /// A person has closed the very same proposal: it is left alone.
    Rejected(String),
}

impl Proposed {
    /// The pull request's address.
    pub fn url(&self) -> &str {
        let (Self::Opened(url) | Self::Updated(url) | Self::Unchanged(url) | Self::Rejected(url)) = self;
        url
    }
}

impl Forge {
    /// Sees to it that there is one open pull request for the proposal, which says what the proposal says.
    ///
    /// # Errors
    /// The forge's words.
    pub async fn propose(&self, proposal: &Proposal) -> Result<Proposed, Problem> {
        let kind = self.options.kind;
        let branches = (proposal.head.as_str(), proposal.base.as_str());
        if let Some(open) = self.pull_requests(branches, true).await?.into_iter().next() {
            if open.title == proposal.title && same(&open.body, &proposal.body) {
                return Ok(Proposed::Unchanged(open.url));
            }
            self.change(open.number, &dialect::update(kind, proposal)).await?;
            return Ok(Proposed::Updated(open.url));
        }
        let closed = self.pull_requests(branches, false).await?;
        if let Some(rejected) = closed.into_iter().find(|closed| closed.body.contains(&proposal.fingerprint)) {
            return Ok(Proposed::Rejected(rejected.url));
        }
        let path = dialect::pull_requests(kind);
        let made = self.call(Method::POST, path, Some(&dialect::create(kind, proposal))).await?;
        let url = made["html_url"].as_str().or_else(|| made["web_url"].as_str());
        url.map(|url| Proposed::Opened(url.to_owned())).ok_or_else(|| unexpected("pull request"))
    }

    /// Closes the open pull requests between two branches; how many there were.
    ///
    /// # Errors
    /// The forge's words.
    pub async fn withdraw(&self, head: &str, base: &str) -> Result<usize, Problem> {
        let open = self.pull_requests((head, base), true).await?;
        for pull_request in &open {
            self.change(pull_request.number, &dialect::close(self.options.kind)).await?;
        }
        Ok(open.len())
    }

    async fn change(&self, number: u64, change: &serde_json::Value) -> Result<(), Problem> {
        let method = if self.options.kind == super::Kind::Gitlab { Method::PUT } else { Method::PATCH };
        let path = format!("{}/{number}", dialect::pull_requests(self.options.kind));
        self.call(method, &path, Some(change)).await.map(drop)
    }

    /// Pull requests between two branches that were not merged.
    async fn pull_requests(&self, branches: (&str, &str), open: bool) -> Result<Vec<PullRequest>, Problem> {
        let (kind, repository) = (self.options.kind, self.options.repository.as_str());
        let mut found = Vec::new();
        // Of closed ones the latest are enough.
        for page in 1..=(if open { PAGES } else { 1 }) {
            let path = dialect::list(kind, repository, branches, open, page);
            let answer = self.call(Method::GET, &path, None).await?;
            let list = answer.as_array().ok_or_else(|| unexpected("list of pull requests"))?;
            found.extend(list.iter().filter_map(|value| dialect::read(kind, repository, branches, value)));
            if list.len() < 50 {
                break;
            }
        }
        Ok(found)
    }
}

/// Forges change line ends and the white space at the end.
fn same(a: &str, b: &str) -> bool {
    a.replace("\r\n", "\n").trim() == b.replace("\r\n", "\n").trim()
}
