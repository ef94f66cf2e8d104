//! What commands start from: the environment repository's files, and the target.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{CliError, Exit, Printer};
use crate::{
    config::{CommitOptions, RegistryOptions, SourceOptions, Target, TargetOptions},
    io::{
        cluster::KubeCluster,
        credentials::StoredCredentials,
        directory::Directory,
        folder,
        git::Checkout,
        registry::{Patience, RegistryClient},
        repository::Repository,
        target::AnyTarget,
    },
    model::{
        batch::failed,
        failure::{Category, Failure, Problem},
        lock::LockChange,
        name::EnvironmentId,
        resolution::Resolution,
        settings::Settings,
        snapshot::{Origin, Snapshot},
    },
    pipeline::ask_registries,
    stages::{
        load::{self, Environments},
        resolve::Due,
        status,
    },
};

/// The files that a command works on.
pub struct Source {
    /// The files.
    pub snapshot: Snapshot,
    /// The directory they are in, when they are on disk.
    pub root: Option<PathBuf>,
}

/// Reads the files of `--repo`'s tip, or of the current directory.
pub async fn source(options: &SourceOptions) -> Result<Source, CliError> {
    let Some(_) = &options.repo else {
        let root = folder::find_root(&current_folder()?)?;
        let snapshot = folder::snapshot(&root)?;
        return Ok(Source { snapshot, root: Some(root) });
    };
    let (repository, _cache) = repository(options)?;
    let commit = repository.commit().await?;
    let snapshot = repository.fetch(&commit).await.map_err(Problem::from)?;
    Ok(Source { snapshot, root: None })
}

/// Opens `--repo`. The second value removes fetched objects when it is dropped, unless `--cache-dir` keeps them.
pub fn repository(options: &SourceOptions) -> Result<(Arc<Repository>, Option<tempfile::TempDir>), CliError> {
    open(options, &CommitOptions::default(), Checkout::AsConfigured)
}

/// Opens `--repo` to commit to it.
pub fn open(
    options: &SourceOptions,
    commits: &CommitOptions,
    checkout: Checkout,
) -> Result<(Arc<Repository>, Option<tempfile::TempDir>), CliError> {
    let (cache, temporary) = match &options.cache_dir {
        Some(folder) => (folder.clone(), None),
        None => {
            let folder = tempfile::Builder::new()
                .prefix("larder-")
                .tempdir()
                .map_err(|error| CliError::io("cannot create a temporary directory (see --cache-dir)", &error))?;
            (folder.path().to_owned(), Some(folder))
        }
    };
    let Some(mut options) = options.git(cache, commits) else {
        return Err(Problem::new(Category::Git, "no repository is given").hint("give one with --repo").into());
    };
    options.checkout = checkout;
    let repository = Repository::open(options).map_err(Problem::from)?;
    Ok((Arc::new(repository), temporary))
}

/// Opens `--repo`, or the repository around the current directory, whose work tree follows then. For commits of people.
pub fn repository_of_person(
    options: &SourceOptions,
    commits: &CommitOptions,
) -> Result<(Arc<Repository>, Option<tempfile::TempDir>), CliError> {
    let checkout = if options.repo.is_some() { Checkout::AsConfigured } else { Checkout::Update };
    open(&with_repository(options)?, commits, checkout)
}

/// Loads the files; every broken file is a failure of its environment alone.
pub fn load(source: &Source) -> Result<Environments, CliError> {
    load::load(&source.snapshot).map_err(CliError)
}

/// The repository around an environment repository's directory, and where in it that is.
///
/// # Errors
/// When there is none.
pub fn local_repository(root: &Path) -> Result<(PathBuf, Option<String>), Problem> {
    let Some(repository) = root.ancestors().find(|folder| folder.join(".git").exists()) else {
        return Err(Problem::new(Category::Git, format!("{} is not in a Git repository", root.display()))
            .hint("name one with --repo"));
    };
    let path = root.strip_prefix(repository).ok().map(|path| path.display().to_string());
    Ok((repository.to_owned(), path.filter(|path| !path.is_empty())))
}

/// The same options with a repository: `--repo`, or the one around the current directory.
pub fn with_repository(options: &SourceOptions) -> Result<SourceOptions, CliError> {
    if options.repo.is_some() {
        return Ok(options.clone());
    }
    let start = current_folder()?;
    // At another revision there may be a larder.yaml where now is none.
    let (repository, path) = local_repository(&folder::find_root(&start).unwrap_or(start))?;
    Ok(options.clone().with_local(&repository, path))
}

/// The files of a revision: a commit's identity, a branch, a tag, or what else Git understands.
pub async fn source_at(options: &SourceOptions, revision: &str) -> Result<Source, CliError> {
    let (repository, _cache) = repository(&with_repository(options)?)?;
    let commit = repository.revision(revision).await.map_err(Problem::from)?;
    let snapshot = repository.fetch(&commit).await.map_err(Problem::from)?;
    Ok(Source { snapshot, root: None })
}

/// The current directory.
pub fn current_folder() -> Result<PathBuf, CliError> {
    std::env::current_dir().map_err(|error| CliError::io("cannot read the current directory", &error))
}

/// The lock as it is, with nothing moved.
pub fn locked(environments: &Environments) -> LockChange {
    LockChange { lock: environments.lock.clone(), ..LockChange::default() }
}

/// The files' revision, for the heads of diffs.
pub fn revision(source: &Source) -> String {
    match &source.snapshot.origin {
        Origin::Commit(commit) => commit.clone(),
        Origin::Folder => "folder".to_owned(),
    }
}

/// Opens the target.
pub async fn target(options: &TargetOptions) -> Result<AnyTarget, CliError> {
    match &options.target {
        Target::Directory(path) => Ok(AnyTarget::Directory(Directory::new(path.clone(), options.instance.clone()))),
        Target::Cluster => Ok(AnyTarget::Kube(cluster(options).await?)),
    }
}

/// Connects to the cluster, whatever the target is.
pub async fn cluster(options: &TargetOptions) -> Result<KubeCluster, CliError> {
    let cluster =
        KubeCluster::connect(options.kubeconfig.as_deref(), options.context.as_deref(), &options.instance).await?;
    Ok(cluster.with_status_in(options.status_namespace.clone()))
}

/// The cluster of a command that can do without one: none when there is no kubeconfig that can be used.
pub async fn cluster_if_any(options: &TargetOptions) -> Option<KubeCluster> {
    cluster(options).await.ok()
}

/// That all of these environments are there.
pub fn must_be_known(named: &[EnvironmentId], environments: &Environments) -> Result<(), Problem> {
    let known = || environments.environments.keys();
    let unknown = named.iter().find(|id| !environments.environments.contains_key(id));
    unknown.map_or(Ok(()), |unknown| Err(status::unknown_environment(unknown, known())))
}

/// Asks the registries, with pull secrets from the cluster where there is a kubeconfig.
pub async fn resolve(
    due: Vec<Due>,
    settings: &Settings,
    target: &TargetOptions,
    registry: &RegistryOptions,
) -> Result<Resolution, CliError> {
    let client = RegistryClient::new(&settings.registries)?;
    let cluster = cluster_if_any(target).await;
    let credentials = StoredCredentials::new(cluster, registry.registry_config.as_deref())?;
    Ok(ask_registries(&client, &credentials, due, Patience::WHOLE).await.resolution)
}

/// The environments whose file or lockfile is broken.
pub fn broken(environments: &Environments) -> BTreeMap<&EnvironmentId, &Failure> {
    failed(&environments.lock).chain(failed(&environments.environments)).collect()
}

/// Prints the failures of environments and lockfiles (of `only` these, unless it is empty).
pub fn report_broken(printer: &mut Printer, environments: &Environments, only: &[EnvironmentId]) -> Exit {
    let broken: Vec<_> = failed(&environments.environments)
        .chain(failed(&environments.lock))
        .filter(|(id, _)| only.is_empty() || only.contains(id))
        .collect();
    for (_, failure) in &broken {
        printer.failure(failure);
    }
    if broken.is_empty() { Exit::Success } else { Exit::Failure }
}
