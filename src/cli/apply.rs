//! `larder apply`: brings the target to what is locked, once.

use clap::Args;
use tokio_util::sync::CancellationToken;

use super::{
    CliError, Exit, Printer, plan,
    session::{self, Source},
};
use crate::{
    config::{OutputFormat, SourceOptions, TargetOptions},
    io::cluster,
    model::{
        failure::{Category, Problem},
        plan::{Action, Change, Outcome},
    },
    pipeline::{compare, render_locked},
    stages::{changed, render},
};

/// Apply the locked state once, without contacting registries or committing
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  larder apply                          the current directory, if it has no uncommitted changes
  larder apply --uncommitted            the same, uncommitted changes included
  larder apply --repo URL               the tip of a repository
  larder apply --target dir:manifests   into a directory of manifests

Exit code 0: done, or nothing to do. 1: something failed; the rest was applied.")]
pub struct Apply {
    /// Apply the directory's files even if they differ from the last commit or are not in a Git repository.
    #[arg(long, conflicts_with = "repo")]
    uncommitted: bool,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
    #[command(flatten)]
    source: SourceOptions,
    #[command(flatten)]
    target: TargetOptions,
}

impl Apply {
    pub(super) async fn run(self, printer: &mut Printer) -> Result<Exit, CliError> {
        let source = self.files().await?;
        let environments = session::load(&source)?;
        let target = session::target(&self.target).await?;
        let change = session::locked(&environments);
        let options = render::Options { instance: self.target.instance.clone() };
        let manifests = render_locked(&environments, &change, &options);
        let planned = compare(&target, &environments, &change, manifests, &session::revision(&source)).await?;
        let broken = session::report_broken(printer, &environments, &[]);
        match self.output {
            OutputFormat::Json => {
                printer.document(&plan::document(&source, &environments, &planned));
            }
            OutputFormat::Text => plan::print(printer, &environments, &planned),
        }
        let applied = cluster::carry_out(&target, &planned, &CancellationToken::new()).await;
        let mut exit = broken;
        for (change, outcome) in &applied.outcomes {
            match outcome {
                Outcome::Done => printer.note(&done(change)),
                Outcome::Unchanged => {}
                Outcome::NotAttempted => printer.note(&format!("{}: not attempted", change.id)),
                Outcome::Failed(problem) => {
                    printer.problem(problem);
                    exit = Exit::Failure;
                }
            }
        }
        if !applied.failures.is_empty() || applied.blocked.is_some() {
            exit = Exit::Failure;
        }
        Ok(exit)
    }
}

impl Apply {
    /// What is committed, and what is not only where that is asked for: nothing else can be asked of Git later.
    async fn files(&self) -> Result<Source, CliError> {
        let source = session::source(&self.source).await?;
        if self.uncommitted || source.snapshot.commit().is_some() {
            return Ok(source);
        }
        let refuse = |message: String| {
            let hint = "commit first, or apply what is not committed with --uncommitted";
            CliError::from(Problem::new(Category::Git, message).hint(hint))
        };
        let committed = match session::source_at(&self.source, "HEAD").await {
            Ok(committed) => committed,
            Err(error) => return Err(refuse(format!("it is not known what is committed: {}", error.0))),
        };
        let mut differing = changed::paths(&committed.snapshot, &source.snapshot).into_iter();
        match (differing.next(), differing.count()) {
            (None, _) => Ok(committed),
            (Some(path), 0) => Err(refuse(format!("{path} has uncommitted changes"))),
            (Some(path), more) => Err(refuse(format!("{path} and {more} more have uncommitted changes"))),
        }
    }
}

fn done(change: &Change) -> String {
    let what = match change.action {
        Action::Create => "created",
        Action::Configure => "changed",
        Action::Delete => "deleted",
        Action::Unchanged => "unchanged",
    };
    format!("{} {what}", change.id)
}
