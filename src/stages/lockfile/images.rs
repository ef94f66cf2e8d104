//! The images of a lockfile, shared between its versions.

use std::{ops::Range, sync::Arc};

use crate::model::{
    lock::{LockedImage, Lockfile},
    name::Name,
};

/// The images of a lockfile of the past, in order of their names. Those that did not change are shared with its
/// neighbors.
pub struct Images(pub(super) Vec<Image>);

/// One of them.
pub(super) struct Image {
    pub(super) name: Name,
    pub(super) entry: Arc<LockedImage>,
    /// Where it stands in the file's bytes; empty where that is not known.
    pub(super) place: Range<usize>,
}

impl Images {
    /// The image of that name.
    pub fn get(&self, name: &Name) -> Option<&Arc<LockedImage>> {
        self.0.iter().find(|image| image.name == *name).map(|image| &image.entry)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, &LockedImage)> {
        self.0.iter().map(|image| (&image.name, &*image.entry))
    }
}

impl From<Lockfile> for Images {
    fn from(lockfile: Lockfile) -> Self {
        let image = |(name, entry)| Image { name, entry: Arc::new(entry), place: 0..0 };
        Self(lockfile.images.into_iter().map(image).collect())
    }
}
