//! `larder plan --from REV`: what changes between two revisions, printed or told in a pull request.

use super::{DryRun, Plan, PlanFormat, Revisions};
use crate::{
    cli::{CliError, Exit, Printer, json::plan as json, session},
    config::{SourceOptions, Target},
    io::forge::{Posted, WhenAbsent},
    model::{resolution::Resolution, snapshot::Snapshot},
    pipeline::{compare, today},
    stages::{
        load::{self, Environments},
        lock::rename,
        render,
        review::{self, Registries, Review, Side, markdown, text},
    },
};

/// The longest Markdown that is printed, in bytes: what every forge takes.
const LIMIT: usize = 65_000;

pub(super) async fn run(plan: Plan, printer: &mut Printer) -> Result<Exit, CliError> {
    // A wrong flag is told before any work.
    let forge = plan.forge.open()?;
    let Compared { review, from, to, environments } = compute(&plan).await?;
    match plan.output {
        PlanFormat::Text => print(printer, &review, environments.as_ref()),
        PlanFormat::Json => printer.document(&json::Plan::between(from, to, &review)),
        PlanFormat::Markdown => printer.text(&markdown::markdown(&review, &marker(&plan), LIMIT)),
    }
    if let (Some(forge), Some(number), true) = (forge, plan.revisions.pull_request, plan.revisions.comment) {
        let marker = marker(&plan);
        let body = markdown::markdown(&review, &marker, forge.longest_text());
        // A change that concerns no node gets no comment, unless there is one that is wrong now.
        let absent = if review.is_empty() && review.is_sound() { WhenAbsent::Leave } else { WhenAbsent::Create };
        let posted = forge.comment(number, &marker, &body, absent).await?;
        printer.note(match posted {
            Posted::Created => "comment created",
            Posted::Updated => "comment updated",
            Posted::Unchanged => "comment unchanged",
            Posted::Absent => "no comment: nothing changes",
        });
    }
    Ok(match (review.is_sound(), review.is_empty()) {
        (false, _) => Exit::Failure,
        (true, true) => Exit::Success,
        (true, false) => Exit::Changes,
    })
}

/// Several larders of one repository each have a comment of their own.
fn marker(plan: &Plan) -> String {
    let path = plan.source.path.as_deref().map(|path| format!("/{path}")).unwrap_or_default();
    markdown::marker(&format!("{}{path}", plan.target.instance))
}

/// What changes, and between which commits.
struct Compared {
    review: Review,
    from: json::Revision,
    to: json::Revision,
    /// The environments of `to`, if they can be read.
    environments: Option<Environments>,
}

async fn compute(plan: &Plan) -> Result<Compared, CliError> {
    let Revisions { from, to, dry_run, resolve, .. } = &plan.revisions;
    let options = render::Options { instance: plan.target.instance.clone() };
    let (former, later) = snapshots(&plan.source, from.as_deref().unwrap_or_default(), to.as_deref()).await?;
    let names = (name(&former), name(&later));
    let names = (names.0.as_str(), names.1.as_str());
    let commit = |snapshot: &Snapshot| json::Revision { commit: snapshot.commit().map(str::to_owned) };
    let (from, to) = (commit(&former), commit(&later));
    let files = later;
    let later = match load::load(&files) {
        Ok(loaded) => loaded,
        Err(failure) => {
            return Ok(Compared { review: review::unreadable(&failure, names), from, to, environments: None });
        }
    };
    let renames = rename::between(&former, &files, &later.environments, &later.lock);
    let former = load::load(&former).ok();
    let (before, after) = if *resolve {
        let questions = review::questions(former.as_ref(), &later);
        let answers = session::resolve(questions, &later.settings, &plan.target, &plan.registry).await?;
        (Registries::Asked(Resolution::new()), Registries::Asked(answers))
    } else {
        (Registries::NotAsked, Registries::NotAsked)
    };
    let former = former.map(|loaded| Side::new(loaded, &before, &options, today(), Vec::new()));
    let later = Side::new(later, &after, &options, today(), renames);
    let mut review = review::review(former.as_ref(), &later, names);
    if *dry_run == DryRun::Server {
        let target = session::target(&plan.target).await?;
        let manifests = later.manifests.clone();
        review.server = Some(compare(&target, &later.environments, &later.lock(), manifests, names.1).await?);
        if plan.target.target == Target::Cluster {
            review.count_nodes(&later, &session::cluster(&plan.target).await?.nodes().await?);
        }
    }
    Ok(Compared { review, from, to, environments: Some(later.environments) })
}

/// The files at both revisions. Without `to`, the present files of the directory or the tip of `--repo`.
async fn snapshots(options: &SourceOptions, from: &str, to: Option<&str>) -> Result<(Snapshot, Snapshot), CliError> {
    let former = session::source_at(options, from).await?.snapshot;
    let later = match to {
        Some(to) => session::source_at(options, to).await?.snapshot,
        None => session::source(options).await?.snapshot,
    };
    Ok((former, later))
}

/// What a revision is called in headlines and diffs.
fn name(snapshot: &Snapshot) -> String {
    snapshot.commit().map_or_else(|| "the directory".to_owned(), |commit| commit.chars().take(10).collect())
}

fn print(printer: &mut Printer, review: &Review, environments: Option<&Environments>) {
    printer.line(&text::summary(review));
    text::lines(review).iter().for_each(|line| printer.line(line));
    review.objects.iter().for_each(|object| printer.diff(&object.diff));
    review.problems.iter().for_each(|problem| printer.problem(problem));
    if let Some(blocked) = &review.blocked {
        printer.problem(&blocked.problem);
    }
    if let (Some(server), Some(environments)) = (&review.server, environments) {
        printer.line("the cluster's own dry run:");
        super::print(printer, environments, server);
    }
}
