//! `larder diff`: what moved in the lock between two commits.

use clap::Args;

use super::{
    CliError, Exit, Printer,
    audit::{self, AnswerFormat, commit_line},
    history::sides,
    revisions::{Range, parse_moment},
};
use crate::{
    config::SourceOptions,
    model::{
        failure::{Category, Problem},
        history::Difference,
        name::Name,
    },
    pipeline::audit::{Moment, diff},
    stages::lock,
};

/// Show which locked digests changed between two commits or times
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  larder diff HEAD~10                        from there to the newest commit
  larder diff HEAD~10..HEAD~5                the same as: larder diff HEAD~10 HEAD~5
  larder diff 2026-11-01 2026-11-30          from the end of one day to the end of another
  larder diff v1.1 v1.2 --repo URL --output csv")]
pub struct Diff {
    /// The commit or time to compare from, or both as `A..B`.
    #[arg(value_name = "REV|TIME")]
    from: Range,
    /// The commit or time to compare to; by default the newest commit.
    #[arg(value_name = "REV|TIME", value_parser = parse_moment)]
    to: Option<Moment>,
    /// Only environments of this tenant.
    #[arg(short = 'n', long, value_name = "NAME")]
    tenant: Option<Name>,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: AnswerFormat,
    #[command(flatten)]
    source: SourceOptions,
}

impl Diff {
    pub(super) async fn run(self, printer: &mut Printer) -> Result<Exit, CliError> {
        let Range { from: Some(from), to, is_whole } = self.from else {
            return Err(usage("the revision that is compared from is missing", "write `A..B`"));
        };
        if is_whole && self.to.is_some() {
            return Err(usage("`A..B` is two revisions, and a third one is given", "write `A..B` or `A B`"));
        }
        let to = to.or(self.to).unwrap_or_else(Moment::newest);
        let (repository, _cache) = audit::repository(&self.source)?;
        let mut difference = diff(&repository, from, to).await?;
        difference.moves.retain(|moved| self.tenant.as_ref().is_none_or(|tenant| moved.environment.tenant == *tenant));
        write(printer, &difference, self.output);
        Ok(Exit::Success)
    }
}

fn usage(message: &str, hint: &str) -> CliError {
    Problem::new(Category::Git, message).hint(hint).into()
}

const CSV: [&str; 6] = ["environment", "image", "old_reference", "old_digest", "new_reference", "new_digest"];

fn write(printer: &mut Printer, difference: &Difference, output: AnswerFormat) {
    let rows = difference.moves.iter().map(|moved| {
        let place = [moved.environment.to_string(), moved.image.to_string()];
        place.into_iter().chain(sides(&moved.old)).chain(sides(&moved.new)).collect()
    });
    match output {
        AnswerFormat::Json => return printer.json(difference),
        AnswerFormat::Csv => audit::csv(printer, &CSV, rows),
        AnswerFormat::Text => {
            difference.moves.iter().for_each(|moved| printer.line(&lock::describe(moved)));
            let (from, to) = (&difference.from, &difference.to);
            printer.note(&format!("from {}\nto   {}", commit_line(from), commit_line(to)));
            if difference.moves.is_empty() {
                printer.note("no changes");
            }
        }
    }
    difference.problems.iter().for_each(|problem| printer.warning(problem));
}
