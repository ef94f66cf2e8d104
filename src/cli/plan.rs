//! `larder plan`: what would be done to the target, or what changes between two revisions.

mod review;

use clap::Args;

use super::{
    CliError, Exit, Printer,
    json::{Problem as ShownProblem, plan as json},
    session::{self, Source},
};
use crate::{
    config::{ForgeOptions, OutputFormat, RegistryOptions, SourceOptions, TargetOptions},
    model::{
        batch::succeeded,
        failure::{Category, Problem},
        lock::LockedImage,
        manifest::Owner,
        name::{EnvironmentId, Name},
        plan::{Action, Change, Plan as ModelPlan},
    },
    pipeline::{compare, render_locked},
    stages::{lint::lint, load::Environments, lock::holds, render},
};

/// Show what `apply` would change, or what changes between two revisions
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  larder plan                                the current directory against the cluster
  larder plan --repo URL --branch next       a branch, before it is merged
  larder plan --target dir:manifests         against a directory of manifests
  larder plan --from main                    your uncommitted changes; needs no cluster
  larder plan --from main --resolve          with digests and sizes; a missing tag fails
  larder plan --from main --to HEAD --output markdown
  larder plan --from BASE --to HEAD --comment --pull-request 7 \\
    --forge gitea --forge-url https://git.example.com \\
    --forge-repo team/environments --forge-token-file token

Exit code 0: nothing to do. 2: there are changes. 1: something failed or is invalid.")]
pub struct Plan {
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: PlanFormat,
    #[command(flatten)]
    revisions: Revisions,
    #[command(flatten)]
    source: SourceOptions,
    #[command(flatten)]
    target: TargetOptions,
    #[command(flatten)]
    registry: RegistryOptions,
    #[command(flatten)]
    forge: ForgeOptions,
}

/// Two revisions, and where what changes between them is told.
#[derive(Debug, Args)]
#[command(next_help_heading = "Two revisions")]
struct Revisions {
    /// Compare this revision of the repository with --to.
    #[arg(long, value_name = "REV")]
    from: Option<String>,
    /// The later revision; by default the files of the current directory, or the branch of --repo.
    #[arg(long, value_name = "REV", requires = "from")]
    to: Option<String>,
    /// Resolve the references that the change touches, so that the plan shows digests, sizes and objects. It fails if one
    /// cannot be resolved.
    #[arg(long, requires = "from")]
    resolve: bool,
    /// Additional source: `server` adds node counts and a server-side dry run.
    #[arg(long, value_enum, value_name = "MODE", default_value_t, requires = "from")]
    dry_run: DryRun,
    /// Post the plan as a comment on --pull-request, or update the existing one.
    #[arg(long, requires = "from", requires = "pull_request", requires = "forge")]
    comment: bool,
    /// The pull request's number.
    #[arg(long, value_name = "NUMBER", requires = "comment")]
    pull_request: Option<u64>,
}

/// Additional source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum DryRun {
    /// Compare the two revisions only.
    #[default]
    None,
    /// Node counts and a dry run of the API server.
    Server,
}

/// How a plan is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum PlanFormat {
    /// Human-readable.
    #[default]
    Text,
    /// Machine-readable.
    Json,
    /// For a pull request; with --from.
    Markdown,
}

impl Plan {
    pub(super) async fn run(self, printer: &mut Printer) -> Result<Exit, CliError> {
        if self.revisions.from.is_some() {
            return review::run(self, printer).await;
        }
        let output = match self.output {
            PlanFormat::Text => OutputFormat::Text,
            PlanFormat::Json => OutputFormat::Json,
            PlanFormat::Markdown => {
                let problem = Problem::new(Category::Git, "--output markdown compares two revisions");
                return Err(problem.hint("give the earlier one with --from, for example --from main").into());
            }
        };
        let source = session::source(&self.source).await?;
        let environments = session::load(&source)?;
        lint(&source.snapshot, &environments).iter().for_each(|warning| printer.warning(warning));
        let target = session::target(&self.target).await?;
        let change = session::locked(&environments);
        let options = render::Options { instance: self.target.instance.clone() };
        let manifests = render_locked(&environments, &change, &options);
        let plan = compare(&target, &environments, &change, manifests, &session::revision(&source)).await?;
        let broken = session::report_broken(printer, &environments, &[]);
        match output {
            OutputFormat::Json => printer.document(&document(&source, &environments, &plan)),
            OutputFormat::Text => {
                print(printer, &environments, &plan);
                for (id, note) in notes(&environments) {
                    printer.remark(&id.to_string(), &note);
                }
            }
        }
        Ok(match (broken, plan.failures.is_empty() && plan.blocked.is_none(), plan.is_empty()) {
            (Exit::Success, true, true) => Exit::Success,
            (Exit::Success, true, false) => Exit::Changes,
            _ => Exit::Failure,
        })
    }
}

/// The held images of each environment that has some.
fn notes(environments: &Environments) -> impl Iterator<Item = (&EnvironmentId, Problem)> {
    succeeded(&environments.lock)
        .flat_map(|(id, lockfile)| holds::notes(id, lockfile).into_iter().map(move |note| (id, note)))
}

/// A plan against a target as it is printed.
pub fn document(source: &Source, environments: &Environments, plan: &ModelPlan) -> json::Plan {
    let image = |(id, name, entry): (&EnvironmentId, &Name, &LockedImage)| json::Image {
        environment: id.to_string(),
        image: name.to_string(),
        old: None,
        new: Some(json::Locked { reference: entry.reference.to_string(), digest: Some(entry.digest.to_string()) }),
        pull: Vec::new(),
    };
    let note = |(id, note): (&EnvironmentId, Problem)| json::Note {
        environment: id.to_string(),
        message: note.message,
        hint: note.hint,
    };
    let mut effect = json::Effect::from(plan);
    let broken = session::broken(environments);
    effect.problems.extend(broken.iter().flat_map(|(id, failure)| ShownProblem::of(id, failure)));
    json::Plan {
        to: json::Revision { commit: source.snapshot.commit().map(str::to_owned) },
        images: images(environments, plan).map(image).collect(),
        notes: notes(environments).map(note).collect(),
        effect,
        ..json::Plan::default()
    }
}

/// The locked images of environments of which an object is created or changed.
fn images<'a>(
    environments: &'a Environments,
    plan: &'a ModelPlan,
) -> impl Iterator<Item = (&'a EnvironmentId, &'a Name, &'a LockedImage)> {
    let writes = |change: &&Change| matches!(change.action, Action::Create | Action::Configure);
    let is_owner = move |id: &EnvironmentId| {
        plan.changes
            .iter()
            .filter(writes)
            .any(|change| matches!(&change.owner, Owner::Environment(owner) if owner == id))
    };
    let all = succeeded(&environments.lock).filter(move |(id, _)| is_owner(id));
    all.flat_map(|(id, lockfile)| lockfile.images.iter().map(move |(name, entry)| (id, name, entry)))
}

/// Prints a plan: a summary and the images, then diffs and what could not be planned.
pub fn print(printer: &mut Printer, environments: &Environments, plan: &ModelPlan) {
    printer.line(&summary(plan));
    for (id, name, entry) in images(environments, plan) {
        printer.line(&format!("{id} {name}: {} ({})", entry.reference, entry.digest.short()));
    }
    print_changes(printer, &plan.changes);
    for failure in plan.failures.values() {
        printer.failure(failure);
    }
    if let Some(blocked) = &plan.blocked {
        printer.problem(&blocked.problem);
    }
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
