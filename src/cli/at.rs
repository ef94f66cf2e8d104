//! `larder at`: the whole lock at a time or in a commit.

use clap::Args;

use super::{
    CliError, Exit, Printer,
    audit::{self, AnswerFormat, commit_line},
    output::table,
    revisions::parse_moment,
};
use crate::{
    config::SourceOptions,
    model::{
        history::State,
        name::{EnvironmentId, Name},
    },
    pipeline::audit::{Moment, at},
};

/// Show the locked digests at a point in time or commit
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  larder at 2026-11-30                    at the end of that day, in your time zone
  larder at 2026-11-30T14:00:00Z
  larder at '2 days ago' --repo URL
  larder at v1.2 --output csv             a tag, branch or commit, such as HEAD~3
  larder at 2026-11-30 research/geospatial

An argument that looks like a time is read as one; write refs/tags/2026-11-30 for such a tag.
The state at a time is that of the newest commit on the branch (along first parents) that was
committed then or earlier.")]
pub struct At {
    /// A commit, tag, branch or time.
    #[arg(value_name = "TIME|REV", value_parser = parse_moment)]
    moment: Moment,
    /// Only these environments: `tenant/name`.
    #[arg(value_name = "ENVIRONMENT")]
    environments: Vec<EnvironmentId>,
    /// Only environments of this tenant.
    #[arg(short = 'n', long, value_name = "NAME")]
    tenant: Option<Name>,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: AnswerFormat,
    #[command(flatten)]
    source: SourceOptions,
}

impl At {
    pub(super) async fn run(self, printer: &mut Printer) -> Result<Exit, CliError> {
        let (repository, _cache) = audit::repository(&self.source)?;
        let mut state = at(&repository, self.moment, self.environments).await?;
        state.images.retain(|row| self.tenant.as_ref().is_none_or(|tenant| row.environment.tenant == *tenant));
        write(printer, &state, self.output);
        Ok(Exit::Success)
    }
}

fn write(printer: &mut Printer, state: &State, output: AnswerFormat) {
    let rows = |hold: fn(&Option<String>) -> String| {
        state.images.iter().map(move |row| {
            let digest = row.digest.to_string();
            let hold = hold(&row.hold);
            vec![row.environment.to_string(), row.image.to_string(), row.reference.to_string(), digest, hold]
        })
    };
    match output {
        AnswerFormat::Json => return printer.json(state),
        AnswerFormat::Csv => audit::csv(
            printer,
            &["environment", "image", "reference", "digest", "hold"],
            rows(|hold| hold.clone().unwrap_or_default()),
        ),
        AnswerFormat::Text => {
            let rows: Vec<_> = rows(audit::held).collect();
            printer.text(&table(&["ENVIRONMENT", "IMAGE", "REFERENCE", "DIGEST", "HELD"], &rows));
            printer.note(&format!("as of {}", commit_line(&state.commit)));
        }
    }
    state.problems.iter().for_each(|problem| printer.warning(problem));
}
