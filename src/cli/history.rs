//! `larder history`: what moved, when, in which commit; from Git alone.

use std::{borrow::Cow, sync::Arc};

use clap::Args;

use super::{
    CliError, Exit, Printer,
    audit::{self, AnswerFormat, commit_line},
    revisions::{parse_since, parse_until},
    session,
};
use crate::{
    config::SourceOptions,
    io::repository::Repository,
    model::{
        history::{CommitFilter, HistoryEntry},
        lock::{HoldChange, Move, Previous},
        name::{EnvironmentId, Name},
    },
    pipeline::audit::{HistoryQuery, history},
    stages::lock,
};

/// Show the history of image changes (from Git)
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  larder history                                  the current repository
  larder history research/geospatial              one environment
  larder history --image notebook --since 2026-11-01 --until 2026-11-30
  larder history --author ada@ --since '2 weeks ago'
  larder history --repo URL --limit 20            the newest 20 lock commits of a repository
  larder history --limit 0 --output csv           everything, one row per changed image

A TIME is a date (--since: its first second, --until: its last), a date and time
(2026-11-30T14:00), RFC 3339, `yesterday`, or `2 days ago`. It is compared with the committer's
time.")]
pub struct History {
    /// Only this environment: `tenant/name`.
    environment: Option<EnvironmentId>,
    /// Only images with this name.
    #[arg(long, value_name = "NAME")]
    image: Option<Name>,
    /// Only commits made at this time or later.
    #[arg(long, value_name = "TIME", value_parser = parse_since, allow_hyphen_values = true)]
    since: Option<i64>,
    /// Only commits made at this time or earlier.
    #[arg(long, value_name = "TIME", value_parser = parse_until, allow_hyphen_values = true)]
    until: Option<i64>,
    /// Only commits whose author, `Name <address>`, contains this text (case-insensitive).
    #[arg(long, value_name = "TEXT")]
    author: Option<String>,
    /// Maximum number of commits to show, newest first (0 = unlimited).
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    limit: usize,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: AnswerFormat,
    #[command(flatten)]
    source: SourceOptions,
}

impl History {
    pub(super) async fn run(self, printer: &mut Printer) -> Result<Exit, CliError> {
        let (repository, _cache) = audit::repository(&self.source)?;
        let nothing = self.environment.as_ref().map_or_else(
            || "no image changes match these filters".to_owned(),
            |id| format!("no commit has changed {} (matching these filters)", id.lock_path()),
        );
        let query = HistoryQuery {
            environment: self.environment,
            image: self.image,
            commits: CommitFilter { since: self.since, until: self.until, author: self.author },
            limit: Some(self.limit).filter(|limit| *limit > 0),
        };
        write(printer, &repository, query, self.output, &nothing).await?;
        Ok(Exit::Success)
    }
}

/// Prints the newest `limit` lock commits of a repository, for people.
pub async fn print(printer: &mut Printer, source: &SourceOptions, limit: usize) -> Result<(), CliError> {
    let (repository, _cache) = session::repository(source)?;
    let query = HistoryQuery { limit: Some(limit), ..HistoryQuery::default() };
    write(printer, &repository, query, AnswerFormat::Text, "nothing has been locked yet").await
}

/// Prints each commit as it is read: there may be many of them.
async fn write(
    printer: &mut Printer,
    repository: &Arc<Repository>,
    query: HistoryQuery,
    output: AnswerFormat,
    nothing: &str,
) -> Result<(), CliError> {
    let mut count = 0;
    match output {
        AnswerFormat::Text => {}
        AnswerFormat::Csv => audit::csv_row(printer, &HEADER),
        AnswerFormat::Json => printer.text("{\n  \"entries\": ["),
    }
    let problems = history(repository, query, &mut |entry| {
        match output {
            AnswerFormat::Text => printer.text(&text(&entry)),
            AnswerFormat::Csv => rows(&entry).iter().for_each(|row| audit::csv_row(printer, row)),
            AnswerFormat::Json => printer.json_item(&entry, count == 0),
        }
        count += 1;
    })
    .await?;
    match output {
        AnswerFormat::Json => {
            printer.text(if count == 0 { "]" } else { "\n  ]" });
            if !problems.is_empty() {
                printer.text(",\n  \"problems\": [");
                problems.iter().enumerate().for_each(|(at, problem)| printer.json_item(problem, at == 0));
                printer.text("\n  ]");
            }
            printer.text("\n}\n");
            return Ok(());
        }
        AnswerFormat::Text if count == 0 => printer.note(nothing),
        AnswerFormat::Text | AnswerFormat::Csv => {}
    }
    problems.iter().for_each(|problem| printer.warning(problem));
    Ok(())
}

fn text(entry: &HistoryEntry) -> String {
    let moves = entry.moves.iter().map(lock::describe);
    let lines = moves.chain(entry.holds.iter().map(lock::describe_hold)).map(|line| format!("            {line}\n"));
    format!("{}\n{}", commit_line(&entry.commit), lines.collect::<String>())
}

const HEADER: [&str; 12] = [
    "commit",
    "time",
    "author",
    "committer",
    "subject",
    "environment",
    "image",
    "old_reference",
    "old_digest",
    "new_reference",
    "new_digest",
    "hold",
];

fn rows(entry: &HistoryEntry) -> Vec<Vec<Cow<'_, str>>> {
    let commit = &entry.commit;
    let time = audit::utc_time(commit.time);
    let row = |(moved, hold): (Cow<'_, Move>, Option<&HoldChange>)| {
        let mut row: Vec<Cow<'_, str>> = vec![(&*commit.id).into(), time.clone().into(), (&*commit.author).into()];
        row.extend([Cow::from(&*commit.committer), (&*commit.subject).into()]);
        row.extend([moved.environment.to_string(), moved.image.to_string()].map(Cow::from));
        row.extend(sides(&moved.old).map(Cow::from));
        row.extend(sides(&moved.new).map(Cow::from));
        row.push(hold.map_or_else(String::new, lock::hold_value).into());
        row
    };
    lock::images(&entry.moves, &entry.holds).into_iter().map(row).collect()
}

/// Reference and digest of one side of a move, empty where there is none.
pub fn sides(side: &Option<Previous>) -> [String; 2] {
    side.as_ref().map_or_else(Default::default, |entry| [entry.reference.to_string(), entry.digest.to_string()])
}
