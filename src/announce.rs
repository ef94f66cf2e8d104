//! Tells the forge how the branch's tip stands: pending while nodes pull, green when they hold everything, red with the
//! reason. Nodes are observed beside the passes, so no pass waits for them, and nothing is told twice.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    io::{cluster::KubeCluster, forge::Forge, git::CommitId},
    model::{
        failure::Problem,
        forge::{CommitState, CommitStatus},
        lock::Lock,
        manifest::Manifests,
        report::PassReport,
    },
    pipeline::{Pass, RunError},
    stages::{commit_status, coverage, render},
};

/// Between two looks at the nodes while something is on its way; doubled as long as nothing changes.
const SHORTEST: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_secs(60);

/// Commits whose status is remembered.
const REMEMBERED: usize = 16;

/// Sets commit statuses.
pub struct Announcer {
    forge: Forge,
    /// None for a target without nodes.
    cluster: Option<KubeCluster>,
    render: render::Options,
    /// The latest statuses that were set.
    posted: Vec<(String, CommitStatus)>,
}

/// An announcer at work.
pub struct Announcing {
    sender: watch::Sender<Option<Arc<Subject>>>,
    last: Option<(Vec<String>, PassReport)>,
}

/// What is to be told about.
struct Subject {
    /// The commits that get the status: the lock commit, and the commit that it was made for.
    commits: Vec<String>,
    outcome: Outcome,
}

enum Outcome {
    /// A pass has ended.
    Passed(Box<Passed>),
    /// A pass could not start.
    Failed(CommitStatus),
}

/// What of a pass is told about.
struct Passed {
    report: PassReport,
    lock: Lock,
    manifests: Manifests,
}

impl Announcer {
    /// One that has told nothing yet.
    pub fn new(forge: Forge, cluster: Option<KubeCluster>, render: render::Options) -> Self {
        Self { forge, cluster, render, posted: Vec::new() }
    }

    /// Tells how the pass's commit stands right now.
    pub async fn announce(&mut self, pass: &Pass) {
        let commits = pass.report.commit.iter().cloned().collect();
        let subject = Subject { commits, outcome: passed(pass) };
        self.look(&subject).await;
    }

    /// Goes on beside the passes until `shutdown`.
    pub fn start(mut self, shutdown: &CancellationToken) -> Announcing {
        let (sender, mut receiver) = watch::channel(None::<Arc<Subject>>);
        let shutdown = shutdown.clone();
        tokio::spawn(async move {
            let mut wait = SHORTEST;
            loop {
                let subject = receiver.borrow_and_update().clone();
                let look = match &subject {
                    Some(subject) => self.look(subject).await,
                    None => Look::Settled,
                };
                wait = if look == Look::Changed { SHORTEST } else { (wait * 2).min(LONGEST) };
                tokio::select! {
                    () = shutdown.cancelled() => return,
                    changed = receiver.changed() => {
                        if changed.is_err() {
                            return;
                        }
                        wait = SHORTEST;
                    }
                    () = tokio::time::sleep(wait), if look != Look::Settled => {}
                }
            }
        });
        Announcing { sender, last: None }
    }

    /// Looks at the nodes, and tells what is new.
    async fn look(&mut self, subject: &Subject) -> Look {
        let status = match self.status(subject).await {
            Ok(status) => status,
            Err(problem) => {
                tracing::warn!(%problem, "how the commit stands is not known");
                return Look::Waiting;
            }
        };
        let mut look = if may_change(subject, &status) { Look::Waiting } else { Look::Settled };
        for commit in &subject.commits {
            if self.posted.iter().any(|(posted, last)| posted == commit && *last == status) {
                continue;
            }
            let context = format!("larder/{}", self.render.instance);
            match self.forge.set_status(commit, &context, &status).await {
                Ok(()) => {
                    tracing::info!(commit, state = ?status.state, description = status.description, "commit status");
                    self.posted.retain(|(posted, _)| posted != commit);
                    self.posted.push((commit.clone(), status.clone()));
                    let surplus = self.posted.len().saturating_sub(REMEMBERED);
                    self.posted.drain(..surplus);
                    if look == Look::Waiting {
                        look = Look::Changed;
                    }
                }
                Err(problem) => {
                    tracing::warn!(%problem, commit, "the commit status could not be set");
                    look = Look::Waiting;
                }
            }
        }
        look
    }

    async fn status(&self, subject: &Subject) -> Result<CommitStatus, Problem> {
        let (report, lock, manifests) = match &subject.outcome {
            Outcome::Failed(status) => return Ok(status.clone()),
            Outcome::Passed(passed) => (&passed.report, &passed.lock, &passed.manifests),
        };
        // What the pass could not do is known without the nodes.
        let without = commit_status::of_pass(report, None);
        match &self.cluster {
            Some(cluster) if without.state == CommitState::Success => {
                let coverage: BTreeMap<_, _> = coverage::coverage(lock, manifests, &cluster.observe().await?);
                Ok(commit_status::of_pass(report, Some(&coverage)))
            }
            _ => Ok(without),
        }
    }
}

/// What a look at the nodes came to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    /// Nothing more can come of this commit before the next pass.
    Settled,
    /// More may come; nothing new was told.
    Waiting,
    /// More may come, and something new was told.
    Changed,
}

/// Whether nodes can still change the status.
fn may_change(subject: &Subject, status: &CommitStatus) -> bool {
    match &subject.outcome {
        Outcome::Failed(_) => false,
        Outcome::Passed(passed) => {
            let report = &passed.report;
            status.state != CommitState::Success && commit_status::of_pass(report, None).state == CommitState::Success
        }
    }
}

fn passed(pass: &Pass) -> Outcome {
    Outcome::Passed(Box::new(Passed {
        report: pass.report.clone(),
        lock: pass.lock.lock.clone(),
        manifests: pass.manifests.clone(),
    }))
}

impl Announcing {
    /// Takes note of a pass that was started on `tip`. Does not wait.
    pub fn pass_ended(&mut self, tip: Option<&CommitId>, result: &Result<Pass, RunError>) {
        let mut commits: Vec<String> = tip.map(ToString::to_string).into_iter().collect();
        let outcome = match result {
            Err(error) => {
                self.last = None;
                Outcome::Failed(commit_status::of_error(error.0.problems()))
            }
            Ok(pass) => {
                commits.extend(pass.report.commit.clone());
                commits.dedup();
                let now = (commits.clone(), pass.report.clone());
                if self.last.as_ref() == Some(&now) {
                    return;
                }
                self.last = Some(now);
                passed(pass)
            }
        };
        if !commits.is_empty() {
            self.sender.send_replace(Some(Arc::new(Subject { commits, outcome })));
        }
    }
}
