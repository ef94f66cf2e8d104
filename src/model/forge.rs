//! What forges (Gitea, GitHub, GitLab) are told and asked.

use serde::Serialize;

/// How a commit stands, in the words that all forges share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CommitState {
    /// It is on its way: nodes are pulling.
    Pending,
    /// Every node holds what it should.
    Success,
    /// Something is wrong with it.
    Failure,
}

impl CommitState {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Success => "success",
            Self::Failure => "failure",
        }
    }
}

/// A commit's status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CommitStatus {
    /// How it stands.
    pub state: CommitState,
    /// Why, in one line of at most [`CommitStatus::LONGEST`] characters.
    pub description: String,
}

impl CommitStatus {
    /// What GitHub takes: <https://docs.github.com/en/rest/commits/statuses>. The others take more.
    pub const LONGEST: usize = 140;

    /// A status; the description becomes one line that every forge takes.
    pub fn new(state: CommitState, description: &str) -> Self {
        let mut line: String = description.split_whitespace().collect::<Vec<_>>().join(" ");
        if line.chars().count() > Self::LONGEST {
            line = line.chars().take(Self::LONGEST - 1).chain(['…']).collect();
        }
        Self { state, description: line }
    }
}

/// A pull request (GitLab: merge request) from one branch of a repository to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequest {
    /// Its number.
    pub number: u64,
    /// Where people find it.
    pub url: String,
    /// Its title.
    pub title: String,
    /// Its description, as Markdown.
    pub body: String,
}

/// What a pull request should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The branch that it comes from.
    pub head: String,
    /// The branch that it goes to.
    pub base: String,
    /// Its title.
    pub title: String,
    /// Its description, as Markdown.
    pub body: String,
    /// A text in `body` that only equal proposals share: one that a person has closed is not opened again.
    pub fingerprint: String,
}

#[cfg(test)]
mod tests {
    use super::{CommitState, CommitStatus};

    #[test]
    fn a_description_is_one_short_line() {
        let status = CommitStatus::new(CommitState::Failure, &format!("a\n  b {}", "ä".repeat(200)));
        assert_eq!(status.description.chars().count(), CommitStatus::LONGEST);
        assert!(status.description.starts_with("a b ä") && status.description.ends_with('…'));
    }
}
