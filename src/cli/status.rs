//! `larder status`: which node holds what.

mod directory;

use std::time::{Duration, Instant};

use clap::Args;

use super::{CliError, Exit, Printer, output::table, session};
use crate::{
    config::{SourceOptions, Target, TargetOptions, parse_duration},
    io::cluster::KubeCluster,
    model::{
        name::EnvironmentId,
        report::{NodeReport, NodeState},
    },
    pipeline::render_locked,
    stages::{
        coverage, render,
        standing::{self, Standing, State},
    },
};

/// Show for each environment and image the locked digest and the nodes that hold it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  larder status                                   the lock of the folder you are in, on the cluster
  larder status --repo URL --output wide          each node, with the kubelet's own message
  larder status research/geospatial --wait --timeout 10m
  larder status --target dir:manifests            whether the manifests in a directory are those of the lock

Exit code with --wait: 0 when every eligible node holds every image, 1 with the reasons when not.")]
pub struct Status {
    /// Only these environments, each `tenant/name`; by default all.
    environments: Vec<EnvironmentId>,
    #[command(flatten)]
    source: SourceOptions,
    #[command(flatten)]
    target: TargetOptions,
    /// Wait until every eligible node holds every image.
    #[arg(long)]
    wait: bool,
    /// How long --wait waits.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse_duration)]
    timeout: Duration,
    /// How the status is printed: `wide` adds each node.
    #[arg(long, value_enum, default_value_t)]
    output: StatusFormat,
}

/// How the status is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum StatusFormat {
    /// A line for each image.
    #[default]
    Text,
    /// A line for each image, and one for each node.
    Wide,
    /// For programs.
    Json,
}

/// Between two looks of `--wait`.
const PERIOD: Duration = Duration::from_secs(1);

impl Status {
    pub(super) async fn run(self, printer: &mut Printer) -> Result<Exit, CliError> {
        if let Target::Directory(path) = &self.target.target {
            return self.of_directory(path, printer).await;
        }
        let cluster = session::cluster(&self.target).await?;
        let deadline = Instant::now() + self.timeout;
        loop {
            let standing = self.look(&cluster).await?;
            let late = Instant::now() >= deadline;
            if self.wait && !standing.is_warm() && standing.may_become_warm() && !late {
                tokio::time::sleep(PERIOD).await;
                continue;
            }
            print(printer, &standing, self.output);
            if !self.wait || standing.is_warm() {
                return Ok(Exit::Success);
            }
            for reason in standing.reasons() {
                printer.note(&format!("not warm: {reason}"));
            }
            if late {
                printer.note(&format!("gave up after {:?}", self.timeout));
            }
            return Ok(Exit::Failure);
        }
    }

    async fn look(&self, cluster: &KubeCluster) -> Result<Standing, CliError> {
        let source = session::source(&self.source).await?;
        let environments = session::load(&source)?;
        let options = render::Options { instance: self.target.instance.clone() };
        let manifests = render_locked(&environments, &session::locked(&environments), &options);
        let (view, last) = (cluster.observe().await?, cluster.last_report().await?);
        let coverage = coverage::coverage(&environments.lock, &manifests, &view);
        let mut standing = standing::standing(&environments, &manifests, coverage, last, &source.snapshot.origin);
        standing.keep(&self.environments)?;
        Ok(standing)
    }
}

fn print(printer: &mut Printer, standing: &Standing, format: StatusFormat) {
    if format == StatusFormat::Json {
        return printer.json(standing);
    }
    let mut rows = Vec::new();
    for (id, environment) in &standing.environments {
        let images = environment.coverage.iter().flat_map(|coverage| &coverage.images);
        let before = rows.len();
        for image in images {
            rows.push(vec![
                id.to_string(),
                image.image.to_string(),
                image.digest.short().to_owned(),
                format!("{}/{}", image.ready, image.eligible),
                format!("{:?}", environment.state),
            ]);
            if format == StatusFormat::Wide {
                rows.extend(image.nodes.iter().map(node_row));
            }
        }
        if rows.len() == before {
            let none = || "-".to_owned();
            rows.push(vec![id.to_string(), none(), none(), none(), format!("{:?}", environment.state)]);
        }
        if format == StatusFormat::Wide {
            let excluded = environment.coverage.iter().flat_map(|coverage| &coverage.excluded);
            rows.extend(excluded.map(|(node, reason)| vec![format!("  {node}"), "left out: ".to_owned() + reason]));
        }
    }
    printer.text(&table(&["ENVIRONMENT", "IMAGE", "DIGEST", "COVERAGE", "STATE"], &rows));
    // Why removals are blocked is said once, below.
    for environment in standing.environments.values().filter(|environment| environment.state != State::Blocked) {
        environment.problems.iter().for_each(|problem| printer.problem(problem));
    }
    for (id, environment) in &standing.environments {
        environment.notes.iter().for_each(|note| printer.remark(&id.to_string(), note));
    }
    for problem in standing.lock_problem.iter().chain(&standing.cannot_start).chain(&standing.blocked) {
        printer.problem(problem);
    }
}

fn node_row(node: &NodeReport) -> Vec<String> {
    let state = match node.state {
        NodeState::Pulling => "pulling",
        NodeState::Success => "success",
        NodeState::Failure => "failure",
    };
    // The kubelet's message is long and stands last, where it moves no other column.
    let blank = || String::new();
    vec![
        format!("  {}", node.node),
        state.to_owned(),
        blank(),
        blank(),
        blank(),
        node.message.clone().unwrap_or_default(),
    ]
}
