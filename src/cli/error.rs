//! Why a command could not do its work.

use std::fmt;

use crate::{
    io::folder::FolderError,
    model::failure::{Category, Failure, Problem},
    pipeline::RunError,
};

/// Why a command could not do its work: one or more problems, with hints.
#[derive(Debug)]
pub struct CliError(pub Failure);

impl CliError {
    /// A failure of the local machine.
    pub fn io(what: impl fmt::Display, error: &std::io::Error) -> Self {
        Problem::new(Category::Io, format!("{what}: {error}")).into()
    }
}

impl From<Problem> for CliError {
    fn from(problem: Problem) -> Self {
        Self(problem.into())
    }
}

impl From<Failure> for CliError {
    fn from(failure: Failure) -> Self {
        Self(failure)
    }
}

impl From<FolderError> for CliError {
    fn from(error: FolderError) -> Self {
        Problem::from(error).into()
    }
}

impl From<RunError> for CliError {
    fn from(error: RunError) -> Self {
        Self(error.0)
    }
}
