//! `larder who-ran`: which environments used a digest, and when.

use clap::Args;

use super::{
    CliError, Exit, Printer,
    audit::{self, AnswerFormat},
    output::table,
};
use crate::{
    config::SourceOptions,
    model::{
        history::{CommitInfo, Span, WhoRan as Answer},
        name::Name,
    },
    pipeline::audit::who_ran,
    stages::audit::Wanted,
};

/// Show which environments used an image, and when
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  larder who-ran sha256:4f2a91c07be3
  larder who-ran 4f2a91c07be3 --repo URL --output csv
  larder who-ran ghcr.io/dask/dask:2026.10.0      every digest of this reference
  larder who-ran ghcr.io/dask/dask                every reference in this repository

A digest is that of an image as it was locked (its index, if it has one) or of one platform's
manifest.

Exit code 0: it was locked somewhere. 1: it was not, within the available history.")]
pub struct WhoRan {
    /// A digest or an unambiguous prefix of it, a reference, or a repository.
    #[arg(value_name = "DIGEST|IMAGE")]
    wanted: Wanted,
    /// Only environments of this tenant.
    #[arg(short = 'n', long, value_name = "NAME")]
    tenant: Option<Name>,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: AnswerFormat,
    #[command(flatten)]
    source: SourceOptions,
}

impl WhoRan {
    pub(super) async fn run(self, printer: &mut Printer) -> Result<Exit, CliError> {
        let (repository, _cache) = audit::repository(&self.source)?;
        let mut answer = who_ran(&repository, self.wanted).await?;
        answer.spans.retain(|span| self.tenant.as_ref().is_none_or(|tenant| span.environment.tenant == *tenant));
        write(printer, &answer, self.output);
        Ok(if answer.spans.is_empty() { Exit::Failure } else { Exit::Success })
    }
}

const CSV: [&str; 11] = [
    "environment",
    "image",
    "reference",
    "digest",
    "platform",
    "from_commit",
    "from_time",
    "from_author",
    "to_commit",
    "to_time",
    "to_author",
];

fn write(printer: &mut Printer, answer: &Answer, output: AnswerFormat) {
    match output {
        AnswerFormat::Json => return printer.json(answer),
        AnswerFormat::Csv => audit::csv(printer, &CSV, answer.spans.iter().map(csv_row)),
        AnswerFormat::Text if answer.spans.is_empty() => {
            printer.note("no environment has ever been locked to this image");
        }
        AnswerFormat::Text => {
            let rows: Vec<_> = answer.spans.iter().map(text_row).collect();
            printer.text(&table(
                &["ENVIRONMENT", "IMAGE", "REFERENCE", "DIGEST", "FROM", "COMMIT", "TO", "COMMIT"],
                &rows,
            ));
            if let Some(digest) = &answer.digest {
                printer.note(&format!("{digest}"));
            }
        }
    }
    answer.problems.iter().for_each(|problem| printer.warning(problem));
}

fn csv_row(span: &Span) -> Vec<String> {
    let commit = |commit: &Option<CommitInfo>| {
        commit.as_ref().map_or_else(Default::default, |commit| {
            [commit.id.clone(), audit::utc_time(commit.time), commit.author.clone()]
        })
    };
    let place = [span.environment.to_string(), span.image.to_string(), span.reference.to_string()];
    let what = [span.digest.to_string(), span.platform.clone().unwrap_or_default()];
    place.into_iter().chain(what).chain(commit(&span.from)).chain(commit(&span.to)).collect()
}

fn text_row(span: &Span) -> Vec<String> {
    let commit = |commit: &Option<CommitInfo>, none: &str| {
        commit.as_ref().map_or_else(
            || [none.to_owned(), "-".to_owned()],
            |commit| [audit::local_time(commit.time), commit.short().to_owned()],
        )
    };
    let platform = span.platform.as_ref().map_or_else(String::new, |platform| format!(" ({platform})"));
    let place = [span.environment.to_string(), span.image.to_string(), format!("{}{platform}", span.reference)];
    place
        .into_iter()
        .chain([span.digest.short().to_owned()])
        .chain(commit(&span.from, "before this history"))
        .chain(commit(&span.to, "still"))
        .collect()
}
