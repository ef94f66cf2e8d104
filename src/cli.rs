//! The command line: one thin file a verb, each `arguments → options → one library call → output`.

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::config::LogOptions;

mod apply;
mod at;
mod audit;
mod blame;
mod completions;
mod demo;
mod diff;
mod error;
mod history;
mod hold;
mod import;
mod init;
pub mod json;
mod lock;
mod output;
mod plan;
mod render;
mod revisions;
mod run;
mod schema;
mod secret;
mod session;
mod status;
pub mod template_worker;
mod validate;
mod verify;
mod who_ran;

pub use error::CliError;
pub use output::Printer;

/// Keeps every Kubernetes node stocked with the container images that its environments need, and Git as the ledger of
/// which image that was.
#[derive(Debug, Parser)]
#[command(name = "larder", version, max_term_width = 100, propagate_version = true)]
pub struct Cli {
    #[command(flatten)]
    log: LogOptions,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Init(init::Init),
    Import(import::Import),
    Validate(validate::Validate),
    Lock(lock::Lock),
    Render(render::Render),
    Plan(plan::Plan),
    Apply(apply::Apply),
    Run(Box<run::Run>),
    Status(status::StatusCommand),
    History(history::History),
    Hold(Box<hold::Hold>),
    Release(Box<hold::Release>),
    Rollback(Box<hold::Rollback>),
    Secret(Box<secret::Secret>),
    Schema(schema::Schema),
    At(at::At),
    Blame(blame::Blame),
    WhoRan(who_ran::WhoRan),
    Diff(diff::Diff),
    Verify(Box<verify::Verify>),
    Demo(demo::Demo),
    Completions(completions::Completions),
}

/// How a command ended, as an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0: done, or nothing to do.
    Success,
    /// 1: something failed; it has been printed.
    Failure,
    /// 2: `plan` and `lock --check` found changes; `validate --strict` found nothing but warnings.
    Changes,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Success => 0,
            Exit::Failure => 1,
            Exit::Changes => 2,
        })
    }
}

/// The whole command line, for what is generated from it.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Reads the process's arguments, runs the verb and prints an error if there is one.
pub fn main() -> ExitCode {
    if let Some(exit) = template_worker::serve() {
        return exit;
    }
    template_worker::install();
    let mut printer = Printer::from_terminal();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // clap's own code for a wrong usage is 2, which means "changes" here.
            let exit = if error.use_stderr() { Exit::Failure } else { Exit::Success };
            return match error.print() {
                Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                    printer.error(&output::cannot_print(&error));
                    Exit::Failure
                }
                _ => exit,
            }
            .into();
        }
    };
    cli.log.install(cli.command.log_default());
    // An error means that a provider is there already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            printer.error(&CliError::io("the asynchronous runtime cannot start", &error));
            return Exit::Failure.into();
        }
    };
    let result = runtime.block_on(cli.command.run(&mut printer));
    // A blocking call to a peer that does not answer must not hold the exit back.
    runtime.shutdown_background();
    match result.and_then(|exit| printer.finish().map(|()| exit)) {
        Ok(exit) => exit.into(),
        Err(error) => {
            printer.error(&error);
            Exit::Failure.into()
        }
    }
}

impl Command {
    /// What is logged when nothing else is asked for: verbs that print what they do need not log it as well.
    fn log_default(&self) -> &'static str {
        match self {
            Self::Run(verb) if !verb.is_once() => "info",
            _ => "warn",
        }
    }

    async fn run(self, printer: &mut Printer) -> Result<Exit, CliError> {
        match self {
            Self::Init(verb) => verb.run(printer),
            Self::Import(verb) => verb.run(printer),
            Self::Validate(verb) => verb.run(printer).await,
            Self::Lock(verb) => verb.run(printer).await,
            Self::Render(verb) => verb.run(printer).await,
            Self::Plan(verb) => verb.run(printer).await,
            Self::Apply(verb) => verb.run(printer).await,
            Self::Run(verb) => verb.run(printer).await,
            Self::Status(verb) => verb.run(printer).await,
            Self::History(verb) => verb.run(printer).await,
            Self::Hold(verb) => verb.run(printer).await,
            Self::Release(verb) => verb.run(printer).await,
            Self::Rollback(verb) => verb.run(printer).await,
            Self::Secret(verb) => verb.run(printer).await,
            Self::Schema(verb) => verb.run(printer),
            Self::At(verb) => verb.run(printer).await,
            Self::Blame(verb) => verb.run(printer).await,
            Self::WhoRan(verb) => verb.run(printer).await,
            Self::Diff(verb) => verb.run(printer).await,
            Self::Verify(verb) => verb.run(printer).await,
            Self::Demo(verb) => verb.run(printer).await,
            Self::Completions(verb) => Ok(verb.run(printer)),
        }
    }
}
