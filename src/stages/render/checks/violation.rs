//! What a rendered object must not be.

/// Why a rendered object does not continue. Paths are as `kubectl explain` has them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A field that larder's objects do not have.
    #[error("`{path}` is not allowed in what a template renders")]
    Field {
        /// The field.
        path: String,
    },
    /// A field that must be there.
    #[error("`{path}` is missing in what the template renders")]
    Missing {
        /// The field.
        path: String,
    },
    /// A field with another value than it must have.
    #[error("`{path}` is {found} in what the template renders, but must be {wanted}")]
    Value {
        /// The field.
        path: String,
        /// Its value, shortened.
        found: String,
        /// What it must be.
        wanted: String,
    },
    /// More than the API server takes.
    #[error("`{path}` has {bytes} bytes, at most {max} are allowed")]
    TooLarge {
        /// The field.
        path: String,
        /// Bytes that it has.
        bytes: usize,
        /// Bytes that it may have.
        max: usize,
    },
    /// An image that is not in the lock.
    #[error("`{path}` is {image}, which is neither a locked image of the environment nor a helper of larder.yaml")]
    Unlocked {
        /// The field.
        path: String,
        /// Its value.
        image: String,
    },
    /// A locked image that no container or volume has.
    #[error("the template renders no container or volume with the locked image {image}")]
    NotHeld {
        /// The image, pinned.
        image: String,
    },
}

impl Violation {
    /// The field to look for in the template.
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::Field { path }
            | Self::Value { path, .. }
            | Self::TooLarge { path, .. }
            | Self::Unlocked { path, .. } => path.rsplit('.').next().and_then(|key| key.split('[').next()),
            Self::Missing { .. } | Self::NotHeld { .. } => None,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Field { .. } | Self::Value { .. } | Self::Missing { .. } => {
                "docs/reference/templates.md lists what a template may render"
            }
            Self::TooLarge { .. } => "split the environments of the tenant among several tenants, or shorten the texts",
            Self::Unlocked { .. } => {
                "write `image: {{ image.pinned }}`; other helpers are set in larder.yaml, `spec.helpers`"
            }
            Self::NotHeld { .. } => "loop over all of `images`",
        }
    }
}
