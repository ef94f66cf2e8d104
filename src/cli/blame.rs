//! `larder blame`: who last changed the digests of an environment, and when.

use clap::Args;

use super::{
    CliError, Exit, Printer,
    audit::{self, AnswerFormat},
    output::table,
};
use crate::{
    config::SourceOptions,
    model::{
        history::{Blame as Answer, BlameRow},
        name::EnvironmentId,
    },
    pipeline::audit::blame,
};

/// Show who last changed each image's digest, when, and in which commit
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  larder blame research/geospatial
  larder blame research/geospatial --repo URL --output json
  git show $(larder blame research/geospatial --output csv | tail -1 | cut -d, -f4)")]
pub struct Blame {
    /// The environment: `tenant/name`.
    environment: EnvironmentId,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: AnswerFormat,
    #[command(flatten)]
    source: SourceOptions,
}

impl Blame {
    pub(super) async fn run(self, printer: &mut Printer) -> Result<Exit, CliError> {
        let (repository, _cache) = audit::repository(&self.source)?;
        write(printer, &blame(&repository, self.environment).await?, self.output);
        Ok(Exit::Success)
    }
}

fn write(printer: &mut Printer, blame: &Answer, output: AnswerFormat) {
    match output {
        AnswerFormat::Json => return printer.json(blame),
        AnswerFormat::Csv => audit::csv(
            printer,
            &["image", "reference", "digest", "commit", "time", "author", "subject", "hold"],
            blame.images.iter().map(csv_row),
        ),
        AnswerFormat::Text => {
            let rows: Vec<_> = blame.images.iter().map(text_row).collect();
            printer.text(&table(&["IMAGE", "REFERENCE", "DIGEST", "COMMIT", "SINCE", "AUTHOR", "HELD"], &rows));
        }
    }
    blame.problems.iter().for_each(|problem| printer.warning(problem));
}

fn csv_row(row: &BlameRow) -> Vec<String> {
    let commit = row.since.as_ref().map_or_else(Default::default, |since| {
        [since.id.clone(), audit::utc_time(since.time), since.author.clone(), since.subject.clone()]
    });
    [row.image.to_string(), row.reference.to_string(), row.digest.to_string()]
        .into_iter()
        .chain(commit)
        .chain([row.hold.clone().unwrap_or_default()])
        .collect()
}

fn text_row(row: &BlameRow) -> Vec<String> {
    let unknown = || ["-".to_owned(), "before the start of this (shallow) history".to_owned(), "-".to_owned()];
    let commit = row.since.as_ref().map_or_else(unknown, |since| {
        [since.short().to_owned(), audit::local_time(since.time), audit::author(since).into_owned()]
    });
    let locked = [row.image.to_string(), row.reference.to_string(), row.digest.short().to_owned()];
    locked.into_iter().chain(commit).chain([audit::held(&row.hold)]).collect()
}
