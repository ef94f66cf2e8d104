//! `larder hold`, `release` and `rollback`: what a person decides about a digest, as a commit that says so.

use clap::Args;
use jiff::civil::Date;
use serde::Serialize;

use super::{CliError, Exit, Printer, output::table, revisions::parse_moment, session};
use crate::{
    config::{CommitOptions, OutputFormat, SourceOptions},
    io::git,
    model::{
        batch::succeeded,
        lock::{self as model, HoldChange, HoldOrigin, Move, Previous},
        name::{EnvironmentId, Name},
        text::one_line,
    },
    pipeline::{
        audit::Moment,
        holding::{Done, Mode, Order, Wish, carry_out},
        today,
    },
    stages::{lock, lockfile::diff},
};

/// Pin an environment's images at their locked digests until released; or list what is held
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  larder hold                                                       list all holds
  larder hold research/geospatial notebook --reason 'exam on Friday' --until 2026-12-04
  larder hold research/geospatial --reason 'CVE review' --repo URL  all of its images

With --until, the image follows its tag again after that day (UTC), otherwise after
`larder release`.

The commit's author is that of your Git configuration, or --author-name and --author-email. It
is signed with --signing-key-file, or with the SSH key that Git signs your commits with.
Without --repo it is created in the current clone, and `git push` publishes it.")]
pub struct Hold {
    /// The environment: `tenant/name`. Without one, the holds of all environments are listed.
    #[arg(requires = "reason")]
    environment: Option<EnvironmentId>,
    /// Its images; by default all that are locked.
    #[arg(value_name = "IMAGE")]
    images: Vec<Name>,
    /// Reason, recorded in the lockfile, commit message and status.
    #[arg(long, value_name = "TEXT", value_parser = parse_reason, requires = "environment")]
    reason: Option<String>,
    #[command(flatten)]
    until: Until,
    #[command(flatten)]
    how: How,
}

/// When a hold ends.
#[derive(Debug, Args)]
struct Until {
    /// The last day (UTC) on which it holds: `2026-12-04`.
    #[arg(long, value_name = "DATE", value_parser = parse_until)]
    until: Option<Date>,
}

/// Release held images so that they follow their tags again
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  larder release research/geospatial notebook
  larder release research/geospatial --repo URL        all of its images

The next pass resolves their tags again. Deleting `hold` from the lockfile has the same effect.")]
pub struct Release {
    #[command(flatten)]
    images: Images,
    #[command(flatten)]
    how: How,
}

/// Roll images back to a past commit or point in time, and hold them there
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  larder rollback research/geospatial notebook --to HEAD~1
  larder rollback research/geospatial --to yesterday --reason 'kernels die'   all of its images
  larder rollback research/geospatial --to 2026-11-30T14:00 --dry-run

The reference is rolled back, too: an image whose tag was changed since stays at the previous
tag until it is released. Environment files are not changed.")]
pub struct Rollback {
    #[command(flatten)]
    images: Images,
    /// A commit, tag, branch or time.
    #[arg(long, value_name = "TIME|REV", value_parser = parse_moment)]
    to: Moment,
    /// Reason; by default that it was rolled back, and to which commit.
    #[arg(long, value_name = "TEXT", value_parser = parse_reason)]
    reason: Option<String>,
    #[command(flatten)]
    until: Until,
    #[command(flatten)]
    how: How,
}

/// Which images.
#[derive(Debug, Args)]
struct Images {
    /// The environment: `tenant/name`.
    environment: EnvironmentId,
    /// Its images; by default all that are locked.
    #[arg(value_name = "IMAGE")]
    images: Vec<Name>,
}

/// Where it is done, and what is printed.
#[derive(Debug, Args)]
struct How {
    /// Show what would be committed without committing.
    #[arg(long)]
    dry_run: bool,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
    #[command(flatten)]
    source: SourceOptions,
    #[command(flatten)]
    commits: CommitOptions,
}

/// The longest reason, in characters: it stands in the lockfile, the commit, the status and in logs.
const LONGEST_REASON: usize = 500;

fn parse_reason(text: &str) -> Result<String, String> {
    let text = text.trim();
    match text.chars().count() {
        0 => Err("give a reason: anyone who finds the hold later needs it".to_owned()),
        length if length > LONGEST_REASON => {
            Err(format!("at most {LONGEST_REASON} characters are kept, and these are {length}"))
        }
        _ => Ok(text.to_owned()),
    }
}

fn parse_until(text: &str) -> Result<Date, String> {
    let date: Date = text.parse().map_err(|_| format!("`{text}` is not a date such as 2026-12-04"))?;
    if date < today() {
        return Err(format!("{date} is over; `larder release` ends a hold at once"));
    }
    Ok(date)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Held<'a> {
    environment: &'a EnvironmentId,
    image: &'a Name,
    at: Previous,
    #[serde(flatten)]
    hold: &'a model::Hold,
}

#[derive(Serialize)]
struct Results<'a> {
    commit: Option<String>,
    moves: &'a [Move],
    holds: &'a [HoldChange],
}

impl Hold {
    pub(super) async fn run(self, printer: &mut Printer) -> Result<Exit, CliError> {
        let (Some(environment), Some(reason)) = (self.environment, self.reason) else {
            return list(&self.how, printer).await;
        };
        let images = Images { environment, images: self.images };
        let hold = model::Hold { reason, origin: HoldOrigin::Person, until: self.until.until };
        run(images, Wish::Hold(hold), self.how, printer).await
    }
}

impl Release {
    pub(super) async fn run(self, printer: &mut Printer) -> Result<Exit, CliError> {
        run(self.images, Wish::Release, self.how, printer).await
    }
}

impl Rollback {
    pub(super) async fn run(self, printer: &mut Printer) -> Result<Exit, CliError> {
        let wish = Wish::RollBack { to: self.to, reason: self.reason, until: self.until.until };
        run(self.images, wish, self.how, printer).await
    }
}

/// Prints all holds of the lock.
async fn list(how: &How, printer: &mut Printer) -> Result<Exit, CliError> {
    let environments = session::load(&session::source(&how.source).await?)?;
    let held: Vec<Held<'_>> = succeeded(&environments.lock)
        .flat_map(|(environment, lockfile)| {
            lockfile.images.iter().map(move |(image, entry)| (environment, image, entry))
        })
        .filter_map(|(environment, image, entry)| {
            Some(Held { environment, image, at: diff::locked_as(entry), hold: entry.hold.as_ref()? })
        })
        .collect();
    match how.output {
        OutputFormat::Json => printer.json(&held),
        OutputFormat::Text if held.is_empty() => printer.note("no image is held"),
        OutputFormat::Text => {
            let row = |held: &Held<'_>| {
                let origin = match &held.hold.origin {
                    HoldOrigin::Person => "person",
                    HoldOrigin::Revert { .. } => "revert",
                };
                vec![
                    held.environment.to_string(),
                    held.image.to_string(),
                    held.at.reference.to_string(),
                    held.at.digest.short().to_owned(),
                    origin.to_owned(),
                    held.hold.until.map_or_else(|| "-".to_owned(), |until| until.to_string()),
                    one_line(&held.hold.reason).into_owned(),
                ]
            };
            let header = ["ENVIRONMENT", "IMAGE", "REFERENCE", "DIGEST", "BY", "UNTIL", "REASON"];
            printer.text(&table(&header, &held.iter().map(row).collect::<Vec<_>>()));
        }
    }
    Ok(session::report_broken(printer, &environments, &[]))
}

async fn run(images: Images, wish: Wish, how: How, printer: &mut Printer) -> Result<Exit, CliError> {
    let is_here = how.source.repo.is_none();
    let mode = if how.dry_run { Mode::DryRun } else { Mode::Commit };
    let folder = session::current_folder()?;
    let commits = if how.dry_run { how.commits } else { how.commits.as_person(&folder)? };
    let is_unsigned = commits.signing_key_file.is_none() && git::signing(&folder) == git::Signing::Otherwise;
    let (repository, _cache) = session::repository_of_person(&how.source, &commits)?;
    let order = Order { environment: images.environment, images: images.images, wish, mode };
    let Done { commit, change } = carry_out(&repository, &order).await?;
    match how.output {
        OutputFormat::Json => {
            let commit = commit.as_ref().map(ToString::to_string);
            printer.json(&Results { commit, moves: &change.moves, holds: &change.holds });
        }
        OutputFormat::Text => {
            change.moves.iter().for_each(|moved| printer.line(&lock::describe(moved)));
            change.holds.iter().for_each(|hold| printer.line(&lock::describe_hold(hold)));
            match &commit {
                Some(commit) if is_here => {
                    printer.line(&format!("created commit {commit}; run `git push` to publish it"));
                }
                Some(commit) => printer.line(&format!("commit {commit}")),
                None if change.files.is_empty() => printer.line("nothing to do: already up to date"),
                None => printer.line("nothing was committed (--dry-run)"),
            }
        }
    }
    if commit.is_some() && is_unsigned {
        printer.note(
            "note: Git would sign your commits (commit.gpgSign), and this one is not signed, since larder signs with",
        );
        printer.note("SSH keys in files alone: `git commit --amend --no-edit -S` signs it, or give --signing-key-file");
    }
    Ok(Exit::Success)
}

#[cfg(test)]
mod tests {
    use super::{LONGEST_REASON, parse_reason, parse_until, today};

    #[test]
    fn a_hold_ends_today_or_later() {
        assert_eq!(parse_until(&today().to_string()), Ok(today()));
        assert!(parse_until("9999-12-31").is_ok());
        for text in ["2026-11-30", "friday", "2026-13-01", ""] {
            assert!(parse_until(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_reason_says_something_and_is_no_book() {
        assert_eq!(parse_reason(" the exam is on Friday\n").unwrap(), "the exam is on Friday");
        assert!(parse_reason("").is_err() && parse_reason(" \n\t").is_err());
        assert!(parse_reason(&"ä".repeat(LONGEST_REASON)).is_ok());
        assert!(parse_reason(&"ä".repeat(LONGEST_REASON + 1)).is_err());
    }
}
