//! Collects all that is wrong in one file.

use crate::model::{
    failure::{Category, Failure, Problem, Source},
    redact::holds_user,
    text::{is_mark, is_unseen},
};

use super::{
    file::API_VERSION,
    located::{Entries, Located, Place},
    yaml::{self, repair::Repair},
};

/// A file under check, with the problems found so far.
pub struct Check<'a> {
    source: &'a Source,
    problems: Vec<Problem>,
    repair: Option<Repair>,
}

impl<'a> Check<'a> {
    /// Begins with a file whose text has the right types.
    pub fn new(source: &'a Source) -> Self {
        Self { source, problems: Vec::new(), repair: None }
    }

    /// Begins with what is left of a file, whose structure has `problems`.
    pub fn repaired(source: &'a Source, problems: Vec<Problem>, repair: Repair) -> Self {
        Self { source, problems, repair: Some(repair) }
    }

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
                    let problem = yaml::duplicate(&key.value, Some(first.place.line));
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
    pub fn header(&mut self, api_version: &Located<String>, kind: &Located<String>, expected: &str) {
        if let Some((place, problem)) = wrong_header(Some(api_version), Some(kind), (API_VERSION, expected)) {
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

/// Problems of one file in the order of their places.
pub fn in_order(mut problems: Vec<Problem>) -> Failure {
    problems.sort_by_key(|problem| problem.location.as_ref().map(|location| (location.line, location.column)));
    let mut problems = problems.into_iter();
    let first = problems.next().unwrap_or_else(|| Problem::new(Category::Schema, "the file cannot be read"));
    Failure::new(first, problems)
}

/// What is wrong with a file's first two fields, as far as they are there. `expected` are the version and the kind.
pub fn wrong_header(
    api_version: Option<&Located<String>>,
    kind: Option<&Located<String>>,
    (expected_version, expected): (&str, &str),
) -> Option<(Place, Problem)> {
    let hint = format!("write `apiVersion: {expected_version}` and `kind: {expected}`");
    match (api_version, kind) {
        (_, Some(kind)) if kind.value != expected => Some((
            kind.place,
            Problem::new(Category::Schema, format!("the kind `{}` does not belong here", kind.value)).hint(hint),
        )),
        (Some(version), _) if version.value != expected_version => Some((
            version.place,
            Problem::new(Category::Schema, format!("the apiVersion `{}` is not known", version.value)).hint(hint),
        )),
        _ => None,
    }
}

/// A problem at a place of a file. A message that repeats much of the file is cut, and one that repeats a user and a
/// password is replaced.
pub fn place_in(source: &Source, place: Place, mut problem: Problem) -> Problem {
    const MOST: usize = 300;
    if holds_user(&problem.message) || problem.hint.as_deref().is_some_and(holds_user) {
        problem = credentials("do not put credentials in Git (in this value)");
    }
    if let Some((end, _)) = problem.message.char_indices().nth(MOST) {
        problem.message.truncate(end);
        problem.message.push('…');
    }
    problem.at(source, place.line, place.column, place.length)
}

/// The problem of a file with credentials.
pub fn credentials(message: impl Into<String>) -> Problem {
    Problem::new(Category::Credentials, message).hint(
        "remove them and change the password, since the history keeps it; put the new one into a Secret of the tenant's namespace and name that in `pullSecret`",
    )
}
