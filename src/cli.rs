//! The command line: one thin file per command, each `arguments → options → one library call → output`.

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
mod version;
mod who_ran;

pub use error::CliError;
pub use output::Printer;

/// GitOps image pre-puller for JupyterHub: pins tags to digests in Git, pre-pulls the images onto Kubernetes nodes.
#[derive(Debug, Parser)]
#[command(name = "larder", version = version::version(), max_term_width = 100, propagate_version = true)]
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
    Version(version::Version),
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

/// Reads the process's arguments, runs the command and prints an error if there is one.
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
    /// What is logged when nothing else is asked for: commands that print what they do need not log it as well.
    fn log_default(&self) -> &'static str {
        match self {
            Self::Run(verb) if !verb.is_once() => "info",
            // The story prints the problems itself.
            Self::Demo(_) => "error",
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
            Self::Version(verb) => Ok(verb.run(printer)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::command;

    #[test]
    fn help_lists_the_commands_own_flags_first_and_the_output_has_a_short_form() {
        for sub in command().get_subcommands() {
            let name = sub.get_name();
            let headings: Vec<_> = sub.get_opts().map(clap::Arg::get_help_heading).collect();
            let own = headings.iter().take_while(|heading| heading.is_none()).count();
            assert!(headings[own..].iter().all(Option::is_some), "{name}: {headings:?}");
            for output in sub.get_opts().filter(|arg| arg.get_id() == "output") {
                assert_eq!((output.get_short(), output.get_help_heading()), (Some('o'), None), "{name}");
            }
        }
    }

    #[test]
    fn only_commands_that_commit_have_flags_for_authors() {
        let has = |sub: &&clap::Command| sub.get_opts().any(|arg| arg.get_long() == Some("author-name"));
        let command = command();
        let found: Vec<_> = command.get_subcommands().filter(has).map(clap::Command::get_name).collect();
        assert_eq!(found, ["run", "hold", "release", "rollback"]);
    }

    #[test]
    fn examples_survive_copy_and_paste() {
        for sub in command().get_subcommands() {
            let text = sub.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in text.lines() {
                assert!(line.chars().count() <= 95, "{}: {line}", sub.get_name());
            }
        }
    }
}
