//! `larder import`: what other image pullers are told becomes environments.

use std::{
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use clap::Args;
use serde::Serialize;

use super::{CliError, Exit, Printer};
use crate::{
    config::OutputFormat,
    example,
    io::folder,
    model::{
        failure::{Category, Problem},
        name::{DEFAULT_TENANT, Name},
        settings::Settings,
        text::plural,
    },
    stages::{
        import::{Format, Imported, Input, Line, import},
        load,
    },
};

/// Import environments from another tool's image-puller configuration
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  helm get values hub | larder import zero-to-jupyterhub - --into envs --tenant research
  larder import image-cache caches.yaml --into environments
  larder import image-pull-job jobs/*.yaml --into environments

It reports what was imported, and what was skipped and why. Existing files whose content
differs are not overwritten. Importing twice changes nothing.

Exit code 0: done. 1: a file could not be read, or exists with different content.")]
pub struct Import {
    /// What the files are: zero-to-jupyterhub, jupyter-image-puller, submarine-environment, image-cache (kube-fledged),
    /// image-pull-job (OpenKruise), image-puller (Che) or tljh-repo2docker.
    #[arg(value_name = "FROM")]
    format: Format,
    /// The files; `-` is standard input. Each file is imported on its own: merge a hub's values files first (`helm get
    /// values`).
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The tenant that gets the environments.
    #[arg(long, value_name = "NAME", default_value = DEFAULT_TENANT)]
    tenant: Name,
    /// The environment repository's directory. The pools and the tenant's limits in its larder.yaml are used; without
    /// one, a minimal one is created.
    #[arg(long, value_name = "DIR")]
    into: PathBuf,
    /// Overwrite existing files whose content differs.
    #[arg(long)]
    force: bool,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Made,
    Changed,
    Unchanged,
    Refused,
}

#[derive(Serialize)]
struct Written {
    path: String,
    state: State,
}

#[derive(Serialize)]
struct Results<'a> {
    files: Vec<Written>,
    report: &'a [Line],
    errors: Vec<Problem>,
}

impl Import {
    pub(super) fn run(self, printer: &mut Printer) -> Result<Exit, CliError> {
        let settings = self.settings()?;
        let inputs = self.files.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
        let imported = import(self.format, &inputs, &self.tenant, settings.as_ref());
        let mut files = Vec::new();
        if settings.is_none() && !imported.files.is_empty() {
            files.extend(self.begin()?);
        }
        let mut errors = imported.problems.clone();
        for (path, text) in &imported.files {
            let state = self.write(path, text)?;
            if state == State::Refused {
                errors.push(
                    Problem::new(
                        Category::Io,
                        "the file already exists with different content and was not overwritten",
                    )
                    .in_file(path)
                    .hint("rename or remove it and import again, or overwrite it with --force"),
                );
            }
            files.push(Written { path: path.clone(), state });
        }
        let results = Results { files, report: &imported.report, errors };
        match self.output {
            OutputFormat::Json => printer.json(&results),
            OutputFormat::Text => self.print(printer, &imported, &results, settings.as_ref()),
        }
        Ok(if results.errors.is_empty() { Exit::Success } else { Exit::Failure })
    }

    /// Those of the environment repository, when there is one already.
    fn settings(&self) -> Result<Option<Settings>, CliError> {
        if !self.into.join("larder.yaml").exists() {
            return Ok(None);
        }
        let snapshot = folder::snapshot(&self.into)?;
        Ok(Some(load::load(&snapshot)?.settings))
    }

    /// Makes the environment repository that is not there yet; files that are there stay as they are.
    fn begin(&self) -> Result<Vec<Written>, CliError> {
        let mut files = Vec::new();
        for (path, bytes) in example::empty(&[self.tenant.as_str()]) {
            let file = self.into.join(path);
            if file.exists() {
                continue;
            }
            if let Some(parent) = file.parent() {
                fs::create_dir_all(parent).map_err(|error| CliError::io(parent.display(), &error))?;
            }
            fs::write(&file, bytes).map_err(|error| CliError::io(file.display(), &error))?;
            files.push(Written { path: path.to_owned(), state: State::Made });
        }
        Ok(files)
    }

    fn write(&self, path: &str, text: &str) -> Result<State, CliError> {
        let file = self.into.join(path);
        let state = match fs::read(&file) {
            Ok(bytes) if bytes == text.as_bytes() => return Ok(State::Unchanged),
            Ok(_) if !self.force => return Ok(State::Refused),
            Ok(_) => State::Changed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => State::Made,
            Err(error) => return Err(CliError::io(file.display(), &error)),
        };
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent).map_err(|error| CliError::io(parent.display(), &error))?;
        }
        fs::write(&file, text).map_err(|error| CliError::io(file.display(), &error))?;
        Ok(state)
    }

    fn print(&self, printer: &mut Printer, imported: &Imported, results: &Results<'_>, settings: Option<&Settings>) {
        for line in &imported.report {
            let became = line.to.as_ref().map_or_else(|| "skipped".to_owned(), |to| format!("→ {to}"));
            printer.line(&format!("{} {became}", line.from));
            if !line.note.is_empty() {
                printer.line(&format!("    {}", line.note));
            }
        }
        for written in &results.files {
            let word = match written.state {
                State::Made => "created",
                State::Changed => "overwritten",
                State::Unchanged => "unchanged",
                State::Refused => "skipped",
            };
            printer.line(&format!("{word} {}", written.path));
        }
        results.errors.iter().for_each(|problem| printer.problem(problem));
        let left_out = imported.report.iter().filter(|line| line.to.is_none()).count();
        let environments = imported.files.len();
        let skipped = if left_out == 1 { "1 entry".to_owned() } else { format!("{left_out} entries") };
        printer.line(&format!("{}, {skipped} skipped", plural(environments, "environment")));
        if imported.files.is_empty() {
            return;
        }
        let tenant = &self.tenant;
        match settings {
            None => printer.note(&format!(
                "The new larder.yaml puts the tenant {tenant} into a namespace of the same name: change it to the one that users' servers run in."
            )),
            Some(settings) if !settings.tenants.contains_key(tenant) => {
                printer.note(&format!("Add to larder.yaml under spec.tenants: `{tenant}: {{namespace: …}}`."));
            }
            Some(_) => printer.note("Next: review the files, `larder validate`, `larder lock`, commit."),
        }
    }
}

fn read(path: &Path) -> Result<Input, CliError> {
    let mut bytes = Vec::new();
    let done = match path == Path::new("-") {
        true => io::stdin().lock().read_to_end(&mut bytes).map(drop),
        false => fs::read(path).map(|read| bytes = read),
    };
    done.map_err(|error| CliError::io(path.display(), &error))?;
    let text = String::from_utf8(bytes).map_err(|_| {
        Problem::new(Category::Syntax, "the file is not UTF-8 text")
            .in_file(path.display().to_string())
            .hint("save it as UTF-8")
    })?;
    Ok(Input { name: path.display().to_string(), text })
}
