//! `larder history`: what moved, when, in which commit; from Git alone.

use std::borrow::Cow;

use clap::Args;

use super::{
    CliError, Exit, Printer,
    audit::{self, AnswerFormat, commit_line},
    session,
};
use crate::{
    config::SourceOptions,
    model::{
        history::History as Answer,
        lock::Previous,
        name::{EnvironmentId, Name},
    },
    pipeline::audit::{HistoryQuery, history},
    stages::lock,
};

/// Show from Git what moved, when, in which commit
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  larder history                                  the repository you are in
  larder history research/geospatial              one environment
  larder history --image notebook --since 2026-11-01 --until 2026-11-30
  larder history --author ada@ --since '2 weeks ago'
  larder history --repo URL --limit 20            the newest 20 lock commits of a repository
  larder history --limit 0 --output csv           all of it, a line for each image that moved

A TIME is a date (--since: its first second, --until: its last), a date and a time of the day
(2026-11-30T14:00), RFC 3339, `yesterday`, or `2 days ago`. It is compared with the committer's time.")]
pub struct History {
    /// Only this environment: `tenant/name`.
    environment: Option<EnvironmentId>,
    /// Only images with this name.
    #[arg(long, value_name = "NAME")]
    image: Option<Name>,
    /// Only what was committed at this time or later.
    #[arg(long, value_name = "TIME", value_parser = audit::parse_since, allow_hyphen_values = true)]
    since: Option<i64>,
    /// Only what was committed at this time or earlier.
    #[arg(long, value_name = "TIME", value_parser = audit::parse_until, allow_hyphen_values = true)]
    until: Option<i64>,
    /// Only commits whose author, `Name <address>`, has this in it; capitals or not.
    #[arg(long, value_name = "TEXT")]
    author: Option<String>,
    /// At most so many commits, newest first; 0: all.
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    limit: usize,
    #[command(flatten)]
    source: SourceOptions,
    /// How the history is printed.
    #[arg(long, value_enum, default_value_t)]
    output: AnswerFormat,
}

impl History {
    pub(super) async fn run(self, printer: &mut Printer) -> Result<Exit, CliError> {
        let (repository, _cache) = audit::repository(self.source)?;
        let nothing = self.environment.as_ref().map_or_else(
            || "nothing was locked, as far as that is asked for".to_owned(),
            |id| format!("no commit has changed {}, as far as that is asked for", id.lock_path()),
        );
        let query = HistoryQuery {
            environment: self.environment,
            image: self.image,
            author: self.author,
            since: self.since,
            until: self.until,
            limit: Some(self.limit).filter(|limit| *limit > 0),
        };
        write(printer, &history(&repository, query).await?, self.output, &nothing);
        Ok(Exit::Success)
    }
}

/// Prints the newest `limit` lock commits of a repository, for people.
pub async fn print(printer: &mut Printer, source: &SourceOptions, limit: usize) -> Result<(), CliError> {
    let (repository, _cache) = session::repository(source)?;
    let query = HistoryQuery { limit: Some(limit), ..HistoryQuery::default() };
    write(printer, &history(&repository, query).await?, AnswerFormat::Text, "nothing has been locked yet");
    Ok(())
}

fn write(printer: &mut Printer, history: &Answer, output: AnswerFormat, nothing: &str) {
    match output {
        AnswerFormat::Json => return printer.json(history),
        AnswerFormat::Csv => audit::csv(printer, &HEADER, rows(history)),
        AnswerFormat::Text => {
            let mut text = String::new();
            for entry in &history.entries {
                text += &format!("{}\n", commit_line(&entry.commit));
                for moved in &entry.moves {
                    text += &format!("            {}\n", lock::describe(moved));
                }
                for hold in &entry.holds {
                    text += &format!("            {}\n", lock::describe_hold(hold));
                }
            }
            printer.text(&text);
            if history.entries.is_empty() {
                printer.note(nothing);
            }
        }
    }
    history.problems.iter().for_each(|problem| printer.warning(problem));
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

fn rows(history: &Answer) -> impl Iterator<Item = Vec<Cow<'_, str>>> {
    history.entries.iter().flat_map(|entry| {
        let commit = &entry.commit;
        let time = audit::utc_time(commit.time);
        lock::images(&entry.moves, &entry.holds).into_iter().map(move |(moved, hold)| {
            let mut row: Vec<Cow<'_, str>> = vec![(&*commit.id).into(), time.clone().into(), (&*commit.author).into()];
            row.extend([Cow::from(&*commit.committer), (&*commit.subject).into()]);
            row.extend([moved.environment.to_string(), moved.image.to_string()].map(Cow::from));
            row.extend(sides(&moved.old).map(Cow::from));
            row.extend(sides(&moved.new).map(Cow::from));
            row.push(hold.map_or("", |hold| hold.reason.as_deref().unwrap_or("none")).into());
            row
        })
    })
}

/// Reference and digest of one side of a move, empty where there is none.
pub fn sides(side: &Option<Previous>) -> [String; 2] {
    side.as_ref().map_or_else(Default::default, |entry| [entry.reference.to_string(), entry.digest.to_string()])
}
