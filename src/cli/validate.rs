//! `larder validate`: checks the files without a cluster, a registry or Git.

use clap::Args;
use serde::Serialize;

use super::{CliError, Exit, Printer, session};
use crate::{
    config::{OutputFormat, SourceOptions},
    model::{
        batch::{failed, succeeded},
        failure::Problem,
    },
};

/// Check larder.yaml, environments and lockfiles; needs neither cluster nor registry
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  larder validate                       the folder you are in, uncommitted files included
  larder validate --repo URL            the tip of a repository
  larder validate --output json         for programs

Exit code 0: all is valid. 1: something is not.")]
pub struct Validate {
    #[command(flatten)]
    source: SourceOptions,
    /// How results are printed.
    #[arg(long, value_enum, default_value_t)]
    output: OutputFormat,
}

#[derive(Serialize)]
struct Results<'a> {
    valid: usize,
    errors: Vec<&'a Problem>,
    warnings: &'a [Problem],
}

impl Validate {
    pub(super) async fn run(self, printer: &mut Printer) -> Result<Exit, CliError> {
        let source = session::source(&self.source).await?;
        let environments = session::load(&source)?;
        let files = failed(&environments.environments).flat_map(|(_, failure)| failure.problems());
        let locks = failed(&environments.lock).flat_map(|(_, failure)| failure.problems());
        let results = Results {
            valid: succeeded(&environments.environments).count(),
            errors: files.chain(locks).chain(&environments.strays).collect(),
            warnings: &environments.warnings,
        };
        match self.output {
            OutputFormat::Json => printer.json(&results),
            OutputFormat::Text => {
                results.warnings.iter().for_each(|problem| printer.warning(problem));
                results.errors.iter().for_each(|problem| printer.problem(problem));
                printer.line(&format!(
                    "{} environments are valid, {} errors, {} warnings",
                    results.valid,
                    results.errors.len(),
                    results.warnings.len()
                ));
            }
        }
        Ok(if results.errors.is_empty() { Exit::Success } else { Exit::Failure })
    }
}
