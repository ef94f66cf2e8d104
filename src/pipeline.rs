//! One pass, from a commit to the target. The only file that knows every stage.
//!
//! A pass that cannot start (no repository, no readable `larder.yaml`, no target) is a [`RunError`] and has touched
//! nothing. Whatever goes wrong for one environment travels with the others' results, up to the report.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::{
    io::{
        cluster::{self, Cluster},
        forge::Forge,
        git,
        registry::{Credentials, Patience},
        repository::Repository,
    },
    model::{
        failure::{Category, Failure, Problem},
        lock::LockChange,
        manifest::{Comparison, Inventory, Manifest, Manifests, Owner},
        name::EnvironmentId,
        plan::{Applied, Plan},
        requests::Requests,
        status::{EnvironmentStatus, LastPass, Reason, Status},
    },
    stages::{
        load::{self, Environments},
        plan, render, status,
    },
};

pub mod audit;
mod forward;
pub mod holding;
mod locked;
mod memory;
mod past;
mod propose;
mod push;
pub mod record;
mod renames;
mod resolve;
pub mod verify;

use locked::{Base, Way};
pub use locked::{LockMode, Locked, Locking};
pub use memory::{Memory, today};
pub use past::ask as ask_past;
pub use renames::find as find_renames;
pub use resolve::ask as ask_registries;

/// How long a pass that is cancelled may continue before it begins to write.
const GRACE: Duration = Duration::from_secs(5);

/// What a pass works with.
pub struct World<C, K> {
    /// The environment repository, shared with the polls between passes.
    pub repository: Arc<Repository>,
    /// The target.
    pub cluster: C,
    /// Credentials for registries.
    pub credentials: K,
    /// Where the repository's pull requests are, if larder may make some.
    pub forge: Option<Forge>,
    /// What holds for all passes.
    pub options: Options,
}

/// What holds for all passes.
#[derive(Clone, Debug)]
pub struct Options {
    /// How manifests are named and marked.
    pub render: render::Options,
    /// Whether the lock may be moved.
    pub lock_mode: LockMode,
    /// How long registries may take.
    pub patience: Patience,
    /// Where a pass waits forever instead of going on; for tests of crashes.
    pub halt_before: Option<Step>,
}

/// The steps of a pass, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Step {
    /// The commit's files are fetched and read.
    Fetch,
    /// References are resolved at their registries.
    Resolve,
    /// The lock is committed and pushed.
    Lock,
    /// Manifests are rendered and compared with the target.
    Plan,
    /// Objects are written and deleted.
    Apply,
    /// The pass's outcome becomes part of the status.
    Report,
}

impl Step {
    /// The word for logs.
    fn as_str(self) -> &'static str {
        match self {
            Self::Fetch => "fetch",
            Self::Resolve => "resolve",
            Self::Lock => "lock",
            Self::Plan => "plan",
            Self::Apply => "apply",
            Self::Report => "report",
        }
    }
}

/// Why a pass could not start. It has touched nothing.
#[derive(Debug, thiserror::Error)]
#[error("the pass could not start")]
pub struct RunError(#[source] pub Failure);

impl From<Problem> for RunError {
    fn from(problem: Problem) -> Self {
        Self(problem.into())
    }
}

/// What a pass came to.
#[derive(Debug)]
pub struct Pass {
    /// The environments as the rendered commit has them.
    pub environments: Environments,
    /// What was done to the lock.
    pub lock: LockChange,
    /// What the lock leads to; its objects are shared with the controller's memory.
    pub manifests: Manifests,
    /// What was to be done to the target, with diffs.
    pub plan: Plan,
    /// What was done to it.
    pub applied: Applied,
    /// The status after it, without what is observed of nodes.
    pub status: Status,
    /// What it has asked. Not part of the status, which is equal for equal outcomes.
    pub requests: Requests,
}

/// Carries out one pass on that commit.
pub async fn pass<C: Cluster, K: Credentials>(
    world: &World<C, K>,
    memory: &mut Memory,
    tip: &git::CommitId,
    cancel: &CancellationToken,
) -> Result<Pass, RunError> {
    let before = asked(world, memory);
    let prepared = tokio::select! {
        prepared = prepare(world, memory, tip) => prepared?,
        () = ended(cancel) => return Err(Problem::new(Category::Io, "the pass was ended before it wrote anything").into()),
    };
    let Prepared { locked, manifests, plan } = prepared;
    // 7. apply and prune (target)
    world.reach(Step::Apply).await;
    let applied = cluster::carry_out(&world.cluster, &plan, cancel).await;
    // 8. report (pure)
    world.reach(Step::Report).await;
    memory.schedule(&locked.environments, &locked.change.lock);
    let lock_commit = locked.outcome.commit().map(ToString::to_string);
    let target = if world.cluster.has_nodes() { status::Target::Cluster } else { status::Target::Directory };
    let status = status::of_pass(&status::Inputs {
        commit: locked.commit.to_string(),
        last_pass: LastPass { tip: Some(tip.to_string()), lock_commit },
        lock_problem: locked.outcome.problem(),
        proposal: locked.outcome.proposal(),
        environments: &locked.environments,
        lock: &locked.change,
        applied: &applied,
        target,
    });
    let requests = asked(world, memory) - before;
    Ok(Pass { environments: locked.environments, lock: locked.change, manifests, plan, applied, status, requests })
}

/// A pass that has written nothing to the target yet.
struct Prepared {
    locked: Locked,
    manifests: Manifests,
    plan: Plan,
}

/// The steps that only ask, and the push: they may be dropped at any time, as a kill would.
async fn prepare<C: Cluster, K: Credentials>(
    world: &World<C, K>,
    memory: &mut Memory,
    tip: &git::CommitId,
) -> Result<Prepared, RunError> {
    // 1. fetch (Git)
    world.reach(Step::Fetch).await;
    let snapshot = push::fetch(world, memory, tip).await?;
    // 2. load (pure)
    let environments = load::load(&snapshot).map_err(RunError)?;
    memory.ask_released(&snapshot, &environments);
    // 3. resolve (registries)
    world.reach(Step::Resolve).await;
    let resolution = resolve::resolve(world, memory, &environments).await?;
    // 4. lock (Git)
    world.reach(Step::Lock).await;
    let way = world.options.lock_mode.way(&environments.settings);
    let base = Base { commit: *tip, snapshot, environments, resolution };
    let locked = match way {
        Way::Commit => push::commit(world, memory, base).await?,
        Way::Propose => propose::propose(world, memory, base).await,
        Way::Follow => Locked::follow(world, memory, base).await,
    };
    forward::accept(world, memory, &locked.commit).await;
    // 5. render (pure)
    let options = &world.options.render;
    let Environments { environments, settings, templates, .. } = &locked.environments;
    let manifests = memory.renderer(options).render(environments, settings, templates, &locked.change.lock, options);
    // 6. observe and diff (target)
    world.reach(Step::Plan).await;
    let revision = locked.commit.to_string();
    let plan = compare(&world.cluster, &locked.environments, &locked.change, manifests.clone(), &revision).await?;
    Ok(Prepared { locked, manifests, plan })
}

/// Returns some time after the pass was cancelled, so that a push that is under way can end.
async fn ended(cancel: &CancellationToken) {
    cancel.cancelled().await;
    tokio::time::sleep(GRACE).await;
}

impl<C, K> World<C, K> {
    /// Logs the step, or waits forever when the pass is to be halted before it.
    async fn reach(&self, step: Step) {
        tracing::debug!(step = step.as_str(), "step reached");
        if self.options.halt_before == Some(step) {
            tracing::warn!(step = step.as_str(), "halted before this step");
            std::future::pending::<()>().await;
        }
    }
}

/// Requests sent so far, by this controller.
fn asked<C: Cluster, K>(world: &World<C, K>, memory: &Memory) -> Requests {
    Requests { registry: memory.registry_requests(), target: world.cluster.requests() }
}

/// Renders what is locked.
pub fn render_locked(environments: &Environments, change: &LockChange, options: &render::Options) -> Manifests {
    render::render(&environments.environments, &environments.settings, &environments.templates, &change.lock, options)
}

/// What would be done to the target: asks it only about what may differ.
pub async fn compare<C: Cluster>(
    cluster: &C,
    environments: &Environments,
    change: &LockChange,
    manifests: Manifests,
    revision: &str,
) -> Result<Plan, RunError> {
    let needs_version = manifests.values().flatten().flatten().any(|manifest| render::needs_server(manifest).is_some());
    let version = if needs_version { cluster.server_version().await } else { None };
    let manifests = render::for_server(manifests, version);
    let plan::Owned { inventory, foreign } = plan::owned(cluster.inventory().await?, &environments.settings);
    if let Some(first) = foreign.first() {
        let objects = foreign.len();
        tracing::warn!(objects, %first, "ignoring objects that are not in the namespace of the tenant they name");
    }
    let held = held(environments, change, &inventory);
    let manifests = plan::hold_records(manifests, &inventory, &change.lock, &held, &environments.settings.prune);
    let suspects = plan::suspects(&manifests, &inventory, &held);
    let judge = |manifest: &Manifest, comparison: &Comparison| plan::judge(manifest, comparison, revision);
    let verdicts = cluster::compare_all(cluster, &suspects, judge).await;
    Ok(plan::plan(&manifests, &inventory, verdicts, &held, &environments.settings.prune))
}

/// Owners whose objects stay as they are: environments that are suspended, or whose file, lockfile or directory is broken.
fn held(environments: &Environments, change: &LockChange, inventory: &Inventory) -> BTreeSet<Owner> {
    let usable = |id: &EnvironmentId| match environments.environments.get(id) {
        Some(Ok(environment)) => !environment.suspend && !matches!(change.lock.get(id), Some(Err(_))),
        _ => false,
    };
    let known = environments.environments.keys().chain(change.lock.keys());
    let broken = known.filter(|id| !usable(id)).cloned().map(Owner::Environment);
    let live = inventory.values().map(|entry| &entry.owner);
    broken.chain(live.filter(|owner| environments.unread.contains(owner.tenant())).cloned()).collect()
}

impl Pass {
    /// Whether another pass on the same commit has nothing left to try.
    pub fn is_complete(&self) -> bool {
        self.applied.is_complete() && self.status.problems_of(Reason::LockRefused).next().is_none()
    }

    /// Whether every environment is well.
    pub fn is_sound(&self) -> bool {
        self.is_complete()
            && self.status.tenants.is_empty()
            && self.status.problems_of(Reason::MisplacedFile).next().is_none()
            && self.status.environments.values().all(EnvironmentStatus::is_well)
    }
}
