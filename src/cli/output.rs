//! The one place that writes to the terminal: data to standard output, everything else to standard error.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use super::{
    CliError,
    json::{Document, Versioned},
};
use crate::{
    diagnostics::{self, Severity, Style},
    model::{
        failure::{Category, Failure, Problem},
        text::one_line,
    },
};

/// Writes a command's output.
pub struct Printer {
    out: Box<dyn Write + Send>,
    err: Box<dyn Write + Send>,
    color_out: bool,
    color_err: bool,
    /// The first reason why data could not be written.
    lost: Option<io::Error>,
}

impl Printer {
    /// To this process's own standard output and error, with color where they are terminals.
    pub fn from_terminal() -> Self {
        // https://no-color.org: any value that is not empty turns color off.
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self {
            out: Box::new(io::stdout()),
            err: Box::new(io::stderr()),
            color_out: wanted && io::stdout().is_terminal(),
            color_err: wanted && io::stderr().is_terminal(),
            lost: None,
        }
    }

    /// Sends everything to standard output: for a story that is data as a whole.
    pub fn merge(&mut self) {
        self.err = Box::new(io::stdout());
        self.color_err = self.color_out;
    }

    /// Data, as it is.
    pub fn text(&mut self, text: &str) {
        if self.lost.is_some() {
            return;
        }
        match self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()) {
            // A reader that went away (`| head`) is not an error.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => self.lost = Some(error),
            _ => {}
        }
    }

    /// That all data was written.
    pub fn finish(&mut self) -> Result<(), CliError> {
        self.lost.take().map_or(Ok(()), |error| Err(cannot_print(&error)))
    }

    /// A line of data.
    pub fn line(&mut self, line: &str) {
        self.text(&format!("{line}\n"));
    }

    /// A document, with its version and kind.
    pub fn document(&mut self, document: &impl Document) {
        self.json(&Versioned::new(document));
    }

    /// Data as JSON.
    pub fn json(&mut self, value: &impl Serialize) {
        match serde_json::to_string_pretty(value) {
            Ok(text) => self.line(&text),
            Err(error) => self.lost = self.lost.take().or_else(|| Some(error.into())),
        }
    }

    /// A value as an item of a JSON array that is printed piece by piece, two levels deep.
    pub fn json_item(&mut self, value: &impl Serialize, is_first: bool) {
        match serde_json::to_string_pretty(value) {
            Ok(text) => {
                let comma = if is_first { "" } else { "," };
                self.text(&format!("{comma}\n    {}", text.replace('\n', "\n    ")));
            }
            Err(error) => self.lost = self.lost.take().or_else(|| Some(error.into())),
        }
    }

    /// A unified diff, colored on a terminal.
    pub fn diff(&mut self, diff: &str) {
        if !self.color_out {
            return self.text(diff);
        }
        let colored: String = diff
            .lines()
            .map(one_line)
            .map(|line| match line.as_bytes() {
                [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => format!("\x1b[1m{line}\x1b[0m\n"),
                [b'+', ..] => format!("\x1b[32m{line}\x1b[0m\n"),
                [b'-', ..] => format!("\x1b[31m{line}\x1b[0m\n"),
                [b'@', ..] => format!("\x1b[36m{line}\x1b[0m\n"),
                _ => format!("{line}\n"),
            })
            .collect();
        self.text(&colored);
    }

    /// A human-readable line in addition to the data.
    pub fn note(&mut self, line: &str) {
        let _ = writeln!(self.err, "{line}");
    }

    /// What is to be known about something, though nothing is wrong.
    pub fn remark(&mut self, about: &str, note: &Problem) {
        self.note(&format!("note: {about}: {}", one_line(&note.message)));
        if let Some(hint) = &note.hint {
            self.note(&format!("  hint: {}", one_line(hint)));
        }
    }

    /// A problem with its excerpt and hint, as an error.
    pub fn problem(&mut self, problem: &Problem) {
        self.diagnostic(problem, Severity::Error);
    }

    /// A problem with its excerpt and hint, as a warning.
    pub fn warning(&mut self, problem: &Problem) {
        self.diagnostic(problem, Severity::Warning);
    }

    fn diagnostic(&mut self, problem: &Problem, severity: Severity) {
        let style = if self.color_err { Style::Coloured } else { Style::Plain };
        self.note(&diagnostics::render(problem, severity, style));
    }

    /// All problems of a failure.
    pub fn failure(&mut self, failure: &Failure) {
        for problem in failure.problems() {
            self.problem(problem);
        }
    }

    /// Why a command failed.
    pub fn error(&mut self, error: &CliError) {
        self.failure(&error.0);
    }
}

/// That standard output cannot be written.
pub fn cannot_print(error: &io::Error) -> CliError {
    Problem::new(Category::Io, format!("standard output cannot be written: {error}"))
        .hint("the output is incomplete; check where it is redirected to, for example for a full disk")
        .into()
}

/// Columns of equal width, two spaces between them, no trailing space. Cells may hold text from outside.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let header: Vec<String> = header.iter().map(|&title| title.to_owned()).collect();
    let lines: Vec<&Vec<String>> = std::iter::once(&header).chain(rows).collect();
    let columns = lines.iter().map(|line| line.len()).max().unwrap_or(0);
    let width = |column: usize| lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    lines
        .iter()
        .map(|line| {
            let cells = line.iter().map(|cell| one_line(cell)).zip(&widths);
            let cells: String = cells.map(|(cell, &width)| format!("{cell:width$}  ")).collect();
            format!("{}\n", cells.trim_end())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};

    use super::{Printer, table};

    /// Fails with an error of that kind.
    struct Closed(io::ErrorKind);

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn data_that_cannot_be_written_is_an_error_unless_nobody_reads_it() {
        for (kind, expected) in [(io::ErrorKind::BrokenPipe, true), (io::ErrorKind::StorageFull, false)] {
            let (out, err) = (Box::new(Closed(kind)), Box::new(Closed(kind)));
            let mut printer = Printer { out, err, color_out: false, color_err: false, lost: None };
            printer.line("data");
            printer.note("note");
            assert_eq!(printer.finish().is_ok(), expected, "{kind}");
        }
    }

    #[test]
    fn columns_line_up() {
        let rows = vec![vec!["a".to_owned(), "1".to_owned()], vec!["longer".to_owned(), "2".to_owned()]];
        assert_eq!(table(&["NAME", "N"], &rows), "NAME    N\na       1\nlonger  2\n");
        let row = ["a\nb\u{202e}c\x1b[2J".to_owned(), "1".to_owned()];
        assert_eq!(table(&["N", "M"], &[row.to_vec()]), "N          M\na\u{fffd}b\u{fffd}c\u{fffd}[2J  1\n");
    }
}
