//! `larder demo`: the main job from start to finish on this machine, without a cluster or a network.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use clap::Args;
use tokio_util::sync::CancellationToken;

use super::{CliError, Exit, Printer, history, plan, run, session};
use crate::{
    config::SourceOptions,
    controller::Controller,
    example,
    io::{credentials::StoredCredentials, directory::Directory, registry::Patience, target::AnyTarget},
    model::{
        batch::succeeded,
        failure::{Category, Problem},
        plan::Action,
        snapshot::{Entry, Snapshot},
    },
    pipeline::{LockMode, Options, Pass, World},
    stages::{load, lock, render},
};

mod registry;
mod repository;

use registry::DemoRegistry;

/// Tell the whole story here and now: a bare repository, a registry, locks, diffs, history
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  larder demo
  larder demo --directory /tmp/larder     where it leaves what it made, to look at

It makes a bare Git repository from the example, serves a small image registry on 127.0.0.1, and renders into a directory.")]
pub struct Demo {
    /// Where it leaves what it made; by default a new directory among the temporary ones. It must not exist yet.
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

impl Demo {
    pub(super) async fn run(self, printer: &mut Printer) -> Result<Exit, CliError> {
        let folder =
            self.folder.unwrap_or_else(|| std::env::temp_dir().join(format!("larder-demo-{}", fastrand::u32(..))));
        if folder.exists() {
            return Err(Problem::new(Category::Io, format!("{} exists already", folder.display()))
                .hint("name a directory that does not exist yet with --directory")
                .into());
        }
        let mut story = Story::begin(folder).await?;
        story.tell(printer).await
    }
}

/// The world of the demonstration.
struct Story {
    folder: PathBuf,
    source: SourceOptions,
    registry: DemoRegistry,
    /// An image that moves: the file it is in, its repository and its tag.
    moving: (String, String, String),
}

impl Story {
    /// Makes the repository, and a registry with an image for each reference in it.
    async fn begin(folder: PathBuf) -> Result<Self, CliError> {
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
        let bare = folder.join("environments.git");
        std::fs::create_dir_all(&bare).map_err(|error| CliError::io(folder.display(), &error))?;
        repository::commit(&bare, &files.into_iter().map(|(path, bytes)| (path, Some(bytes))).collect(), "Begin")?;
        let source = SourceOptions::of_local(&bare);
        Ok(Self { folder, source, registry, moving })
    }

    async fn tell(&mut self, printer: &mut Printer) -> Result<Exit, CliError> {
        let (path, repository, tag) = self.moving.clone();
        printer.line(&format!(
            "A bare Git repository is at {}/environments.git,\nan image registry listens on 127.0.0.1, and manifests go to {}/manifests.",
            self.folder.display(),
            self.folder.display()
        ));

        heading(printer, "1. The first pass: references become digests, digests a commit, the commit manifests");
        let pass = self.pass().await?;
        moves(printer, &pass);
        if let Some(change) = pass.plan.changes.iter().rfind(|change| change.action == Action::Create) {
            printer.line(&format!("\nThe diff of one of {} new objects:", pass.applied.count(Action::Create)));
            printer.diff(&change.diff);
        }
        printer.line(&run::summary(&pass));

        heading(printer, "2. Nothing has changed: the second pass writes nothing");
        let pass = self.pass().await?;
        printer.line(&run::summary(&pass));

        heading(printer, &format!("3. Someone pushes another image to {repository}:{tag}"));
        self.registry.push(&repository, &tag, "2");
        let pass = self.pass().await?;
        moves(printer, &pass);
        plan::print_changes(printer, &pass.plan.changes);

        heading(printer, &format!("4. A commit breaks {path}; the image beside it moves all the same"));
        let broken = b"apiVersion: larder.dev/v1alpha1\nkind: Environment\nspec:\n  imags:\n    - name: notebook\n";
        let added = self.added_environment();
        let changes = BTreeMap::from([(path, Some(broken.to_vec())), added]);
        repository::commit(&self.folder.join("environments.git"), &changes, "Add an environment, break another")?;
        let pass = self.pass().await?;
        moves(printer, &pass);
        run::print_status(printer, &pass.status);
        printer.line(&run::summary(&pass));

        heading(printer, "5. The history, from Git alone");
        history::print(printer, &self.source, 100).await?;

        printer.line(&format!(
            "\nAll of this is real and still there:\n  git -C {0}/environments.git log -p -- lock/\n  ls -R {0}/manifests\n  larder history --repo {0}/environments.git",
            self.folder.display()
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
            cluster: AnyTarget::Directory(Directory::new(self.folder.join("manifests"), "default".to_owned())),
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

fn heading(printer: &mut Printer, text: &str) {
    printer.line(&format!("\n== {text}\n"));
}

fn moves(printer: &mut Printer, pass: &Pass) {
    for moved in &pass.lock.moves {
        printer.line(&lock::describe(moved));
    }
    if let Some(commit) = &pass.status.last_pass.lock_commit {
        printer.line(&format!("lock commit {commit}"));
    }
}
