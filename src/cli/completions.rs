//! `larder completions`: completions for a shell.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::{Cli, Exit, Printer};

/// Print completions for a shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  larder completions bash > /etc/bash_completion.d/larder
  larder completions zsh > ~/.zfunc/_larder")]
pub struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub(super) fn run(self, printer: &mut Printer) -> Exit {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "larder", &mut script);
        printer.text(&String::from_utf8_lossy(&script));
        Exit::Success
    }
}
