//! `larder plan --from REV`: what changes between two revisions, printed or told in a pull request.

use super::{DryRun, Plan, PlanFormat, Revisions};
use crate::{
    cli::{CliError, Exit, Printer, session},
    config::{SourceOptions, Target},
    io::forge::{Posted, WhenAbsent},
    model::{
        failure::Failure,
        manifest::Manifests,
        snapshot::{Origin, Snapshot},
    },
    pipeline::{compare, render_locked},
    stages::{
        load::{self, Environments},
        render,
        review::{self, Review, Side, markdown, text},
    },
};

/// The longest Markdown that is printed, in bytes: what every forge takes.
const LIMIT: usize = 65_000;

/// One of the two revisions.
struct Revision {
    name: String,
    loaded: Result<(Environments, Manifests), Failure>,
}

pub(super) async fn run(plan: Plan, printer: &mut Printer) -> Result<Exit, CliError> {
    // A wrong flag is told before any work.
    let forge = plan.forge.open()?;
    let review = compute(&plan).await?;
    match plan.output {
        PlanFormat::Text => print(printer, &review),
        PlanFormat::Json => printer.json(&review),
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
    let path = plan.source.path().map(|path| format!("/{path}")).unwrap_or_default();
    markdown::marker(&format!("{}{path}", plan.target.instance))
}

async fn compute(plan: &Plan) -> Result<Review, CliError> {
    let Revisions { from, to, dry_run, .. } = &plan.revisions;
    let from = from.as_deref().unwrap_or_default();
    let options = render::Options { instance: plan.target.instance.clone() };
    let (former, later) = snapshots(&plan.source, from, to.as_deref()).await?;
    let (former, later) = (revision(&former, &options), revision(&later, &options));
    let names = (former.name.as_str(), later.name.as_str());
    let (environments, manifests) = match &later.loaded {
        Ok(loaded) => loaded,
        Err(failure) => return Ok(review::unreadable(failure, names)),
    };
    let from = former.loaded.as_ref().ok();
    let from = from.map(|(environments, manifests)| Side { environments, manifests });
    let to = Side { environments, manifests };
    let mut review = review::review(from, to, names);
    if *dry_run == DryRun::Server {
        let change = session::locked(environments);
        let target = session::target(&plan.target).await?;
        review.server = Some(compare(&target, environments, &change, manifests.clone(), &later.name).await?);
        if plan.target.target == Target::Cluster {
            review.count_nodes(to, &session::cluster(&plan.target).await?.nodes().await?);
        }
    }
    Ok(review)
}

/// The files at both revisions. Without `to`, the present files of the folder or the tip of `--repo`.
async fn snapshots(options: &SourceOptions, from: &str, to: Option<&str>) -> Result<(Snapshot, Snapshot), CliError> {
    let former = session::source_at(options, from).await?.snapshot;
    let later = match to {
        Some(to) => session::source_at(options, to).await?.snapshot,
        None => session::source(options).await?.snapshot,
    };
    Ok((former, later))
}

fn revision(snapshot: &Snapshot, options: &render::Options) -> Revision {
    let name = match &snapshot.origin {
        Origin::Commit(commit) => commit.chars().take(10).collect(),
        Origin::Folder => "the folder".to_owned(),
    };
    let loaded = load::load(snapshot).map(|environments| {
        let manifests = render_locked(&environments, &session::locked(&environments), options);
        (environments, manifests)
    });
    Revision { name, loaded }
}

fn print(printer: &mut Printer, review: &Review) {
    text::lines(review).iter().for_each(|line| printer.line(line));
    review.objects.iter().for_each(|object| printer.diff(&object.diff));
    review.problems.iter().for_each(|problem| printer.problem(problem));
    if let Some(blocked) = &review.blocked {
        printer.problem(&blocked.problem);
    }
    printer.line(&text::summary(review));
    if let Some(server) = &review.server {
        printer.line("the cluster's own dry run:");
        super::print(printer, server);
    }
}
