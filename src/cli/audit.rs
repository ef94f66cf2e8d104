//! What the audit's verbs share: the repository they ask, moments as people write them, tables as CSV.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

use clap::ValueEnum;
use jiff::{Span, Timestamp, Zoned, civil, tz::TimeZone};

use super::{CliError, Printer, session};
use crate::{
    config::SourceOptions,
    io::{folder, repository::Repository},
    model::{
        failure::{Category, Problem},
        history::{CommitInfo, CommitTime},
        text::one_line,
    },
    pipeline::audit::Moment,
};

/// How an answer is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum AnswerFormat {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
    /// For spreadsheets: RFC 4180, a line for each image, with times in RFC 3339 (UTC).
    Csv,
}

/// Opens `--repo`, or the repository around the folder that larder is started in.
pub fn repository(source: SourceOptions) -> Result<(std::sync::Arc<Repository>, Option<tempfile::TempDir>), CliError> {
    if source.repo.is_some() {
        return session::repository(&source);
    }
    let start = std::env::current_dir().map_err(|error| CliError::io("the current folder cannot be read", &error))?;
    let (repository, path) = local_repository(&start)?;
    session::repository(&source.with_local(&repository, path))
}

/// The repository around the environment repository that holds `start`, and where in it that is.
fn local_repository(start: &Path) -> Result<(PathBuf, Option<String>), CliError> {
    let root = folder::find_root(start)?;
    let Some(repository) = root.ancestors().find(|folder| folder.join(".git").exists()) else {
        return Err(Problem::new(Category::Git, format!("{} is in no Git repository", root.display()))
            .hint("name one with --repo")
            .into());
    };
    let path = root.strip_prefix(repository).ok().map(|path| path.display().to_string());
    Ok((repository.to_owned(), path.filter(|path| !path.is_empty())))
}

/// Which end of a day a date means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edge {
    /// Its first second.
    First,
    /// Its last second.
    Last,
}

/// `--since`: a date is its first second.
pub fn parse_since(text: &str) -> Result<i64, String> {
    parse_time(text, &Zoned::now(), Edge::First)
}

/// `--until`: a date is its last second.
pub fn parse_until(text: &str) -> Result<i64, String> {
    parse_time(text, &Zoned::now(), Edge::Last)
}

/// `TIME|REV`: what looks like no time is a revision. A date is its last second.
pub fn parse_moment(text: &str) -> Result<Moment, String> {
    Ok(moment(text, &Zoned::now()))
}

fn moment(text: &str, now: &Zoned) -> Moment {
    parse_time(text, now, Edge::Last).map_or_else(|_| Moment::Revision(text.to_owned()), Moment::Time)
}

/// A time in seconds since 1970 (UTC): RFC 3339; a date, or a date and a time of the day, in the local time zone; `now`,
/// `today`, `yesterday`; `2 days ago`.
fn parse_time(text: &str, now: &Zoned, edge: Edge) -> Result<i64, String> {
    let wrong = || {
        "a time such as 2026-11-30, 2026-11-30T14:00, 2026-11-30T14:00:00Z, `yesterday` or `2 days ago` is expected"
            .to_owned()
    };
    let text = text.trim();
    if text == "now" {
        return Ok(now.timestamp().as_second());
    }
    if let Some(span) = text.strip_suffix("ago") {
        let span: Span = span.trim().parse().map_err(|_| wrong())?;
        return now.checked_sub(span).map(|then| then.timestamp().as_second()).map_err(|_| wrong());
    }
    let day = match text {
        "today" => Some(now.date()),
        "yesterday" => now.date().yesterday().ok(),
        // Without dashes it would be the beginning of a commit's id just as well.
        _ if text.len() == 10 && text.contains('-') => text.parse::<civil::Date>().ok(),
        _ => None,
    };
    if let Some(day) = day {
        return of_day(day, now.time_zone(), edge).ok_or_else(wrong);
    }
    if !text.contains('-') || !text.contains(':') {
        return Err(wrong());
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time.as_second());
    }
    let local = text.parse::<civil::DateTime>().and_then(|time| time.to_zoned(now.time_zone().clone()));
    local.map(|time| time.timestamp().as_second()).map_err(|_| wrong())
}

fn of_day(day: civil::Date, zone: &TimeZone, edge: Edge) -> Option<i64> {
    let start = |day: civil::Date| day.to_zoned(zone.clone()).ok().map(|start| start.timestamp().as_second());
    match edge {
        Edge::First => start(day),
        Edge::Last => start(day.tomorrow().ok()?).map(|next| next - 1),
    }
}

/// Prints a table as CSV.
pub fn csv<S: AsRef<str>>(printer: &mut Printer, header: &[&str], rows: impl IntoIterator<Item = Vec<S>>) {
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    // Writing to memory fails only for rows of unequal length, which show in any test.
    let write = || -> Result<(), csv::Error> {
        writer.write_record(header)?;
        for row in rows {
            row.iter().try_for_each(|cell| writer.write_field(&*harmless(cell.as_ref())))?;
            writer.write_record(None::<&str>)?;
        }
        Ok(())
    };
    let result = write();
    let text = writer.into_inner().unwrap_or_default();
    match result {
        Ok(()) => printer.text(&String::from_utf8_lossy(&text)),
        Err(error) => printer.note(&format!("error: this cannot be written as CSV: {error}")),
    }
}

/// A cell that no spreadsheet takes for a formula: authors and subjects are whatever somebody committed.
/// <https://owasp.org/www-community/attacks/CSV_Injection>
fn harmless(cell: &str) -> Cow<'_, str> {
    let cell = one_line(cell);
    if cell.starts_with(['=', '+', '-', '@']) { format!("'{cell}").into() } else { cell }
}

/// A hold's reason as a cell of a table.
pub fn held(hold: &Option<String>) -> String {
    hold.as_deref().map_or("-".into(), one_line).into_owned()
}

/// The first digits of a commit, when it was made, and by whom.
pub fn commit_line(commit: &CommitInfo) -> String {
    format!("{}  {}  {}", commit.short(), local_time(commit.time), one_line(&commit.author))
}

/// `2026-11-30 14:03 +0100`, in the time zone of the commit.
pub fn local_time(time: CommitTime) -> String {
    let offset = jiff::tz::Offset::from_seconds(time.offset).unwrap_or(jiff::tz::Offset::UTC);
    Timestamp::from_second(time.seconds).map_or_else(
        |_| time.seconds.to_string(),
        |at| offset.to_datetime(at).strftime("%Y-%m-%d %H:%M").to_string() + &format!(" {}", offset_text(time.offset)),
    )
}

/// `2026-11-30T13:03:07Z`.
pub fn utc_time(time: CommitTime) -> String {
    Timestamp::from_second(time.seconds).map_or_else(|_| time.seconds.to_string(), |at| at.to_string())
}

fn offset_text(seconds: i32) -> String {
    let sign = if seconds < 0 { '-' } else { '+' };
    let minutes = seconds.abs() / 60;
    format!("{sign}{:02}{:02}", minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests {
    use jiff::{Timestamp, Zoned, tz::TimeZone};

    use super::{Edge, harmless, moment, parse_time};
    use crate::pipeline::audit::Moment;

    fn now() -> Zoned {
        let zone = TimeZone::fixed(jiff::tz::offset(1));
        "2026-11-30T14:00:00Z".parse::<Timestamp>().unwrap().to_zoned(zone)
    }

    #[test]
    fn times_as_people_write_them() {
        for (text, edge, expected) in [
            ("2026-11-29", Edge::First, "2026-11-28T23:00:00Z"),
            ("2026-11-29", Edge::Last, "2026-11-29T22:59:59Z"),
            ("yesterday", Edge::First, "2026-11-28T23:00:00Z"),
            ("today", Edge::First, "2026-11-29T23:00:00Z"),
            ("now", Edge::Last, "2026-11-30T14:00:00Z"),
            ("2026-11-29T10:00:01Z", Edge::Last, "2026-11-29T10:00:01Z"),
            ("2026-11-29T10:00:00+02:00", Edge::Last, "2026-11-29T08:00:00Z"),
            ("2026-11-29 10:00", Edge::Last, "2026-11-29T09:00:00Z"),
            ("2 days ago", Edge::Last, "2026-11-28T14:00:00Z"),
            ("1 week 1h ago", Edge::Last, "2026-11-23T13:00:00Z"),
        ] {
            let found = parse_time(text, &now(), edge).unwrap();
            assert_eq!(Timestamp::from_second(found).unwrap().to_string(), expected, "{text}");
        }
        for text in ["", "main", "20261129", "abcdef0123", "HEAD~3", "v1-2026:x", "2026-13-01", "ago", "v1.0-rc"] {
            assert!(parse_time(text, &now(), Edge::Last).is_err(), "{text}");
            assert_eq!(moment(text, &now()), Moment::Revision(text.to_owned()));
        }
    }

    #[test]
    fn cells_and_lines_hold_nothing_that_acts() {
        assert_eq!(harmless("=HYPERLINK(\"x\")"), "'=HYPERLINK(\"x\")");
        assert_eq!(harmless("a=b"), "a=b");
        assert_eq!(harmless("a\x1b[2Jb\nc"), "a\u{fffd}[2Jb\u{fffd}c");
    }
}
