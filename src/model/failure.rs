//! Why something could not be done: problems with a place, an explanation and a hint.

use std::{fmt, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::lint::Lint;

/// The kind of a problem. A static word, used as the label of metrics and in JSON output; never a formatted error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Category {
    /// The text is no YAML (or JSON), or goes over a budget of bytes, depth, nodes or aliases.
    Syntax,
    /// The text is YAML, but not what the schema allows.
    Schema,
    /// An image reference that does not parse.
    Reference,
    /// A name that Kubernetes or larder does not allow, or that collides with another.
    Name,
    /// Something that this version or this tenant may not do.
    Policy,
    /// A registry's answer, or that there was none.
    Registry,
    /// Credentials that are missing, malformed or refused.
    Credentials,
    /// A template that does not render, or renders something that is not allowed.
    Template,
    /// The lock cannot be read or does not fit.
    Lock,
    /// The cluster's answer, or that there was none.
    Cluster,
    /// An object or a field that belongs to someone else.
    Conflict,
    /// More would be deleted than the budget allows.
    Budget,
    /// Git's answer, or that there was none.
    Git,
    /// A forge's answer (Gitea, GitHub, GitLab), or that there was none.
    Forge,
    /// The local machine: a file that cannot be read or written.
    Io,
}

impl Category {
    /// The word for metrics, JSON and `error[…]`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::Schema => "schema",
            Self::Reference => "reference",
            Self::Name => "name",
            Self::Policy => "policy",
            Self::Registry => "registry",
            Self::Credentials => "credentials",
            Self::Template => "template",
            Self::Lock => "lock",
            Self::Cluster => "cluster",
            Self::Conflict => "conflict",
            Self::Budget => "budget",
            Self::Git => "git",
            Self::Forge => "forge",
            Self::Io => "io",
        }
    }
}

/// A text that a problem points into: a file of the environment repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Path from the root of the environment repository, with `/`.
    pub path: String,
    /// The whole text, for the excerpt that is shown.
    pub text: Arc<str>,
}

/// A place in a file of the environment repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Location {
    /// Path from the root of the environment repository, with `/`.
    pub path: String,
    /// Line, counted from 1; 0 when the whole file is meant.
    pub line: usize,
    /// Column in characters, counted from 1; 0 when the whole line is meant.
    pub column: usize,
    /// Length in characters of what is meant; 0 when unknown.
    pub length: usize,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.column) {
            (0, _) => write!(f, "{}", self.path),
            (line, 0) => write!(f, "{}:{line}", self.path),
            (line, column) => write!(f, "{}:{line}:{column}", self.path),
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// Its kind.
    pub category: Category,
    /// What is wrong, in one sentence without a final stop. Never holds a secret.
    pub message: String,
    /// Where, if it is in a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The lint that found it, when it is allowed and only looks like a mistake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lint: Option<Lint>,
    /// The text of the file that `location` points into, for an excerpt.
    #[serde(skip)]
    pub source: Option<Arc<str>>,
}

impl Problem {
    /// A problem without a place.
    pub fn new(category: Category, message: impl Into<String>) -> Self {
        Self { category, message: message.into(), location: None, hint: None, lint: None, source: None }
    }

    /// The word for `error[…]` and `warning[…]`: the lint's name, or that of the category.
    pub fn code(&self) -> &'static str {
        self.lint.map_or(self.category.as_str(), Lint::as_str)
    }

    /// Its place and message, for where the hint is shown separately.
    pub fn without_hint(&self) -> String {
        match &self.location {
            Some(location) => format!("{location}: {}", self.message),
            None => self.message.clone(),
        }
    }

    /// Makes it the finding of a lint.
    #[must_use]
    pub fn lint(mut self, lint: Lint) -> Self {
        self.lint = Some(lint);
        self
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a place; `line` and `column` count from 1, 0 is "all of it".
    #[must_use]
    pub fn at(mut self, source: &Source, line: usize, column: usize, length: usize) -> Self {
        self.location = Some(Location { path: source.path.clone(), line, column, length });
        self.source = Some(source.text.clone());
        self
    }

    /// Adds a file as a place, when no line is known.
    #[must_use]
    pub fn in_file(mut self, path: impl Into<String>) -> Self {
        self.location = Some(Location { path: path.into(), line: 0, column: 0, length: 0 });
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.without_hint())?;
        if let Some(hint) = &self.hint {
            write!(f, " (hint: {hint})")?;
        }
        Ok(())
    }
}

/// The most problems that one failure keeps; the rest are counted.
pub const MAX_PROBLEMS: usize = 50;

/// Keeps so many problems, at least one; a last one counts the rest.
pub fn capped(mut problems: Vec<Problem>, most: usize) -> Vec<Problem> {
    let most = most.max(1);
    let more = problems.len().saturating_sub(most);
    if more > 0 {
        problems.truncate(most);
        let message = if more == 1 { "and 1 more problem".to_owned() } else { format!("and {more} more problems") };
        let last = problems.last();
        let category = last.map_or(Category::Io, |last| last.category);
        let path = last.and_then(|last| last.location.as_ref()).map(|location| location.path.clone());
        let rest = Problem::new(category, message).hint("fix those above first");
        problems.push(match path {
            Some(path) => rest.in_file(path),
            None => rest,
        });
    }
    problems
}

/// Why an environment (or a tenant's records) could not continue: at least one problem, at most [`MAX_PROBLEMS`] and one
/// that counts the rest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(transparent)]
pub struct Failure {
    problems: Vec<Problem>,
}

impl Failure {
    /// A failure with several problems; `first` guarantees that there is one.
    pub fn new(first: Problem, rest: impl IntoIterator<Item = Problem>) -> Self {
        let mut problems = vec![first];
        problems.extend(rest);
        Self { problems: capped(problems, MAX_PROBLEMS) }
    }

    /// A failure of all of `problems`, or none when there is none.
    pub fn of(problems: Vec<Problem>) -> Option<Self> {
        (!problems.is_empty()).then(|| Self { problems: capped(problems, MAX_PROBLEMS) })
    }

    /// The same with its first problem alone, which counts the others.
    #[must_use]
    pub fn shortened(self) -> Self {
        Self { problems: capped(self.problems, 1) }
    }

    /// The problems, at least one, in the order in which they were found.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The kind of the first problem.
    pub fn category(&self) -> Category {
        self.problems.first().map_or(Category::Io, |problem| problem.category)
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self { problems: vec![problem] }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                write!(f, "; ")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Category, Failure, MAX_PROBLEMS, Problem};

    fn failure(count: usize) -> Failure {
        let problem = |number| Problem::new(Category::Schema, format!("p{number}")).in_file("a.yaml");
        Failure::of((0..count).map(problem).collect()).unwrap()
    }

    #[test]
    fn problems_beyond_the_bound_are_counted() {
        assert_eq!(failure(MAX_PROBLEMS).problems().len(), MAX_PROBLEMS);
        let one_more = failure(MAX_PROBLEMS + 1);
        assert_eq!(
            one_more.problems().last().unwrap().to_string(),
            "a.yaml: and 1 more problem (hint: fix those above first)"
        );
        let many = failure(MAX_PROBLEMS + 480);
        assert_eq!(many.problems().len(), MAX_PROBLEMS + 1);
        assert_eq!(many.problems().last().unwrap().message, "and 480 more problems");
        assert_eq!(
            failure(3).shortened().to_string(),
            "a.yaml: p0; a.yaml: and 2 more problems (hint: fix those above first)"
        );
        assert_eq!(failure(1).shortened(), failure(1));
    }
}
