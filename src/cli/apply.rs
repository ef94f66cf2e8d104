//! `larder apply`: brings the target to what is locked, once.

use clap::Args;
use tokio_util::sync::CancellationToken;

use super::{CliError, Exit, Printer, plan, session};
use crate::{
    config::{OutputFormat, SourceOptions, TargetOptions},
    io::cluster,
    model::{
        plan::{Action, Change, Outcome},
        snapshot::Origin,
    },
    pipeline::{compare, render_locked},
    stages::render,
};

/// Bring the target to what is locked, once; asks no registry and commits nothing
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  larder apply                          the folder you are in, uncommitted files included
  larder apply --repo URL               the tip of a repository
  larder apply --target dir:manifests   into a folder of manifests

Exit code 0: done, or nothing to do. 1: something failed; everything else was applied.")]
pub struct Apply {
    #[command(flatten)]
    source: SourceOptions,
    #[command(flatten)]
    target: TargetOptions,
    /// How the outcome is printed.
    #[arg(long, value_enum, default_value_t)]
    output: OutputFormat,
}

impl Apply {
    pub(super) async fn run(self, printer: &mut Printer) -> Result<Exit, CliError> {
        let source = session::source(&self.source).await?;
        let environments = session::load(&source)?;
        let target = session::target(&self.target).await?;
        let change = session::locked(&environments);
        let options = render::Options { instance: self.target.instance.clone() };
        let manifests = render_locked(&environments, &change, &options);
        let planned = compare(&target, &environments, &change, manifests, &session::revision(&source)).await?;
        if source.snapshot.origin == Origin::Folder {
            printer.note("note: applying files of a folder, which may not be committed");
        }
        let broken = session::report_broken(printer, &environments, &[]);
        match self.output {
            OutputFormat::Json => printer.json(&planned),
            OutputFormat::Text => plan::print(printer, &planned),
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

fn done(change: &Change) -> String {
    let what = match change.action {
        Action::Create => "created",
        Action::Configure => "changed",
        Action::Delete => "deleted",
        Action::Unchanged => "unchanged",
    };
    format!("{} {what}", change.id)
}
