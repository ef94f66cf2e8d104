//! `larder run`: passes, one after the other, from the repository's tip to the target.

use std::{net::SocketAddr, time::Duration};

use clap::Args;
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::{CliError, Exit, Printer, plan, session};
use crate::{
    config::{
        CommitOptions, ForgeOptions, OutputFormat, RegistryOptions, SourceOptions, TargetOptions, WebhookOptions,
        parse_duration,
    },
    daemon::{self, Config, Listeners},
    io::git::Checkout,
    model::{
        failure::{Category, Problem},
        plan::{Action, Outcome},
        requests::Requests,
        settings,
        status::{Reason, State, Status},
    },
    pipeline::{LockMode, Pass, Step},
    stages::lock,
};

/// Run the controller: resolve, commit the lock, apply, prune, in a loop
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  larder run --repo https://git.example.com/team/environments.git --git-password-file token
  larder run --repo ssh://git@git.example.com/team/environments.git \\
    --ssh-key-file key --known-hosts-file known_hosts
  larder run --repo . --once --follow                    apply this repository's HEAD once
  larder run --repo URL --path clusters/eu --follow      apply what another larder locks
  larder run --repo URL --target dir:manifests --once    render for Argo CD or Flux
  larder run --repo URL --webhook-listen 0.0.0.0:8081 --webhook-secret-file secret
  larder run --repo URL --lock-mode branch --forge gitea --forge-url https://git.example.com \\
    --forge-repo team/environments --forge-token-file token

A repository on this machine is watched: commits are acted upon at once, uncommitted files are
checked. The result of each pass is stored in the ConfigMap larder-status, for `larder status`.
Exit code of --once: 0: everything succeeded. 1: something failed; the rest was applied.")]
pub struct Run {
    /// How lock changes get into the branch; overrides larder.yaml.
    #[arg(long, value_enum, value_name = "MODE", conflicts_with = "follow")]
    lock_mode: Option<settings::LockMode>,
    /// Git poll interval, with ±10% jitter.
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = parse_duration)]
    interval: Duration,
    /// Run a single pass and exit.
    #[arg(long)]
    once: bool,
    /// Apply only: never resolve tags or push.
    #[arg(long)]
    follow: bool,
    /// Serve /healthz, /readyz and /metrics on this address, for example 0.0.0.0:8080.
    #[arg(long, value_name = "ADDRESS:PORT", env = "LARDER_LISTEN", conflicts_with = "once")]
    listen: Option<SocketAddr>,
    /// Wait indefinitely before this step; for tests of crashes.
    #[arg(long, value_name = "STEP", hide = true)]
    halt_before: Option<Step>,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t, requires = "once")]
    output: OutputFormat,
    #[command(flatten)]
    source: SourceOptions,
    #[command(flatten)]
    commits: CommitOptions,
    #[command(flatten)]
    target: TargetOptions,
    #[command(flatten)]
    registry: RegistryOptions,
    #[command(flatten)]
    forge: ForgeOptions,
    #[command(flatten)]
    webhooks: WebhookOptions,
}

impl Run {
    /// Whether it ends after one pass.
    pub(super) fn is_once(&self) -> bool {
        self.once
    }

    pub(super) async fn run(self, printer: &mut Printer) -> Result<Exit, CliError> {
        if self.source.repo.is_none() {
            return Err(Problem::new(Category::Git, "`run` needs a Git repository: it deploys only committed files")
                .hint("give one with --repo, for example --repo . for the current one")
                .into());
        }
        let (repository, _cache) = session::open(&self.source, &self.commits, Checkout::AsConfigured)?;
        let config = Config {
            repository,
            target: session::target(&self.target).await?,
            registry_config: self.registry.registry_config,
            forge: self.forge.open()?,
            instance: self.target.instance,
            lock_mode: match self.lock_mode {
                _ if self.follow => LockMode::Follow,
                None => LockMode::Configured,
                Some(settings::LockMode::Commit) => LockMode::Commit,
                Some(settings::LockMode::Branch) => LockMode::Branch,
            },
            interval: self.interval,
            halt_before: self.halt_before,
        };
        let shutdown = shutdown_on_signal()?;
        if !self.once {
            let webhooks = self.webhooks.webhook_listen.zip(self.webhooks.webhook_secret_file);
            daemon::run(config, Listeners { health: self.listen, webhooks }, &shutdown).await?;
            return Ok(Exit::Success);
        }
        let pass = daemon::once(config, &shutdown).await?;
        print(printer, &pass, self.output);
        Ok(if pass.is_sound() { Exit::Success } else { Exit::Failure })
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
        tracing::info!("shutting down: finishing the in-flight write");
        shutdown.cancel();
        next(&mut terminate, &mut interrupt).await;
        std::process::exit(1);
    });
    Ok(token)
}

/// A pass as JSON: the status after it, and how many requests it sent.
#[derive(Serialize)]
struct Output<'a> {
    #[serde(flatten)]
    status: &'a Status,
    requests: Requests,
}

fn print(printer: &mut Printer, pass: &Pass, output: OutputFormat) {
    if output == OutputFormat::Json {
        return printer.json(&Output { status: &pass.status, requests: pass.requests });
    }
    pass.lock.moves.iter().for_each(|moved| printer.line(&lock::describe(moved)));
    pass.lock.holds.iter().for_each(|hold| printer.line(&lock::describe_hold(hold)));
    let done = pass.plan.changes.iter().zip(&pass.applied.outcomes);
    plan::print_changes(printer, done.filter(|(_, (_, outcome))| *outcome == Outcome::Done).map(|(change, _)| change));
    print_status(printer, &pass.status);
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

/// Prints each environment that is not applied, and the commit.
pub fn print_status(printer: &mut Printer, status: &Status) {
    for (id, environment) in status.environments.iter().filter(|(_, part)| part.state() != State::Applied) {
        printer.note(&format!("{id}: {}", environment.state().as_str()));
    }
    print_findings(printer, status);
    if let Some(commit) = &status.last_pass.lock_commit {
        printer.line(&format!("lock commit {commit}"));
    }
}

/// Prints all problems and notes.
pub fn print_findings(printer: &mut Printer, status: &Status) {
    for environment in status.environments.values() {
        // Why removals are blocked is printed once, below.
        let problems = environment.problems.iter().filter(|finding| finding.reason != Reason::RemovalBlocked);
        problems.for_each(|finding| printer.problem(&finding.problem));
    }
    for (id, environment) in &status.environments {
        environment.notes.iter().for_each(|note| printer.remark(&id.to_string(), &note.problem));
    }
    let tenants = status.tenants.values().flat_map(|tenant| &tenant.problems);
    tenants.chain(&status.problems).for_each(|finding| printer.problem(&finding.problem));
    for note in &status.notes {
        printer.line(&note.problem.message);
    }
}
