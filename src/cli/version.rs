//! `larder version`: the release, and the commit that it was built from.

use std::sync::LazyLock;

use clap::Args;

use super::{Exit, Printer};

static VERSION: LazyLock<String> = LazyLock::new(|| {
    let release = env!("CARGO_PKG_VERSION");
    // Set when building, not by a build script: that would rebuild everything after each commit.
    option_env!("LARDER_COMMIT")
        .filter(|commit| !commit.is_empty())
        .map_or_else(|| release.to_owned(), |commit| format!("{release} ({commit})"))
});

/// The release, and its commit if the build was given one in `LARDER_COMMIT`.
pub fn version() -> &'static str {
    &VERSION
}

/// Print the version, with the Git commit if it is known
#[derive(Debug, Args)]
pub struct Version {}

impl Version {
    pub(super) fn run(self, printer: &mut Printer) -> Exit {
        printer.line(&format!("larder {}", version()));
        Exit::Success
    }
}
