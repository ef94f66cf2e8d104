//! `larder history`: what moved, when, in which commit; from Git alone.

use clap::Args;

use super::{CliError, Exit, Printer, session};
use crate::{
    config::{OutputFormat, SourceOptions},
    io::folder,
    model::{history::CommitTime, name::EnvironmentId},
    stages::{history, lock},
};

/// Show from Git what moved, when, in which commit
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  larder history                          the repository you are in
  larder history research/geospatial      one environment
  larder history --repo URL --limit 20    the newest 20 lock commits of a repository
  larder history --output json")]
pub struct History {
    /// Only this environment: `tenant/name`.
    environment: Option<EnvironmentId>,
    /// At most so many commits, newest first.
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    limit: usize,
    #[command(flatten)]
    source: SourceOptions,
    /// How the history is printed.
    #[arg(long, value_enum, default_value_t)]
    output: OutputFormat,
}

impl History {
    pub(super) async fn run(self, printer: &mut Printer) -> Result<Exit, CliError> {
        let source = match self.source.repo {
            Some(_) => self.source,
            None => {
                let root = folder::find_root(&session::current_folder()?)?;
                let (repository, path) = session::local_repository(&root)?;
                self.source.with_local(&repository, path)
            }
        };
        print(printer, &source, self.environment.as_ref(), self.limit, self.output).await?;
        Ok(Exit::Success)
    }
}

/// Prints the newest `limit` lock commits of a repository.
pub async fn print(
    printer: &mut Printer,
    source: &SourceOptions,
    environment: Option<&EnvironmentId>,
    limit: usize,
    output: OutputFormat,
) -> Result<(), CliError> {
    let (repository, _cache) = session::repository(source)?;
    let commits = repository.history(environment, limit).await?;
    let history = history::history(&commits, environment);
    if output == OutputFormat::Json {
        printer.json(&history);
        return Ok(());
    }
    history.problems.iter().for_each(|problem| printer.warning(problem));
    for entry in &history.entries {
        let short: String = entry.commit.chars().take(10).collect();
        printer.line(&format!("{short}  {}  {}", format_time(entry.time), entry.author));
        for moved in &entry.moves {
            printer.line(&format!("            {}", lock::describe(moved)));
        }
    }
    if history.entries.is_empty() {
        printer.note(&environment.map_or_else(
            || "nothing has been locked yet".to_owned(),
            |id| format!("no commit has changed {}", id.lock_path()),
        ));
    }
    Ok(())
}

/// `2026-11-30 14:03 +0100`, in the time zone of the commit.
fn format_time(time: CommitTime) -> String {
    let offset = jiff::tz::Offset::from_seconds(time.offset).unwrap_or(jiff::tz::Offset::UTC);
    jiff::Timestamp::from_second(time.seconds).map_or_else(
        |_| time.seconds.to_string(),
        |at| offset.to_datetime(at).strftime("%Y-%m-%d %H:%M").to_string() + &format!(" {}", offset_text(time.offset)),
    )
}

fn offset_text(seconds: i32) -> String {
    let sign = if seconds < 0 { '-' } else { '+' };
    let minutes = seconds.abs() / 60;
    format!("{sign}{:02}{:02}", minutes / 60, minutes % 60)
}
