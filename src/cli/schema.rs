//! `larder schema`: the JSON Schemas of the files.

use clap::{Args, builder::PossibleValuesParser};

use super::{CliError, Exit, Printer};
use crate::stages::schema::FileKind;

/// Print the JSON Schema of a kind of file, for editors and other tools
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  larder schema                                             list the kinds
  larder schema environment > .larder/schema/environment.json

The first line of a file names its schema for editors, relative to the file:
  # yaml-language-server: $schema=../../.larder/schema/environment.json")]
pub struct Schema {
    /// The kind of file; without it, the kinds are listed.
    #[arg(value_parser = PossibleValuesParser::new(FileKind::ALL.map(FileKind::name)))]
    kind: Option<String>,
}

impl Schema {
    pub(super) fn run(self, printer: &mut Printer) -> Result<Exit, CliError> {
        for kind in FileKind::ALL {
            match &self.kind {
                Some(wanted) if wanted == kind.name() => printer.json(&kind.schema()),
                Some(_) => {}
                None => printer.line(&format!("{:<23}{}", kind.name(), kind.place())),
            }
        }
        Ok(Exit::Success)
    }
}
