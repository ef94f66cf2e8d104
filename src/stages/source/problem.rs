//! The problems that files of all kinds have.

use super::located::Place;
use crate::model::{
    failure::{Category, Failure, Problem, Source},
    redact::holds_user,
};

/// Problems of one file in the order of their places.
pub fn in_order(mut problems: Vec<Problem>) -> Failure {
    problems.sort_by_key(|problem| problem.location.as_ref().map(|location| (location.line, location.column)));
    let mut problems = problems.into_iter();
    let first = problems.next().unwrap_or_else(|| Problem::new(Category::Schema, "the file cannot be read"));
    Failure::new(first, problems)
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

/// A key that is in a mapping twice.
pub fn duplicate(key: &str, first: Option<usize>) -> Problem {
    let first = first.map(|line| format!(" (first defined on line {line})")).unwrap_or_default();
    Problem::new(Category::Schema, format!("duplicate key `{key}`{first}")).hint("keep one of them")
}
