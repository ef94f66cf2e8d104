//! Environments in the making, and what is said about each place that they come from.

use std::collections::BTreeSet;

use crate::model::{
    environment::Resources,
    failure::{Category, Problem},
    reference::ImageReference,
};

use super::{
    Line,
    cursor::Cursor,
    image::{self, Found},
    names,
    nodes::Nodes,
};

/// An environment without its final name.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// The name that it would like.
    pub name: String,
    /// What stands before its name when others want the same.
    pub source: String,
    /// Where it comes from: file and path, without a line, for the head of its file.
    pub origin: String,
    /// The same with its line, for the report.
    pub place: String,
    /// A title for menus.
    pub display_name: Option<String>,
    /// A sentence for menus.
    pub description: Option<String>,
    /// Its images; names and references are distinct.
    pub images: Vec<DraftImage>,
    /// Its nodes.
    pub nodes: Nodes,
    /// How often references are resolved again, with a unit.
    pub refresh: Option<String>,
    /// `maxUnavailable` of its puller.
    pub max_unavailable: Option<String>,
    /// The deadline of its puller, with a unit.
    pub deadline: Option<String>,
    /// Resources for the spawn menu.
    pub resources: Resources,
    /// What is said about it.
    pub notes: Vec<Note>,
}

/// An image of a draft.
#[derive(Clone, Debug, PartialEq)]
pub struct DraftImage {
    /// Its name.
    pub name: String,
    /// What to pull.
    pub reference: ImageReference,
    /// A Secret by name.
    pub pull_secret: Option<String>,
    /// What people call it; becomes a comment.
    pub title: Option<String>,
}

/// Something said about a place.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// The place.
    pub from: String,
    /// The image that it became; none when it is about the whole environment.
    pub image: Option<String>,
    /// What is worth knowing; may be empty.
    pub note: String,
}

impl Draft {
    /// A draft without images.
    pub fn new(name: &str, place: &Cursor<'_>, nodes: Nodes) -> Self {
        let file = place.file().rsplit(['/', '\\']).next().unwrap_or_default();
        Self {
            name: name.to_owned(),
            source: names::of_file(place.file()),
            origin: format!("{file} {}", place.path()).trim_end().to_owned(),
            place: place.place(),
            display_name: None,
            description: None,
            images: Vec::new(),
            nodes,
            refresh: None,
            max_unavailable: None,
            deadline: None,
            resources: Resources::default(),
            notes: Vec::new(),
        }
    }

    /// Says something about the whole of it.
    pub fn note(&mut self, from: &Cursor<'_>, note: impl Into<String>) {
        self.notes.push(Note { from: from.place(), image: None, note: note.into() });
    }

    /// Adds an image. One that is there already only gets a line in the report.
    pub fn add(&mut self, from: String, mut image: DraftImage, mut notes: Vec<String>) {
        let name = match self.images.iter().find(|other| other.reference == image.reference) {
            Some(same) => {
                if image.name != same.name {
                    notes.push(format!("the same image as `{}`, so it is there once", same.name));
                }
                if same.pull_secret != image.pull_secret {
                    notes.push("with another pull secret, which is left out".to_owned());
                }
                same.name.clone()
            }
            None => {
                let mut taken: BTreeSet<String> = self.images.iter().map(|image| image.name.clone()).collect();
                let name = names::distinct(&image.name, &mut taken);
                if name != image.name {
                    notes.push(format!("another image is called `{}`", image.name));
                }
                image.name.clone_from(&name);
                self.images.push(image);
                name
            }
        };
        self.notes.push(Note { from, image: Some(name), note: notes.join("; ") });
    }

    /// Whether the same images go to the same nodes.
    pub fn is_like(&self, other: &Self) -> bool {
        let key = |draft: &Self| -> BTreeSet<(String, Option<String>)> {
            draft.images.iter().map(|image| (image.reference.to_string(), image.pull_secret.clone())).collect()
        };
        self.nodes == other.nodes && key(self) == key(other)
    }
}

/// What the importers find.
#[derive(Debug, Default)]
pub struct Collected {
    /// Environments.
    pub drafts: Vec<Draft>,
    /// Places that became nothing.
    pub left_out: Vec<Line>,
    /// Why a file could not be read.
    pub problems: Vec<Problem>,
}

impl Collected {
    /// Says why a place became nothing.
    pub fn leave_out(&mut self, place: &Cursor<'_>, note: impl Into<String>) {
        self.left_out.push(Line { from: place.place(), to: None, note: note.into() });
    }

    /// Says that a file is something else than what was asked for.
    pub fn unexpected(&mut self, file: &str, line: usize, message: &str, hint: &str) {
        let mut problem = Problem::new(Category::Schema, message).in_file(file).hint(hint);
        if let Some(location) = &mut problem.location {
            location.line = line;
        }
        self.problems.push(problem);
    }

    /// Reads an image at a place; one that cannot be brought over is left out with its reason.
    pub fn image(&mut self, place: &Cursor<'_>) -> Option<(ImageReference, Vec<String>)> {
        self.keep(place, image::read(place))
    }

    /// The same for what has been read already.
    pub fn keep(&mut self, place: &Cursor<'_>, found: Found) -> Option<(ImageReference, Vec<String>)> {
        match found {
            Found::Image(reference, notes) => Some((reference, notes)),
            Found::Skipped(why) => {
                self.leave_out(place, why);
                None
            }
        }
    }

    /// Adds an environment, if it has images.
    pub fn push(&mut self, draft: Draft) {
        if !draft.images.is_empty() {
            self.drafts.push(draft);
        }
    }
}

/// The name of an image that has none: the last part of its repository's path.
pub fn image_name(reference: &ImageReference) -> String {
    reference.path().rsplit('/').next().and_then(names::slug).unwrap_or_else(|| "image".to_owned())
}
