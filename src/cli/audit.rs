//! What the audit's commands share: the repository they read, and answers as text and CSV.

use std::borrow::Cow;

use clap::ValueEnum;
use jiff::Timestamp;

use super::{CliError, Printer, session};
use crate::{
    config::SourceOptions,
    io::repository::Repository,
    model::{
        history::{CommitInfo, CommitTime},
        text::one_line,
    },
};

/// How an answer is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum AnswerFormat {
    /// Human-readable.
    #[default]
    Text,
    /// Machine-readable.
    Json,
    /// RFC 4180, one row per image, times in RFC 3339 (UTC).
    Csv,
}

/// Opens `--repo`, or the repository around the current directory.
pub fn repository(source: &SourceOptions) -> Result<(std::sync::Arc<Repository>, Option<tempfile::TempDir>), CliError> {
    session::repository(&session::with_repository(source)?)
}

/// Prints a table as CSV.
pub fn csv<S: AsRef<str>>(printer: &mut Printer, header: &[&str], rows: impl IntoIterator<Item = Vec<S>>) {
    csv_row(printer, header);
    rows.into_iter().for_each(|row| csv_row(printer, &row));
}

/// Prints one line of CSV.
pub fn csv_row<S: AsRef<str>>(printer: &mut Printer, row: &[S]) {
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    // Writing to memory does not fail.
    let _ = writer.write_record(row.iter().map(|cell| harmless(cell.as_ref()).into_owned()));
    printer.text(&String::from_utf8_lossy(&writer.into_inner().unwrap_or_default()));
}

/// A cell that no spreadsheet takes for a formula: authors and subjects are whatever someone committed.
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
    format!("{}  {}  {}", commit.short(), local_time(commit.time), author(commit))
}

/// Who wrote a commit, for people.
pub fn author(commit: &CommitInfo) -> Cow<'_, str> {
    if commit.author.is_empty() { "(unknown author)".into() } else { one_line(&commit.author) }
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
    use super::harmless;

    #[test]
    fn cells_and_lines_hold_nothing_that_acts() {
        assert_eq!(harmless("=HYPERLINK(\"x\")"), "'=HYPERLINK(\"x\")");
        assert_eq!(harmless("a=b"), "a=b");
        assert_eq!(harmless("a\x1b[2Jb\nc"), "a\u{fffd}[2Jb\u{fffd}c");
    }
}
