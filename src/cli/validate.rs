//! `larder validate`: checks the files without a cluster or a registry.

use clap::{Args, ValueEnum};

use super::{CliError, Exit, Printer, json, session};
use crate::{
    config::SourceOptions,
    diagnostics::{Severity, github, sarif},
    io::folder,
    model::{
        batch::{failed, succeeded},
        failure::Problem,
        snapshot::Snapshot,
        text::plural,
    },
    stages::{
        changed::{self, Affected},
        lint::lint,
        load::load,
    },
};

/// Check larder.yaml, environments and lockfiles; needs neither cluster nor registry
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  larder validate                           the current directory, uncommitted files included
  larder validate --from origin/main        what a pull request changes
  larder validate --rev HEAD~1              a commit of the current repository
  larder validate --repo URL                the tip of a repository
  larder validate --output github           annotations, in GitHub Actions
  larder validate --output sarif            for code scanning

Exit code 0: valid. 1: there are errors. 2: with --strict, there are only warnings.")]
pub struct Validate {
    /// The files of this commit, branch or tag of the repository, instead of the directory or the branch's tip.
    #[arg(long, value_name = "REV")]
    rev: Option<String>,
    /// Check only what changed since this commit, branch or tag; everything, if larder.yaml or a template changed.
    #[arg(long, value_name = "REV")]
    from: Option<String>,
    /// Exit with code 2 if there are warnings.
    #[arg(long)]
    strict: bool,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    #[command(flatten)]
    source: SourceOptions,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Human-readable.
    #[default]
    Text,
    /// Machine-readable.
    Json,
    /// Workflow commands that GitHub, Forgejo and Gitea turn into annotations.
    Github,
    /// SARIF 2.1.0, for code scanning and editors.
    Sarif,
}

/// What was found.
#[derive(Debug, Default, PartialEq)]
struct Findings {
    valid: usize,
    /// Dot files under `environments/`.
    ignored: usize,
    errors: Vec<Problem>,
    warnings: Vec<Problem>,
}

impl Validate {
    pub(super) async fn run(self, printer: &mut Printer) -> Result<Exit, CliError> {
        let source = match &self.rev {
            Some(revision) => session::source_at(&self.source, revision).await?,
            None => session::source(&self.source).await?,
        };
        let affected = match &self.from {
            Some(revision) => {
                let before = session::source_at(&self.source, revision).await?;
                changed::affected(&before.snapshot, &source.snapshot)
            }
            None => Affected::All,
        };
        let findings = findings(&source.snapshot, &affected);
        print(printer, &findings, self.output, &self.folder());
        Ok(match (findings.errors.is_empty(), findings.warnings.is_empty() || !self.strict) {
            (false, _) => Exit::Failure,
            (true, false) => Exit::Changes,
            (true, true) => Exit::Success,
        })
    }

    /// Where the environment repository is in the whole repository, for readers that know only that one.
    fn folder(&self) -> String {
        if self.source.repo.is_some() {
            return self.source.path.as_deref().unwrap_or_default().to_owned();
        }
        let root = session::current_folder().ok().and_then(|start| folder::find_root(&start).ok());
        let found = root.and_then(|root| session::local_repository(&root).ok());
        found.and_then(|(_, path)| path).unwrap_or_default()
    }
}

fn findings(snapshot: &Snapshot, affected: &Affected) -> Findings {
    let environments = match load(snapshot) {
        Ok(environments) => environments,
        Err(failure) => return Findings { errors: failure.problems().to_vec(), ..Findings::default() },
    };
    let files = failed(&environments.environments).flat_map(|(_, failure)| failure.problems());
    let locks = failed(&environments.lock).flat_map(|(_, failure)| failure.problems());
    let errors = files.chain(locks).chain(&environments.strays);
    let concerned = |problem: &&Problem| affected.concerns(problem);
    Findings {
        valid: succeeded(&environments.environments).filter(|(_, found)| affected.covers(&found.path)).count(),
        ignored: environments.ignored,
        errors: errors.filter(concerned).cloned().collect(),
        warnings: lint(snapshot, &environments).into_iter().filter(|problem| affected.concerns(problem)).collect(),
    }
}

fn print(printer: &mut Printer, findings: &Findings, output: Output, folder: &str) {
    let Findings { valid, ignored, errors, warnings } = findings;
    let warned = warnings.iter().map(|problem| (Severity::Warning, problem));
    let all = warned.chain(errors.iter().map(|problem| (Severity::Error, problem)));
    let summary = summary(findings);
    match output {
        Output::Json => {
            let shown = |problems: &[Problem], severity| {
                problems.iter().map(|problem| json::Problem::new(problem, severity)).collect()
            };
            printer.document(&json::validation::Validation {
                valid: *valid,
                ignored: *ignored,
                errors: shown(errors, Severity::Error),
                warnings: shown(warnings, Severity::Warning),
            });
        }
        Output::Sarif => printer.json(&sarif::log(all, folder)),
        Output::Github => {
            all.for_each(|(severity, problem)| printer.line(&github::annotation(problem, severity, folder)));
            printer.line(&summary);
        }
        Output::Text => {
            warnings.iter().for_each(|problem| printer.warning(problem));
            errors.iter().for_each(|problem| printer.problem(problem));
            printer.line(&summary);
        }
    }
}

/// `5 environments are valid, 1 error, 0 warnings`.
fn summary(findings: &Findings) -> String {
    let Findings { valid, ignored, errors, warnings } = findings;
    let verb = if *valid == 1 { "is" } else { "are" };
    let mut text = format!(
        "{} {verb} valid, {}, {}",
        plural(*valid, "environment"),
        plural(errors.len(), "error"),
        plural(warnings.len(), "warning")
    );
    if *ignored > 0 {
        text += &format!("; {} ignored", plural(*ignored, "dot file"));
    }
    text
}
