//! Why a text is not an image reference, and what to do about it.

use crate::model::{
    digest::DigestError,
    failure::{Category, Problem},
};

use super::parse::{MAX_PATH, MAX_TAG};

/// Why a text is not an image reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// Nothing.
    #[error("an image reference cannot be empty")]
    Empty,
    /// White space or a control character.
    #[error("the image reference {text:?} holds {character:?}")]
    Whitespace {
        /// The reference.
        text: String,
        /// The first such character.
        character: char,
    },
    /// `https://…`.
    #[error("`{0}` is an address, not an image reference")]
    Scheme(String),
    /// `user:password@…`. Not repeated in the message, since it may hold a secret.
    #[error("an image reference holds no user or password")]
    User,
    /// Only a tag or a digest.
    #[error("`{0}` names no repository")]
    NoRepository(String),
    /// 64 hexadecimal digits, perhaps behind `sha256:`, which container runtimes take for an image's identifier.
    #[error("`{0}` is an image's identifier, not a reference")]
    Identifier(String),
    /// Upper case in the path.
    #[error("`{path}` must be lowercase")]
    Uppercase {
        /// The path.
        path: String,
        /// The whole reference in a form that would be allowed.
        lower: String,
    },
    /// A host that no registry can have.
    #[error("`{0}` is not a host name")]
    Host(String),
    /// A port that no registry can have.
    #[error("`{0}` is not a port")]
    Port(String),
    /// A part between slashes that is empty or holds something that is not allowed there.
    #[error("`{component}` in `{text}` is not a part of a repository's path")]
    Component {
        /// The part.
        component: String,
        /// The reference.
        text: String,
    },
    /// A path that is too long.
    #[error("the repository's path is too long: {0} characters, at most {MAX_PATH} are allowed")]
    TooLong(usize),
    /// A tag with something that is not allowed in it.
    #[error("`{0}` is not a tag")]
    Tag(String),
    /// A tag that is too long.
    #[error("the tag is too long: {0} characters, at most {MAX_TAG} are allowed")]
    TagTooLong(usize),
    /// A digest behind a colon.
    #[error("the digest in `{text}` stands where a tag belongs")]
    ColonDigest {
        /// The reference.
        text: String,
        /// The reference as it was meant.
        meant: String,
    },
    /// A digest that is none.
    #[error("the digest of `{text}` cannot be read: {error}")]
    Digest {
        /// The reference.
        text: String,
        /// What is wrong with the digest.
        error: DigestError,
    },
}

impl ReferenceError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Empty | Self::NoRepository(_) => {
                "write it as host/path:tag, for example quay.io/jupyter/scipy-notebook:2026-11-02".to_owned()
            }
            Self::Whitespace { .. } => {
                "remove it; a YAML block scalar (`|`) adds a line end, a plain or quoted scalar does not".to_owned()
            }
            Self::Scheme(text) => match text.split_once("://").map(|(_, rest)| rest).filter(|rest| !rest.is_empty()) {
                Some(rest) => {
                    format!("write `{rest}`; whether a registry is asked over plain http is set in larder.yaml")
                }
                None => "write it without a scheme".to_owned(),
            },
            Self::User => "remove them, change the password, and put it into a pull secret".to_owned(),
            Self::Identifier(text) => {
                let digest = if text.contains(':') { text.clone() } else { format!("sha256:{text}") };
                format!("nodes pull by name: write the repository, as in repository@{digest}")
            }
            Self::Uppercase { lower, .. } => format!("write `{lower}`; only a host and a tag may hold upper case"),
            Self::Host(_) => {
                "a host consists of letters, digits, `-` and dots, a domain beyond ASCII is written as xn--…".to_owned()
            }
            Self::Port(_) => "a port is a number from 1 to 65535".to_owned(),
            Self::Component { .. } => {
                "each part consists of a-z and 0-9, separated by one of `.`, `_`, `__` or dashes, and is not empty"
                    .to_owned()
            }
            Self::TooLong(_) => "use a shorter repository name".to_owned(),
            Self::Tag(_) => {
                "a tag consists of letters, digits, `_`, `.` and `-`, and starts with none of the last two".to_owned()
            }
            Self::TagTooLong(_) => "use a shorter tag, or a digest".to_owned(),
            Self::ColonDigest { meant, .. } => format!("write `{meant}`"),
            Self::Digest { .. } => "copy the whole digest, `sha256:` and 64 digits of 0-9 and a-f".to_owned(),
        }
    }
}

impl From<ReferenceError> for Problem {
    fn from(error: ReferenceError) -> Self {
        Problem::new(Category::Reference, error.to_string()).hint(error.hint())
    }
}
