//! `larder init`: the files of a new environment repository.

use std::{fs, path::PathBuf};

use clap::Args;

use super::{CliError, Exit, Printer};
use crate::{
    example,
    model::failure::{Category, Problem},
};

/// Scaffold a new environment repository with examples
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  larder init environments && cd environments && git init && larder validate
  larder init --empty environments")]
pub struct Init {
    /// Directory to create; may already exist, but existing files are never overwritten.
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// Write only `larder.yaml` and the schemas for editors, without the example's environments.
    #[arg(long)]
    empty: bool,
}

impl Init {
    pub(super) fn run(self, printer: &mut Printer) -> Result<Exit, CliError> {
        let files: Vec<_> = match self.empty {
            true => example::empty(&[]),
            false => example::files().map(|(path, bytes)| (path, bytes.to_vec())).collect(),
        };
        if let Some((path, _)) = files.iter().find(|(path, _)| self.folder.join(path).exists()) {
            let path = self.folder.join(path);
            return Err(Problem::new(Category::Io, format!("{} already exists", path.display()))
                .hint("choose another directory, or remove the file; nothing was written")
                .into());
        }
        for (path, bytes) in files {
            let path = self.folder.join(path);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(|error| CliError::io(parent.display(), &error))?;
            }
            fs::write(&path, bytes).map_err(|error| CliError::io(path.display(), &error))?;
            printer.line(&format!("created {}", path.display()));
        }
        printer.note("Next: edit the files, `larder validate`, `larder lock`, commit, and `larder run --repo URL`.");
        Ok(Exit::Success)
    }
}
