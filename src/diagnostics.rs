//! Problems as people read them: message, place, an excerpt of the file, and what to do.
//!
//! ```text
//! error[schema]: unknown field `imags`
//!  --> environments/research/geo.yaml:4:3
//!   |
//! 4 |   imags:
//!   |   ^^^^^
//!   = hint: did you mean `images`?
//! ```

pub mod github;
pub mod sarif;

use annotate_snippets::{AnnotationKind, Element, Level, Origin, Renderer, Snippet};

use crate::model::{
    failure::{Location, Problem},
    redact::shows_secret,
    text::{lines, one_line},
};

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Something does not continue.
    Error,
    /// Something looks like a mistake.
    Warning,
}

/// How problems are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Text alone.
    Plain,
    /// With a terminal's colors.
    Coloured,
}

/// The longest line of which an excerpt is shown, in bytes.
const MAX_LINE: usize = 2000;

/// Writes a problem over several lines, without a line end after the last.
///
/// Control characters of the file are not passed on to the terminal, and a line that seems to hold a secret is not
/// shown.
pub fn render(problem: &Problem, severity: Severity, style: Style) -> String {
    let level = match severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level.primary_title(lines(&problem.message)).id(problem.code());
    let place = problem.location.as_ref().map(|location| place(location, problem.source.as_deref()));
    let hint = problem.hint.as_deref().map(|hint| Level::HELP.with_name("hint").message(lines(hint)).into());
    let report = [title.elements(place.into_iter().chain(hint))];
    let renderer = match style {
        Style::Plain => Renderer::plain(),
        Style::Coloured => Renderer::styled().hyperlink(false),
    };
    renderer.render(&report)
}

fn place<'a>(location: &'a Location, source: Option<&'a str>) -> Element<'a> {
    let line = source.and_then(|text| text.lines().nth(location.line.checked_sub(1)?));
    let line = line.filter(|line| line.len() <= MAX_LINE && !shows_secret(line));
    let path = one_line(&location.path);
    match line {
        Some(line) => {
            let line = one_line(line);
            let span = span(&line, location);
            let snippet = Snippet::source(line).line_start(location.line).path(path);
            snippet.annotation(AnnotationKind::Primary.span(span)).into()
        }
        None if location.line == 0 => Origin::path(path).into(),
        None if location.column == 0 => Origin::path(path).line(location.line).into(),
        None => Origin::path(path).line(location.line).char_column(location.column).into(),
    }
}

/// The bytes of a line that are meant, never beyond its end; without a column all but the indentation.
fn span(line: &str, location: &Location) -> std::ops::Range<usize> {
    let byte = |column: usize| line.char_indices().nth(column).map_or(line.len(), |(byte, _)| byte);
    match location.column.checked_sub(1) {
        None => line.len() - line.trim_start().len()..line.len(),
        Some(column) => byte(column)..byte(column.saturating_add(location.length.max(1))),
    }
}

/// A path from the root of the whole repository, of which the environment repository is `directory`.
fn path_from(directory: &str, path: &str) -> String {
    match directory.trim_matches('/') {
        "" => path.to_owned(),
        directory => format!("{directory}/{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Severity, Style, render};
    use crate::model::failure::{Category, Problem, Source};

    fn at(text: &str, line: usize, column: usize, length: usize) -> String {
        let source = Source { path: "a.yaml".to_owned(), text: text.into() };
        let problem = Problem::new(Category::Schema, "wrong").at(&source, line, column, length).hint("do right");
        render(&problem, Severity::Error, Style::Plain)
    }

    #[test]
    fn an_excerpt_marks_the_place() {
        let expected = "error[schema]: wrong\n --> a.yaml:2:4\n  |\n2 | é: bad\n  |    ^^^\n  |\n  = hint: do right";
        assert_eq!(at("a: 1\né: bad\n", 2, 4, 3), expected);
    }

    #[test]
    fn odd_places_do_not_panic() {
        for (line, column, length) in [
            (0, 0, 0),
            (1, 0, 0),
            (1, 1, 0),
            (1, 4, 1),
            (1, 5, 9),
            (1, 99, 1),
            (9, 9, 9),
            (1, usize::MAX, usize::MAX),
            (usize::MAX, 1, 1),
        ] {
            for text in ["", "\n", "a: é", "a: é\r\n", "\u{200b}日本語\u{301}"] {
                assert!(at(text, line, column, length).contains("hint: do right"), "{line}:{column} {text:?}");
            }
        }
    }

    #[test]
    fn terminals_and_secrets_are_safe() {
        assert!(!at("a: \u{1b}[31m", 1, 1, 1).contains('\u{1b}'));
        assert!(!at("a: \u{202e}x", 1, 1, 1).contains('\u{202e}'));
        assert!(!at(&"x".repeat(1_000_000), 1, 1, 1).contains("xx"));
        for line in
            ["image: user:canary@example.com/app", "m: [http://u:canary@h]", "password: canary", "{auth: {x: canary}}"]
        {
            let found = at(line, 1, 1, 1);
            assert!(!found.contains("canary") && found.contains("a.yaml:1:1"), "{found}");
        }
        let digest = "image: quay.io/a/b:1@sha256:00";
        assert!(at(digest, 1, 1, 1).contains(digest));
        assert!(at("pullSecret: quay-pull", 1, 1, 1).contains("quay-pull"));
    }

    #[test]
    fn without_a_text_the_place_is_named() {
        let problem = Problem::new(Category::Io, "gone").in_file("a.yaml");
        assert_eq!(render(&problem, Severity::Warning, Style::Plain), "warning[io]: gone\n--> a.yaml");
        assert_eq!(render(&Problem::new(Category::Io, "gone"), Severity::Error, Style::Plain), "error[io]: gone");
        assert!(render(&problem, Severity::Error, Style::Coloured).contains('\u{1b}'));
    }
}
