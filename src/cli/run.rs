//! `larder run`: passes, one after the other, from the repository's tip to the target.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use clap::Args;
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::{CliError, Exit, Printer, plan, session};
use crate::{
    announce::Announcer,
    config::{
        ForgeOptions, OutputFormat, RegistryOptions, SourceOptions, Target, TargetOptions, WebhookOptions,
        parse_duration,
    },
    controller::Controller,
    io::{credentials::StoredCredentials, git::CommitId, target::AnyTarget},
    local,
    model::{
        failure::{Category, Problem},
        plan::{Action, Outcome},
        report::{Condition, PassReport, Requests},
    },
    pipeline::{LockMode, Options, Pass, RunError, Step, World},
    server::{self, Hooks, Metrics, SecretFile},
    stages::{lock, render},
    wake::Wake,
};

/// Run passes: resolve, commit the lock, apply, prune, again and again
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  larder run --repo https://git.example.com/team/environments.git --git-password-file token
  larder run --repo ssh://git@git.example.com/team/environments.git --ssh-key-file key --known-hosts-file known_hosts
  larder run --repo . --once --follow                    apply what is committed in the repository you are in
  larder run --repo URL --path clusters/eu --follow      apply what another larder locks
  larder run --repo URL --target dir:manifests --once    render for Argo CD or Flux
  larder run --repo URL --webhook-listen 0.0.0.0:8081 --webhook-secret-file secret     look as soon as something moves
  larder run --repo URL --lock-mode branch --forge gitea --forge-url https://git.example.com \
    --forge-repo team/environments --forge-token-file token     propose the lock, tell how commits stand

A repository on this machine is watched: commits are acted upon at once, files that are saved and not committed are checked.
A pass is noted in the ConfigMap larder-status, for `larder status`.
Exit code of --once: 0 when all went well, 1 when something failed. Everything else still went on.")]
pub struct Run {
    #[command(flatten)]
    source: SourceOptions,
    #[command(flatten)]
    target: TargetOptions,
    #[command(flatten)]
    registry: RegistryOptions,
    #[command(flatten)]
    forge: ForgeOptions,
    #[command(flatten)]
    webhooks: WebhookOptions,
    /// How lock changes get into the branch; by default as larder.yaml says.
    #[arg(long, value_enum, value_name = "MODE", conflicts_with = "follow")]
    lock_mode: Option<LockModeOption>,
    /// Time between two looks at the branch's tip, a tenth more or less.
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = parse_duration)]
    interval: Duration,
    /// Run one pass and end.
    #[arg(long)]
    once: bool,
    /// Apply what is locked; ask no registry and push nothing.
    #[arg(long)]
    follow: bool,
    /// Serve /healthz, /readyz and /metrics here, for example 0.0.0.0:8080.
    #[arg(long, value_name = "ADDRESS:PORT", env = "LARDER_LISTEN", conflicts_with = "once")]
    listen: Option<SocketAddr>,
    /// Wait for ever before this step; for tests of crashes.
    #[arg(long, value_name = "STEP", hide = true)]
    halt_before: Option<Step>,
    /// How the pass of --once is printed.
    #[arg(long, value_enum, default_value_t, requires = "once")]
    output: OutputFormat,
}

/// How lock changes get into the branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum LockModeOption {
    /// They are pushed to the branch itself.
    Commit,
    /// They are proposed from a branch of larder's own, by one pull request where --forge names a forge.
    Branch,
}

impl Run {
    /// Whether it ends after one pass.
    pub(super) fn is_once(&self) -> bool {
        self.once
    }

    pub(super) async fn run(self, printer: &mut Printer) -> Result<Exit, CliError> {
        if self.source.repo.is_none() {
            return Err(Problem::new(
                Category::Git,
                "`run` needs a Git repository: nothing reaches a cluster otherwise",
            )
            .hint("give one with --repo, for example --repo . for the one that you are in")
            .into());
        }
        let (repository, _cache) = session::repository(&self.source)?;
        repository.check_keys().await.map_err(Problem::from)?;
        // The first look at the repository does not wait for the cluster.
        let target = session::target(&self.target).await?;
        let secrets = match &target {
            AnyTarget::Kube(cluster) => Some(cluster.clone()),
            AnyTarget::Directory(_) => None,
        };
        let secrets_cluster = secrets.clone();
        let credentials = StoredCredentials::new(secrets, self.registry.registry_config.as_deref())?;
        let options = Options {
            render: render::Options { instance: self.target.instance.clone() },
            lock_mode: match self.lock_mode {
                _ if self.follow => LockMode::Follow,
                None => LockMode::Configured,
                Some(LockModeOption::Commit) => LockMode::Commit,
                Some(LockModeOption::Branch) => LockMode::Branch,
            },
            halt_before: self.halt_before,
        };
        let shutdown = shutdown_on_signal()?;
        let metrics = Arc::new(Metrics::new(self.interval.saturating_mul(10).max(Duration::from_secs(600))));
        let forge = self.forge.open()?;
        let mut announcer = forge.clone().map(|forge| {
            let cluster = secrets_cluster.clone();
            Announcer::new(forge, cluster, options.render.clone())
        });
        let world = World { repository, cluster: target, credentials, forge, options };
        if self.once {
            let mut controller = Controller::new(world, self.interval, metrics);
            let pass = controller.once(&shutdown).await?;
            if let Some(announcer) = &mut announcer {
                announcer.announce(&pass).await;
            }
            print(printer, &pass, self.output);
            return Ok(if pass.is_sound() { Exit::Success } else { Exit::Failure });
        }
        if let Some(address) = self.listen {
            let bound = server::serve(address, metrics.clone(), shutdown.clone())
                .await
                .map_err(|error| CliError::io(format!("--listen {address}"), &error))?;
            tracing::info!(address = %bound, "listening");
        }
        let wake = Wake::default();
        self.webhooks.serve(&wake, &metrics, &shutdown).await?;
        local::watch(&world.repository, wake.clone(), world.options.render.clone(), &shutdown);
        if matches!(self.target.target, Target::Cluster) {
            world.cluster.watch(&shutdown).await;
        }
        let mut announcing = announcer.map(|announcer| announcer.start(&shutdown));
        let observe = |tip: Option<&CommitId>, result: &Result<Pass, RunError>| {
            log(result);
            if let Some(announcing) = &mut announcing {
                announcing.pass_ended(tip, result);
            }
        };
        Controller::new(world, self.interval, metrics).with_news(wake).run(&shutdown, observe).await;
        tracing::info!("ended");
        Ok(Exit::Success)
    }
}

impl WebhookOptions {
    /// Takes webhooks, if that is wanted.
    async fn serve(self, wake: &Wake, metrics: &Arc<Metrics>, shutdown: &CancellationToken) -> Result<(), CliError> {
        let (Some(address), Some(file)) = (self.webhook_listen, self.webhook_secret_file) else { return Ok(()) };
        let secrets = SecretFile::new(file);
        secrets.check().await?;
        let bound = Hooks::new(secrets, wake.clone(), metrics.clone())
            .serve(address, shutdown.clone())
            .await
            .map_err(|error| CliError::io(format!("--webhook-listen {address}"), &error))?;
        tracing::info!(address = %bound, "taking webhooks");
        Ok(())
    }
}

/// A token that is cancelled by SIGTERM or SIGINT. A second signal ends the process at once, as it would without us.
fn shutdown_on_signal() -> Result<CancellationToken, CliError> {
    let token = CancellationToken::new();
    let listen = |kind| signal(kind).map_err(|error| CliError::io("signals cannot be received", &error));
    let (mut terminate, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    let shutdown = token.clone();
    tokio::spawn(async move {
        let next = async |terminate: &mut tokio::signal::unix::Signal, interrupt: &mut tokio::signal::unix::Signal| {
            tokio::select! { _ = terminate.recv() => {} _ = interrupt.recv() => {} }
        };
        next(&mut terminate, &mut interrupt).await;
        tracing::info!("ending: the present write is finished, the rest is left");
        shutdown.cancel();
        next(&mut terminate, &mut interrupt).await;
        std::process::exit(1);
    });
    Ok(token)
}

/// Logs what a pass came to: each environment that is not well, with its reasons.
fn log(result: &Result<Pass, RunError>) {
    let report = match result {
        Err(error) => {
            for problem in error.0.problems() {
                tracing::error!(category = problem.category.as_str(), "{problem}");
            }
            return;
        }
        Ok(pass) => &pass.report,
    };
    for (environment, part) in &report.environments {
        for problem in &part.problems {
            tracing::warn!(%environment, condition = ?part.condition, category = problem.category.as_str(), "{problem}");
        }
        for note in &part.notes {
            tracing::info!(%environment, "{note}");
        }
    }
    for problem in report.strays.iter().chain(&report.blocked) {
        tracing::warn!(category = problem.category.as_str(), "{problem}");
    }
    for (tenant, problems) in &report.tenants {
        for problem in problems {
            tracing::warn!(%tenant, category = problem.category.as_str(), "{problem}");
        }
    }
}

/// A pass as JSON: its report, and what it has asked.
#[derive(Serialize)]
struct Output<'a> {
    #[serde(flatten)]
    report: &'a PassReport,
    requests: Requests,
}

fn print(printer: &mut Printer, pass: &Pass, output: OutputFormat) {
    if output == OutputFormat::Json {
        return printer.json(&Output { report: &pass.report, requests: pass.requests });
    }
    pass.lock.moves.iter().for_each(|moved| printer.line(&lock::describe(moved)));
    pass.lock.holds.iter().for_each(|hold| printer.line(&lock::describe_hold(hold)));
    let done = pass.plan.changes.iter().zip(&pass.applied.outcomes);
    plan::print_changes(printer, done.filter(|(_, (_, outcome))| *outcome == Outcome::Done).map(|(change, _)| change));
    print_report(printer, &pass.report);
    printer.line(&summary(pass));
}

/// `2 created, 1 changed, 0 deleted, 9 unchanged`.
pub fn summary(pass: &Pass) -> String {
    let done = |action| pass.applied.count(action);
    let Requests { registry, target } = pass.requests;
    let outcomes = || pass.applied.outcomes.iter().map(|(_, outcome)| outcome);
    let failed = outcomes().filter(|outcome| matches!(outcome, Outcome::Failed(_))).count();
    let not_attempted = outcomes().filter(|outcome| **outcome == Outcome::NotAttempted).count();
    let rest = match (failed, not_attempted) {
        (0, 0) => String::new(),
        (failed, not_attempted) => format!(", {failed} failed, {not_attempted} not attempted"),
    };
    format!(
        "{} created, {} changed, {} deleted, {} unchanged{rest}; {registry} registry and {target} API requests",
        done(Action::Create),
        done(Action::Configure),
        done(Action::Delete),
        done(Action::Unchanged)
    )
}

/// Prints what is not well, environment by environment, and the commit.
pub fn print_report(printer: &mut Printer, report: &PassReport) {
    for (environment, part) in report.environments.iter().filter(|(_, part)| part.condition != Condition::Applied) {
        printer.note(&format!("{environment}: {:?}", part.condition));
        // Why removals are blocked is said once, below.
        if part.condition == Condition::Blocked {
            continue;
        }
        part.problems.iter().for_each(|problem| printer.problem(problem));
    }
    for (environment, part) in &report.environments {
        part.notes.iter().for_each(|note| printer.remark(&environment.to_string(), note));
    }
    let rest = report.strays.iter().chain(&report.lock_problem).chain(&report.blocked);
    for problem in report.tenants.values().flatten().chain(rest) {
        printer.problem(problem);
    }
    if let Some(place) = &report.lock_proposal {
        printer.line(&format!("lock changes wait to be merged: {place}"));
    }
    if let Some(commit) = &report.lock_commit {
        printer.line(&format!("lock commit {commit}"));
    }
}
