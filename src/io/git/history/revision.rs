//! Commits by name and by time.

use gix::bstr::BStr;

use super::{
    super::{GitError, redact::printable},
    ledger::Ledger,
};
use crate::model::history::CommitInfo;

impl Ledger {
    /// The commit that a revision names, in Git's own words (<https://git-scm.com/docs/gitrevisions>). `HEAD`, `@` and
    /// the branch that is followed are the tip, whatever is checked out.
    ///
    /// # Errors
    /// [`GitError::Revision`] when it names none, or several.
    pub fn revision(&self, text: &str) -> Result<CommitInfo, GitError> {
        let fail =
            |detail: String| GitError::Revision { remote: self.options.remote(), revision: printable(text), detail };
        // `@` alone is short for HEAD.
        let long = text.strip_prefix('@').filter(|rest| !rest.starts_with('{')).map(|rest| format!("HEAD{rest}"));
        let text = long.as_deref().unwrap_or(text);
        let (name, rest) = text.split_at(text.find(['~', '^', '@', ':']).unwrap_or(text.len()));
        let is_tip = name == "HEAD" || Some(name) == self.branch.as_deref();
        let spec = if is_tip && !rest.starts_with(['@', ':']) { format!("{}{rest}", self.tip) } else { text.into() };
        if spec.starts_with('-') || spec.contains("..") {
            return Err(fail("one commit is expected, not a range".into()));
        }
        let commit =
            self.repository.rev_parse_single(BStr::new(spec.as_bytes())).and_then(|id| id.object()?.peel_to_commit());
        let commit = commit.map_err(|error| fail(printable(&error.to_string())))?;
        self.info(commit.id)
    }

    /// The newest commit, along first parents from the tip on, that was committed then or earlier; none when all here
    /// are younger. What `git rev-list -1 --first-parent --before` gives.
    ///
    /// # Errors
    /// [`GitError::Corrupt`] and others.
    pub fn at(&self, seconds: i64) -> Result<Option<CommitInfo>, GitError> {
        let mut next = Some(self.tip.0);
        while let Some(step) = next.map(|id| self.step(id)).transpose()?.flatten() {
            if step.seconds <= seconds {
                return self.info(step.id).map(Some);
            }
            next = step.parent;
        }
        Ok(None)
    }

    /// That a time names no commit.
    pub fn no_commit(&self, detail: &str) -> GitError {
        let (remote, detail) = (self.options.remote(), detail.to_owned());
        GitError::Revision { remote, revision: "this time".to_owned(), detail }
    }

    /// The newest commit of all.
    ///
    /// # Errors
    /// [`GitError::Corrupt`].
    pub fn tip(&self) -> Result<CommitInfo, GitError> {
        self.info(self.tip.0)
    }
}
