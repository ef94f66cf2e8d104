//! Patterns of repositories that a tenant's images may come from.

use std::{fmt, str::FromStr};

use globset::{Glob, GlobBuilder, GlobMatcher};

use super::{
    failure::{Category, Problem},
    reference::ImageReference,
    text::is_unseen,
};

/// The longest pattern, in bytes.
const MAX_PATTERN: usize = 512;

/// A pattern of `host/path`, without a tag: `*` stands for any text without a slash, `**` for any text; a host alone
/// stands for all of its repositories. Docker Hub is `docker.io`, with `library/` before official images.
#[derive(Clone)]
pub struct RepositoryPattern {
    text: String,
    matcher: GlobMatcher,
}

/// Why a text is not a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// Something that no reference matches.
    #[error("the pattern `{0}` matches no image: it holds {1}")]
    Never(String, &'static str),
    /// Braces or brackets that do not fit.
    #[error("`{0}` is not a pattern: {1}")]
    Malformed(String, String),
    /// Too long.
    #[error("a pattern of {0} bytes is too long, at most {MAX_PATTERN} are allowed")]
    TooLong(usize),
}

impl RepositoryPattern {
    /// Whether an image's repository fits.
    pub fn matches(&self, reference: &ImageReference) -> bool {
        self.matcher.is_match(reference.repository())
    }
}

impl FromStr for RepositoryPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        if text.len() > MAX_PATTERN {
            return Err(PatternError::TooLong(text.len()));
        }
        let never = |what| Err(PatternError::Never(text.to_owned(), what));
        if text.is_empty() {
            return never("nothing");
        }
        if text.contains("://") {
            return never("a scheme");
        }
        if text.contains('@') {
            return never("a digest or a user");
        }
        if text.chars().any(|c| c.is_whitespace() || is_unseen(c)) {
            return never("white space or an invisible character");
        }
        if text.starts_with('/') || text.ends_with('/') {
            return never("a slash at an end");
        }
        let (host, path) = text.split_once('/').unwrap_or((text, "**"));
        if path.rsplit('/').next().is_some_and(|last| last.contains(':')) {
            return never("a tag");
        }
        // Hosts are equal whatever their case, and references have theirs in lower case.
        let host = host.to_ascii_lowercase();
        let glob: Glob = GlobBuilder::new(&format!("{host}/{path}"))
            .literal_separator(true)
            .backslash_escape(false)
            .build()
            .map_err(|error| PatternError::Malformed(text.to_owned(), error.kind().to_string()))?;
        Ok(Self { text: text.to_owned(), matcher: glob.compile_matcher() })
    }
}

impl From<PatternError> for Problem {
    fn from(error: PatternError) -> Self {
        Problem::new(Category::Schema, error.to_string())
            .hint("write host/path without a tag: `quay.io/jupyter/*`, `ghcr.io/team/**`, or a host alone")
    }
}

impl PartialEq for RepositoryPattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for RepositoryPattern {}

impl fmt::Debug for RepositoryPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl fmt::Display for RepositoryPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::RepositoryPattern;

    #[test]
    fn patterns_match_whole_repositories() {
        for (pattern, image, expected) in [
            ("quay.io", "quay.io/a/b:1", true),
            ("quay.io", "quay.io.evil.example/a:1", false),
            ("quay.io", "evil.example/quay.io/a:1", false),
            ("quay.io/**", "quay.io/a/b/c:1", true),
            ("quay.io/jupyter/*", "quay.io/jupyter/base:1", true),
            ("quay.io/jupyter/*", "quay.io/jupyter/base/x:1", false),
            ("quay.io/jupyter/*", "quay.io/jupyter-evil/base:1", false),
            ("quay.io/jupyter", "quay.io/jupyter/base:1", false),
            (
                "quay.io/jupyter/*",
                "quay.io/jupyter/base@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
                true,
            ),
            ("docker.io", "debian", true),
            ("docker.io/library/*", "debian:12", true),
            ("docker.io/library/*", "rocker/rstudio", false),
            ("registry.example.com:5000", "registry.example.com:5000/a:1", true),
            ("registry.example.com", "registry.example.com:5000/a:1", false),
            ("*.example.com/team/**", "eu.example.com/team/a/b:1", true),
            ("*.example.com/team/**", "example.com/team/a:1", false),
            ("{quay,ghcr}.io/x/*", "ghcr.io/x/a:1", true),
            ("*/team/*", "localhost/team/x:1", true),
            ("*/team/*", "localhost/other/team/x:1", false),
            ("**", "localhost/other/team/x:1", true),
        ] {
            let found = pattern.parse::<RepositoryPattern>().unwrap().matches(&image.parse().unwrap());
            assert_eq!(found, expected, "{pattern} {image}");
        }
    }

    #[test]
    fn what_matches_nothing_is_refused() {
        for text in [
            "",
            "https://quay.io/a",
            "quay.io/a:1",
            "quay.io/",
            "/a",
            "a b",
            "quay.io/{a",
            "quay.io/[a",
            "u:p@quay.io/a",
            "quay.io/a:*",
        ] {
            assert!(text.parse::<RepositoryPattern>().is_err(), "{text}");
        }
        assert!("a".repeat(600).parse::<RepositoryPattern>().is_err());
    }
}
