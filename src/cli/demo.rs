//! `larder demo`: the full workflow on this machine, without a cluster or a network.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use clap::Args;
use tokio_util::sync::CancellationToken;

use super::{CliError, Exit, Printer, history, run, session};
use crate::{
    config::SourceOptions,
    controller::Controller,
    example,
    io::{credentials::StoredCredentials, directory::Directory, registry::Patience, target::AnyTarget},
    model::{
        batch::succeeded,
        failure::{Category, Problem},
        manifest::Kind,
        plan::{Action, Change},
        snapshot::{Entry, Snapshot},
    },
    pipeline::{LockMode, Options, Pass, World},
    stages::{load, lock, render},
};

mod registry;
mod repository;

use registry::DemoRegistry;

/// Run a self-contained demo: bare repository, registry, lock, diff, history
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  larder demo
  larder demo --directory /tmp/larder

It creates a bare Git repository from the example, serves a small image registry on 127.0.0.1,
and renders into a directory. Repository and manifests are kept for inspection.")]
pub struct Demo {
    /// Directory to create for the results; by default a new temporary directory.
    #[arg(long, value_name = "DIR", alias = "folder")]
    directory: Option<PathBuf>,
}

impl Demo {
    pub(super) async fn run(self, printer: &mut Printer) -> Result<Exit, CliError> {
        // The errors belong to the story, wherever it is redirected to.
        printer.merge();
        let directory =
            self.directory.unwrap_or_else(|| std::env::temp_dir().join(format!("larder-demo-{}", fastrand::u32(..))));
        if directory.exists() {
            return Err(Problem::new(Category::Io, format!("{} already exists", directory.display()))
                .hint("choose a new directory with --directory")
                .into());
        }
        let mut story = Story::begin(directory).await?;
        story.tell(printer).await
    }
}

/// The world of the demonstration.
struct Story {
    directory: PathBuf,
    source: SourceOptions,
    registry: DemoRegistry,
    /// The tag that moves: the file it is in, its repository and its name.
    moving: (String, String, String),
}

impl Story {
    /// Creates the repository, and a registry with an image for each reference in it.
    async fn begin(directory: PathBuf) -> Result<Self, CliError> {
        let registry = DemoRegistry::default();
        let address =
            registry.serve().await.map_err(|error| CliError::io("no port for the demonstration's registry", &error))?;
        let mut files: BTreeMap<String, Vec<u8>> =
            example::files().map(|(path, bytes)| (path.to_owned(), bytes.to_vec())).collect();
        let entries = files.iter().map(|(path, bytes)| (path.clone(), Entry::File(bytes.as_slice().into()))).collect();
        let environments = load::load(&Snapshot { files: entries, ..Snapshot::default() })?;
        let mut mirrors = String::from("  registries:\n");
        let mut hosts = std::collections::BTreeSet::new();
        let mut moving = None;
        for (_, environment) in succeeded(&environments.environments) {
            for image in &environment.images {
                let (repository, tag) = (image.reference.repository(), image.reference.tag().unwrap_or("latest"));
                registry.push(&repository, tag, "1");
                moving.get_or_insert_with(|| (environment.path.clone(), repository, tag.to_owned()));
                if hosts.insert(image.reference.host().to_owned()) {
                    let host = image.reference.host();
                    mirrors.push_str(&format!("    {host}: {{mirrors: [\"http://{address}/{host}\"]}}\n"));
                }
            }
        }
        let moving = moving.ok_or_else(|| Problem::new(Category::Schema, "the example has no image"))?;
        if let Some(settings) = files.get_mut("larder.yaml") {
            settings.extend_from_slice(mirrors.as_bytes());
        }
        let bare = directory.join("environments.git");
        std::fs::create_dir_all(&bare).map_err(|error| CliError::io(directory.display(), &error))?;
        repository::commit(&bare, &files.into_iter().map(|(path, bytes)| (path, Some(bytes))).collect(), "Begin")?;
        let source = SourceOptions::of_local(&bare);
        Ok(Self { directory, source, registry, moving })
    }

    async fn tell(&mut self, printer: &mut Printer) -> Result<Exit, CliError> {
        let (path, repository, tag) = self.moving.clone();
        let directory = self.directory.display().to_string();
        printer.line(&format!("Repository: {directory}/environments.git, manifests: {directory}/manifests,"));
        printer.line("image registry: 127.0.0.1. No cluster and no network are used.");

        heading(printer, "1. First pass: resolve tags to digests, commit the lock, apply the manifests");
        let pass = self.pass().await?;
        printer.line(&run::summary(&pass));
        updates(printer, &pass);

        heading(printer, "2. Second pass: nothing has changed, so nothing is written");
        let pass = self.pass().await?;
        printer.line(&run::summary(&pass));

        heading(printer, &format!("3. Someone pushes another image to {repository}:{tag}"));
        self.registry.push(&repository, &tag, "2");
        let pass = self.pass().await?;
        printer.line(&run::summary(&pass));
        updates(printer, &pass);
        if let Some(puller) =
            pass.plan.changes.iter().find(|change| change.id.kind == Kind::DaemonSet && is_written(change))
        {
            printer.line(&format!("{}:", puller.id));
            printer.diff(&differing_lines(&puller.diff));
        }

        heading(printer, &format!("4. A commit breaks {path} and adds an environment: only the broken one waits"));
        let broken = b"apiVersion: larder.dev/v1alpha1\nkind: Environment\nspec:\n  imags:\n    - name: notebook\n";
        let added = self.added_environment();
        let changes = BTreeMap::from([(path, Some(broken.to_vec())), added]);
        repository::commit(&self.directory.join("environments.git"), &changes, "Add an environment, break another")?;
        let pass = self.pass().await?;
        printer.line(&run::summary(&pass));
        pass.lock.moves.iter().for_each(|moved| printer.line(&lock::describe(moved)));
        run::print_status(printer, &pass.status);

        heading(printer, "5. The history, from Git alone");
        history::print(printer, &self.source, 100).await?;

        printer.line(&format!(
            "\nEverything is kept in {directory} (remove it with `rm -r {directory}`):\n  \
             git -C {directory}/environments.git log -p -- lock/\n  \
             larder history --repo {directory}/environments.git\n\
             Next: `larder init image-envs` scaffolds a repository of your own;\n\
             `larder import zero-to-jupyterhub values.yaml --into image-envs` starts from your hub's values."
        ));
        Ok(Exit::Success)
    }

    /// A new environment of an existing tenant, with an image of its own.
    fn added_environment(&self) -> (String, Option<Vec<u8>>) {
        let tenant = self.moving.0.split('/').nth(1).filter(|part| !part.ends_with(".yaml")).unwrap_or("default");
        self.registry.push("quay.io/jupyter/r-notebook", "2026-11-23", "1");
        let text = "apiVersion: larder.dev/v1alpha1\nkind: Environment\nspec:\n  displayName: R\n  images:\n    - name: notebook\n      image: quay.io/jupyter/r-notebook:2026-11-23\n";
        let folder = if tenant == "default" { String::new() } else { format!("{tenant}/") };
        (format!("environments/{folder}statistics.yaml"), Some(text.into()))
    }

    /// One pass of a controller that has just started: it asks for every reference.
    async fn pass(&self) -> Result<Pass, CliError> {
        let (repository, _cache) = session::repository(&self.source)?;
        let world = World {
            repository,
            cluster: AnyTarget::Directory(Directory::new(self.directory.join("manifests"), "default".to_owned())),
            credentials: StoredCredentials::new(None, None)?,
            forge: None,
            options: Options {
                render: render::Options { instance: "default".to_owned() },
                lock_mode: LockMode::Commit,
                patience: Patience::PASS,
                halt_before: None,
            },
        };
        let interval = Duration::from_secs(60);
        let mut controller = Controller::new(world, interval);
        Ok(controller.once(&CancellationToken::new()).await?)
    }
}

fn is_written(change: &Change) -> bool {
    matches!(change.action, Action::Create | Action::Configure)
}

/// A diff without its head and context.
fn differing_lines(diff: &str) -> String {
    let body = diff.lines().skip_while(|line| !line.starts_with("@@"));
    body.filter(|line| line.starts_with(['-', '+'])).map(|line| format!("{line}\n")).collect()
}

fn heading(printer: &mut Printer, text: &str) {
    printer.line(&format!("\n== {text}"));
}

fn updates(printer: &mut Printer, pass: &Pass) {
    for moved in &pass.lock.moves {
        printer.line(&lock::describe(moved));
    }
    if let Some(commit) = &pass.status.last_pass.lock_commit {
        printer.line(&format!("lock commit {commit}"));
    }
}
