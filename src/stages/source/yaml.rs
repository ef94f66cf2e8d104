//! From text to a file's types: YAML within bounds, and errors in the words of a person who writes such files.

use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_saphyr::{MessageFormatter, UserMessageFormatter};

use crate::model::failure::{Category, Failure, Problem, Source};

use super::{
    header::{Header, Kind, wrong_header},
    located::Place,
    problem::{credentials, duplicate, in_order, place_in},
    suggest,
    tree::Tree,
};

pub mod repair;
mod required;

use repair::{Fault, Repair};

/// Fields that people expect to hold a secret. The line that has one is not shown.
const SECRETS: [&str; 9] =
    ["auth", "dockerAuthSpec", "password", "passwd", "username", "token", "secret", "credentials", "dockerconfigjson"];

/// The most problems of one file's structure.
const MAX_PROBLEMS: usize = 50;

/// The most bytes in all the readings of one file.
const MAX_BYTES: usize = 16 << 20;

/// What is left of a file, and what is wrong with its structure.
pub struct Parsed<T> {
    /// What is left.
    pub file: T,
    /// What is wrong.
    pub problems: Vec<Problem>,
    /// What was blanked out for that.
    pub repair: Option<Repair>,
}

/// Reads one document, or what is left of it where its structure is wrong.
///
/// # Errors
/// All that is wrong, when nothing is left.
pub fn read<T: DeserializeOwned + JsonSchema>(source: &Source, kind: Kind) -> Result<Parsed<T>, Failure> {
    check_text(source, kind)?;
    let mut error = match parse(&source.text, kind) {
        Ok(file) => return Ok(Parsed { file, problems: Vec::new(), repair: None }),
        Err(error) => error,
    };
    if let Some(problem) = better_reason(source, kind) {
        return Err(problem.into());
    }
    let mut problems = Vec::new();
    let Some(mut repair) = Repair::new(source) else { return Err(problem(source, &error).into()) };
    let mut schema = None;
    for _ in 0..MAX_PROBLEMS.min(MAX_BYTES / source.text.len().max(1)) {
        let (fault, place) = fault(&error);
        let found = problem(source, &error);
        // After the first, a mistake in the syntax is one of the repair.
        if found.category == Category::Syntax && !problems.is_empty() {
            break;
        }
        let goes_on = if fault == Fault::Missing {
            let schema =
                schema.get_or_insert_with(|| SchemaGenerator::default().into_root_schema_for::<T>().to_value());
            let missing = |place, field: &str| place_in(source, place, missing_field(field));
            let goes_on = repair.remove_incomplete(schema, &mut problems, missing);
            if problems.is_empty() {
                problems.push(found);
            }
            goes_on
        } else {
            if !repair.hides(place) {
                problems.push(found);
            }
            repair.remove_fault(fault, place)
        };
        if !goes_on {
            break;
        }
        error = match parse(&repair.text(), kind) {
            Ok(file) => return Ok(Parsed { file, problems, repair: Some(repair) }),
            Err(error) => error,
        };
    }
    Err(in_order(problems))
}

/// Looks for what would only lead to misleading errors.
fn check_text(source: &Source, kind: Kind) -> Result<(), Problem> {
    if source.text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Err(Problem::new(Category::Schema, "the file is empty")
            .in_file(&source.path)
            .hint(format!("begin it with {}; only deleting a file removes anything", kind.beginning())));
    }
    // JSON may be indented with tabs.
    let tab = || if source.path.ends_with(".json") { None } else { leading_tab(source, 1, usize::MAX, "\t") };
    merge_conflict(source).or_else(tab).map_or(Ok(()), Err)
}

/// Reads one document, within the bounds of a kind of file.
pub fn parse<T: DeserializeOwned>(text: &str, Kind { max_nodes, .. }: Kind) -> Result<T, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_nodes: max_nodes, max_events: max_nodes * 4, max_depth: 64 },
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options)
}

/// A better reason why a file cannot be read: it is something else altogether, so that its first error would only
/// mislead.
fn better_reason(source: &Source, kind: Kind) -> Option<Problem> {
    let header: Header = match parse(&source.text, kind) {
        Ok(header) => header,
        // A mistake in the syntax makes fields look wrong or missing before it is noticed.
        Err(error) => return Some(problem(source, &error)).filter(|p| p.category == Category::Syntax),
    };
    if header.sops.is_some() || source.text.contains("ENC[AES256_GCM,") {
        return Some(
            Problem::new(Category::Syntax, "the file is encrypted by SOPS")
                .in_file(&source.path)
                .hint("commit it in the clear: it needs no secret, since `pullSecret` names one by name"),
        );
    }
    if let Some((place, problem)) = wrong_header(header.api_version.as_ref(), header.kind.as_ref(), kind) {
        return Some(place_in(source, place, problem));
    }
    if header.api_version.is_none() && header.kind.is_none() && header.docker_image.is_none() {
        let hint = format!("such a file begins with {}", kind.beginning());
        return Some(Problem::new(Category::Schema, "apiVersion and kind are missing").at(source, 1, 0, 0).hint(hint));
    }
    None
}

/// What `git merge` leaves in a file. Text inside block scalars is indented, so it is not mistaken for that.
fn merge_conflict(source: &Source) -> Option<Problem> {
    let index = source.text.lines().position(|line| line.starts_with("<<<<<<< ") || line.starts_with(">>>>>>> "))?;
    Some(
        Problem::new(Category::Syntax, "unresolved merge conflict")
            .at(source, index + 1, 0, 0)
            .hint("keep one side, and remove the lines with <<<<<<<, ======= and >>>>>>>"),
    )
}

/// YAML allows a tab in some places before a key, but means nothing by it; people mean indentation.
fn leading_tab(source: &Source, from: usize, to: usize, start: &str) -> Option<Problem> {
    let lines = source.text.lines().enumerate().map(|(index, line)| (index + 1, line));
    lines.filter(|(number, _)| (from..=to).contains(number)).find_map(|(number, line)| {
        let indent = &line[..line.len() - line.trim_start_matches([' ', '\t']).len()];
        let content = line[indent.len()..].trim_end();
        let tab = indent.find('\t').filter(|_| indent.starts_with(start))?;
        (!content.is_empty() && !content.starts_with('#')).then(|| {
            Problem::new(Category::Syntax, "a tab cannot indent in YAML")
                .at(source, number, tab + 1, 1)
                .hint("indent with spaces")
        })
    })
}

/// An error of the YAML library as a problem.
fn problem(source: &Source, error: &serde_saphyr::Error) -> Problem {
    let error = error.without_snippet();
    use serde_saphyr::Error;

    let place = error.location().map(Place::from).unwrap_or_default();
    let schema = |message: String| Problem::new(Category::Schema, message);
    let plain = || UserMessageFormatter.format_message(error).into_owned();
    let found =
        match error {
            Error::AliasError { error, .. } => {
                let mut problem = problem(source, error);
                problem.location = place_in(source, place, Problem::new(Category::Syntax, "")).location;
                return problem;
            }
            Error::SerdeUnknownField { field, expected, .. } => return unknown_field(source, place, field, expected),
            Error::SerdeMissingField { field, .. } => missing_field(field),
            Error::SerdeUnknownVariant { variant, expected, .. } => schema(format!("`{variant}` is not allowed here"))
                .hint(suggest::hint(variant, expected.iter().copied())),
            Error::DuplicateMappingKey { key, .. } => {
                let tree = Tree::of(&source.text);
                let first = tree.and_then(|tree| tree.first_line(tree.offset(place)?));
                duplicate(key.as_deref().unwrap_or("?"), first)
            }
            Error::Unexpected { expected, .. } => unexpected(source, place, expected),
            Error::ExternallyTaggedEnumExpectedScalarOrMapping { .. } => {
                schema("expected a single word".to_owned()).hint("write one of the words that the documentation lists")
            }
            Error::MultipleDocuments { .. } => schema("the file contains multiple YAML documents".to_owned())
                .hint("write a file for each: its path is its identity"),
            Error::NullIntoString { .. } => schema("expected a string, found nothing".to_owned())
                .hint("write a value, in quotes if it is `null` or `~`, or remove the line"),
            Error::InvalidBooleanStrict { .. } => {
                schema("expected true or false".to_owned()).hint("write `true` or `false`, not `yes`, `on` or a number")
            }
            Error::InvalidScalar { .. } => schema("expected an integer".to_owned())
                .hint("write digits only, without a sign, a leading zero or a unit"),
            Error::UnsupportedTag { tag, .. } => {
                Problem::new(Category::Syntax, format!("the YAML tag `{tag}` is not supported")).hint("remove it")
            }
            Error::Budget { .. }
            | Error::AliasReplayLimitExceeded { .. }
            | Error::AliasExpansionLimitExceeded { .. }
            | Error::AliasReplayStackDepthExceeded { .. } => {
                Problem::new(Category::Syntax, "the file is too large or too deep, aliases expanded")
                    .hint("split it, and use fewer aliases")
            }
            Error::RecursiveReferencesRequireWeakTypes { .. } => {
                Problem::new(Category::Syntax, "this alias refers to a value that contains it").hint("remove the alias")
            }
            Error::UnknownAnchor { .. } => Problem::new(Category::Syntax, "this alias has no anchor before it")
                .hint("define it with `&name`, or write the value in quotes if it is meant to begin with `*`"),
            Error::TaggedScalarCannotDeserializeIntoString { .. }
            | Error::SerdeInvalidType { .. }
            | Error::SerdeInvalidValue { .. }
            | Error::SerdeInvalidLength { .. }
            | Error::Message { .. } => schema(plain()),
            _ => {
                if let Some(problem) = leading_tab(source, place.line, place.line + 1, "") {
                    return problem;
                }
                Problem::new(Category::Syntax, format!("invalid YAML: {}", plain()))
                    .hint("check quotes, colons and indentation at and before this position")
            }
        };
    place_in(source, place, found)
}

/// What an error is about, and where.
fn fault(error: &serde_saphyr::Error) -> (Fault, Place) {
    use serde_saphyr::Error;

    let error = error.without_snippet();
    let fault = match error {
        Error::SerdeUnknownField { .. } | Error::DuplicateMappingKey { .. } => Fault::Key,
        Error::SerdeMissingField { .. } => Fault::Missing,
        Error::SerdeUnknownVariant { .. } => Fault::Word,
        Error::MultipleDocuments { .. } => Fault::File,
        _ => Fault::Value,
    };
    (fault, error.location().map(Place::from).unwrap_or_default())
}

fn missing_field(field: &str) -> Problem {
    Problem::new(Category::Schema, format!("missing field `{field}`")).hint(format!("add `{field}: …` here"))
}

fn unknown_field(source: &Source, place: Place, field: &str, expected: &[&str]) -> Problem {
    if SECRETS.iter().any(|secret| secret.eq_ignore_ascii_case(field)) {
        let message = format!("do not put credentials in Git (field `{field}`)");
        let mut problem = place_in(source, place, credentials(message));
        problem.source = None;
        return problem;
    }
    let hint = match field {
        "metadata" => "remove it: the file's path is its identity".to_owned(),
        "name" if !expected.contains(&"name") => "remove it: the file's path is its identity".to_owned(),
        _ => suggest::hint(field, expected.iter().copied()),
    };
    place_in(source, place, Problem::new(Category::Schema, format!("unknown field `{field}`")).hint(hint))
}

fn unexpected(source: &Source, place: Place, expected: &str) -> Problem {
    let line = source.text.lines().nth(place.line.saturating_sub(1)).unwrap_or_default();
    let rest: String = line.chars().skip(place.column.saturating_sub(1)).collect();
    let (what, hint) = match expected {
        "string scalar" => ("a string", "write one value, in quotes if it holds special characters"),
        "sequence start" if rest.starts_with('-') => ("a list", "write a space after the dash"),
        "sequence start" => ("a list", "write each item on a line of its own, after `- `"),
        "mapping start" if rest.split_whitespace().next().is_some_and(|word| word.trim_matches(':').contains(':')) => {
            ("a mapping", "write a space after the colon")
        }
        "mapping start" => ("a mapping", "write `key: value` lines here"),
        _ => ("another kind of value", "look at the example of this kind of file"),
    };
    Problem::new(Category::Schema, format!("expected {what}")).hint(hint)
}
