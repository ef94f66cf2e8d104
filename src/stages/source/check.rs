//! Collects all that is wrong in one file.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::{
    header::{Kind, wrong_header},
    located::{Entries, Located, Place},
    problem::{duplicate, in_order, place_in},
    yaml::{self, Parsed, repair::Repair},
};
use crate::model::{
    failure::{Category, Failure, Problem, Source},
    text::{is_mark, is_unseen},
};

/// A file under check, with the problems found so far.
pub struct Check<'a> {
    source: &'a Source,
    problems: Vec<Problem>,
    repair: Option<Repair>,
}

/// Reads a file, and begins the check of what it holds: of what is left of it, where its structure is wrong.
///
/// # Errors
/// All that is wrong with its structure, when nothing is left that could be checked.
pub fn open<T: DeserializeOwned + JsonSchema>(source: &Source, kind: Kind) -> Result<(T, Check<'_>), Failure> {
    let Parsed { file, problems, repair } = yaml::read(source, kind)?;
    Ok((file, Check { source, problems, repair }))
}

impl Check<'_> {
    /// Adds a problem with a place.
    pub fn report(&mut self, place: Place, problem: Problem) {
        if !self.repair.as_ref().is_some_and(|repair| repair.hides(place)) {
            self.problems.push(place_in(self.source, place, problem));
        }
    }

    /// Adds a problem that must not show the file's text, since that holds a secret.
    pub fn report_secret(&mut self, place: Place, problem: Problem) {
        let mut problem = place_in(self.source, place, problem);
        problem.source = None;
        self.problems.push(problem);
    }

    /// The value of a result, after adding its problem.
    pub fn keep<T, E: Into<Problem>>(&mut self, place: Place, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.report(place, error.into())).ok()
    }

    /// Reads a text, if there is one.
    pub fn read<T, E: Into<Problem>>(
        &mut self,
        text: Option<&Located<String>>,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        text.and_then(|text| self.keep(text.place, read(&text.value)))
    }

    /// The entries of a mapping, after reporting keys that are there twice.
    pub fn entries<T>(&mut self, entries: Option<Entries<T>>) -> Vec<(Located<String>, T)> {
        let mut unique: Vec<(Located<String>, T)> = Vec::new();
        for (key, value) in entries.map(|entries| entries.0).unwrap_or_default() {
            match unique.iter().find(|(other, _)| other.value == key.value) {
                Some((first, _)) => {
                    let problem = duplicate(&key.value, Some(first.place.line));
                    self.report(key.place, problem);
                }
                None => unique.push((key, value)),
            }
        }
        unique
    }

    /// A text for people: without invisible characters but the marks of scripts, and on one line unless `lines` are
    /// allowed.
    pub fn prose(&mut self, text: Option<Located<String>>, lines: bool) -> Option<String> {
        let Located { value, place } = text?;
        let allowed = |c: char| is_mark(c) || (lines && matches!(c, '\n' | '\t'));
        match value.chars().find(|&c| is_unseen(c) && !allowed(c)) {
            Some('\n') => {
                let problem = Problem::new(Category::Schema, "this text has several lines");
                self.report(place, problem.hint("write it on one line"));
                None
            }
            Some(c) => {
                let message = format!("this text contains the invisible character U+{:04X}", u32::from(c));
                self.report(place, Problem::new(Category::Schema, message).hint("remove it"));
                None
            }
            None => Some(value),
        }
    }

    /// Reports an `apiVersion` or `kind` that is not the expected one.
    pub fn header(&mut self, api_version: &Located<String>, kind: &Located<String>, expected: Kind) {
        if let Some((place, problem)) = wrong_header(Some(api_version), Some(kind), expected) {
            self.report(place, problem);
        }
    }

    /// The value, if nothing was reported.
    ///
    /// # Errors
    /// All problems.
    pub fn finish<T>(self, value: Option<T>) -> Result<T, Failure> {
        match value {
            _ if !self.problems.is_empty() => Err(in_order(self.problems)),
            Some(value) => Ok(value),
            None => Err(Problem::new(Category::Schema, "the file is incomplete").in_file(&self.source.path).into()),
        }
    }
}
