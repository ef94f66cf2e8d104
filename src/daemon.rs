//! What a controller is made of: the repository, the target, the listeners and the reporters, wired together.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::{
    controller::{self, Controller},
    io::{
        cluster::KubeCluster, credentials::StoredCredentials, forge::Forge, registry::Patience, repository::Repository,
        target::AnyTarget,
    },
    local,
    model::{
        failure::{Category, Failure, Problem},
        status::Status,
    },
    pipeline::{LockMode, Options, Pass, Step, World},
    reporters::{self, forge::CommitStatuses},
    server::{self, Hooks, SecretFile},
    stages::render,
    wake::Wake,
};

/// How long the last status may take to be written.
const LAST_WRITE: Duration = Duration::from_secs(5);

/// What a controller works with, and how.
pub struct Config {
    /// The environment repository.
    pub repository: Arc<Repository>,
    /// The target.
    pub target: AnyTarget,
    /// A docker config file with credentials for registries.
    pub registry_config: Option<PathBuf>,
    /// The forge that holds the repository.
    pub forge: Option<Forge>,
    /// What tells several larders of one cluster apart.
    pub instance: String,
    /// Whether and how the lock may be moved.
    pub lock_mode: LockMode,
    /// The time between two polls.
    pub interval: Duration,
    /// Where a pass stops; for tests of crashes.
    pub halt_before: Option<Step>,
}

/// Where a controller listens.
#[derive(Default)]
pub struct Listeners {
    /// For health and metrics.
    pub health: Option<SocketAddr>,
    /// For webhooks, with the file of their secrets.
    pub webhooks: Option<(SocketAddr, PathBuf)>,
}

/// The wired parts.
struct Parts {
    world: World<AnyTarget, StoredCredentials>,
    /// The target, if it has nodes.
    cluster: Option<KubeCluster>,
    interval: Duration,
}

impl Config {
    async fn open(self, patience: Patience) -> Result<Parts, Failure> {
        self.repository.check_keys().await.map_err(Problem::from)?;
        let cluster = match &self.target {
            AnyTarget::Kube(cluster) => Some(cluster.clone()),
            AnyTarget::Directory(_) => None,
        };
        let credentials = StoredCredentials::new(cluster.clone(), self.registry_config.as_deref())?;
        let options = Options {
            render: render::Options { instance: self.instance },
            lock_mode: self.lock_mode,
            patience,
            halt_before: self.halt_before,
        };
        let Self { repository, target, forge, interval, .. } = self;
        Ok(Parts { world: World { repository, cluster: target, credentials, forge, options }, cluster, interval })
    }
}

impl Parts {
    fn commit_statuses(&self) -> Option<CommitStatuses> {
        Some(CommitStatuses::new(self.world.forge.clone()?, &self.world.options.render.instance))
    }
}

/// Runs one pass, and reports it.
///
/// # Errors
/// When the pass cannot start.
pub async fn once(config: Config, shutdown: &CancellationToken) -> Result<Pass, Failure> {
    let parts = config.open(Patience::WHOLE).await?;
    let (target, commit_statuses, cluster) =
        (parts.world.cluster.clone(), parts.commit_statuses(), parts.cluster.clone());
    let mut controller = Controller::new(parts.world, parts.interval);
    let result = controller.once(shutdown).await;
    let status = controller.subscribe().borrow().clone();
    if *status != Status::default() {
        reporters::target::write(&target, &status).await;
    }
    let pass = result.map_err(|error| error.0)?;
    if let Some(mut commit_statuses) = commit_statuses {
        let status = match &cluster {
            Some(cluster) => controller::observed(cluster, &pass).await?,
            None => pass.status.clone(),
        };
        commit_statuses.report(&status).await;
    }
    Ok(pass)
}

/// Runs passes until `shutdown`.
///
/// # Errors
/// When it cannot start: keys or secrets cannot be read, or a port cannot be had.
pub async fn run(config: Config, listeners: Listeners, shutdown: &CancellationToken) -> Result<(), Failure> {
    let (target, repository) = (config.target.to_string(), config.repository.clone());
    let parts = config.open(Patience::PASS).await?;
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        repository = repository.remote().await,
        branch = repository.branch().await.as_deref().unwrap_or("HEAD"),
        target,
        instance = parts.world.options.render.instance,
        "larder started"
    );
    let (writer, commit_statuses, cluster) =
        (parts.world.cluster.clone(), parts.commit_statuses(), parts.cluster.clone());
    let options = parts.world.options.render.clone();
    let wake = Wake::default();
    let mut controller = Controller::new(parts.world, parts.interval).with_news(wake.clone());
    if let Some(address) = listeners.health {
        let bound = server::serve(address, controller.metrics().clone(), shutdown.clone())
            .await
            .map_err(|error| Problem::new(Category::Io, format!("--listen {address}: {error}")))?;
        tracing::info!(address = %bound, "listening");
    }
    if let Some((address, file)) = listeners.webhooks {
        let secrets = SecretFile::new(file);
        secrets.check().await?;
        let bound = Hooks::new(secrets, wake.clone(), controller.metrics().clone())
            .serve(address, shutdown.clone())
            .await
            .map_err(|error| Problem::new(Category::Io, format!("--webhook-listen {address}: {error}")))?;
        tracing::info!(address = %bound, "listening for webhooks");
    }
    local::watch(&repository, wake, options, shutdown);
    writer.watch(shutdown).await;
    if let Some(commit_statuses) = commit_statuses {
        commit_statuses.start(controller.subscribe(), shutdown);
        if let Some(cluster) = cluster {
            controller = controller.with_nodes(cluster, shutdown);
        }
    }
    let writing = reporters::target::start(writer, controller.subscribe(), shutdown);
    controller.run(shutdown).await;
    drop(controller);
    let _ = tokio::time::timeout(LAST_WRITE, writing).await;
    tracing::info!("stopped");
    Ok(())
}
