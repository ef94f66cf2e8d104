//! `larder plan`: what would be done to the target.

use std::collections::BTreeMap;

use clap::Args;
use serde::Serialize;

use super::{CliError, Exit, Printer, session};
use crate::{
    config::{OutputFormat, SourceOptions, TargetOptions},
    model::{
        failure::Failure,
        name::EnvironmentId,
        plan::{Action, Change, Plan as ModelPlan},
    },
    pipeline::{compare, render_locked},
    stages::render,
};

/// Show what `apply` would change: a unified diff of each object, by the server's own dry run
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  larder plan                                the folder you are in against the cluster
  larder plan --repo URL --branch next       a branch, before it is merged
  larder plan --target dir:manifests         against a folder of manifests

Exit code 0: nothing to do. 2: there are changes. 1: something failed.")]
pub struct Plan {
    #[command(flatten)]
    source: SourceOptions,
    #[command(flatten)]
    target: TargetOptions,
    /// How the plan is printed.
    #[arg(long, value_enum, default_value_t)]
    output: OutputFormat,
}

/// A plan as JSON, with the environments that have none.
#[derive(Serialize)]
struct Output<'a> {
    #[serde(flatten)]
    plan: &'a ModelPlan,
    broken: BTreeMap<&'a EnvironmentId, &'a Failure>,
}

impl Plan {
    pub(super) async fn run(self, printer: &mut Printer) -> Result<Exit, CliError> {
        let source = session::source(&self.source).await?;
        let environments = session::load(&source)?;
        environments.warnings.iter().for_each(|warning| printer.warning(warning));
        let target = session::target(&self.target).await?;
        let change = session::locked(&environments);
        let options = render::Options { instance: self.target.instance.clone() };
        let manifests = render_locked(&environments, &change, &options);
        let plan = compare(&target, &environments, &change, manifests, &session::revision(&source)).await?;
        let broken = session::report_broken(printer, &environments, &[]);
        match self.output {
            OutputFormat::Json => printer.json(&Output { plan: &plan, broken: session::broken(&environments) }),
            OutputFormat::Text => print(printer, &plan),
        }
        Ok(match (broken, plan.failures.is_empty() && plan.blocked.is_none(), plan.is_empty()) {
            (Exit::Success, true, true) => Exit::Success,
            (Exit::Success, true, false) => Exit::Changes,
            _ => Exit::Failure,
        })
    }
}

/// Prints a plan: diffs, then what could not be planned, then a summary.
pub fn print(printer: &mut Printer, plan: &ModelPlan) {
    print_changes(printer, &plan.changes);
    for failure in plan.failures.values() {
        printer.failure(failure);
    }
    if let Some(blocked) = &plan.blocked {
        printer.problem(&blocked.problem);
    }
    printer.line(&summary(plan));
}

/// Prints the diff of each object that changes.
pub fn print_changes<'a>(printer: &mut Printer, changes: impl IntoIterator<Item = &'a Change>) {
    for change in changes.into_iter().filter(|change| change.action != Action::Unchanged) {
        printer.diff(&change.diff);
    }
}

/// `2 to create, 1 to change, 0 to delete, 9 unchanged`.
fn summary(plan: &ModelPlan) -> String {
    let count = |action| plan.count(action);
    format!(
        "{} to create, {} to change, {} to delete, {} unchanged",
        count(Action::Create),
        count(Action::Configure),
        count(Action::Delete),
        count(Action::Unchanged)
    )
}
