//! `larder status`: locked digests and node coverage.

mod directory;

use std::time::{Duration, Instant};

use clap::Args;

use super::{CliError, Exit, Printer, output::table, run::print_findings, session};
use crate::{
    config::{SourceOptions, Target, TargetOptions, parse_duration},
    io::cluster::KubeCluster,
    model::{
        name::{EnvironmentId, Name},
        status::{NodeStatus, Status},
    },
    pipeline::render_locked,
    stages::{coverage, render, status},
};

/// Show each environment's locked digests and node coverage
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  larder status                                   the current directory's lock, on the cluster
  larder status --repo URL --output wide          each node, with the kubelet's message
  larder status research/geospatial --wait --timeout 10m
  larder status --target dir:manifests            check a directory of manifests

Exit code with --wait: 0 if every eligible node has every image, otherwise 1 with the reasons.")]
pub struct StatusCommand {
    /// Only these environments, each `tenant/name`; by default all.
    environments: Vec<EnvironmentId>,
    /// Only environments of this tenant.
    #[arg(short = 'n', long, value_name = "NAME")]
    tenant: Option<Name>,
    /// Wait until every eligible node has every image.
    #[arg(long)]
    wait: bool,
    /// Timeout for --wait.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse_duration)]
    timeout: Duration,
    /// Output format: `wide` adds each node.
    #[arg(short, long, value_enum, default_value_t)]
    output: StatusFormat,
    #[command(flatten)]
    source: SourceOptions,
    #[command(flatten)]
    target: TargetOptions,
}

/// How the status is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum StatusFormat {
    /// A line for each image.
    #[default]
    Text,
    /// A line for each image, and one for each node.
    Wide,
    /// Machine-readable.
    Json,
}

/// Between two looks of `--wait`.
const PERIOD: Duration = Duration::from_secs(1);

impl StatusCommand {
    pub(super) async fn run(self, printer: &mut Printer) -> Result<Exit, CliError> {
        if let Target::Directory(path) = &self.target.target {
            return self.of_directory(path, printer).await;
        }
        let cluster = session::cluster(&self.target).await?;
        let deadline = Instant::now() + self.timeout;
        loop {
            let status = self.look(&cluster).await?;
            let late = Instant::now() >= deadline;
            if self.wait && !status.is_warm() && status.is_reconciling() && !late {
                tokio::time::sleep(PERIOD).await;
                continue;
            }
            print(printer, &status, self.output);
            if !self.wait || status.is_warm() {
                return Ok(Exit::Success);
            }
            for reason in status::why_not_warm(&status) {
                printer.note(&format!("not warm: {reason}"));
            }
            if late {
                printer.note(&format!("timed out after {:?}", self.timeout));
            }
            return Ok(Exit::Failure);
        }
    }

    /// Whether an environment is shown.
    fn concerns(&self, id: &EnvironmentId) -> bool {
        let is_named = self.environments.is_empty() || self.environments.contains(id);
        is_named && self.tenant.as_ref().is_none_or(|tenant| id.tenant == *tenant)
    }

    async fn look(&self, cluster: &KubeCluster) -> Result<Status, CliError> {
        let source = session::source(&self.source).await?;
        let environments = session::load(&source)?;
        let options = render::Options { instance: self.target.instance.clone() };
        let manifests = render_locked(&environments, &session::locked(&environments), &options);
        let (observation, published) = (cluster.observe().await?, cluster.published_status().await?);
        let mut status = status::of_files(&environments, &manifests, &source.snapshot.origin, published.as_ref());
        status::observe(&mut status, coverage::coverage(&environments.lock, &manifests, &observation));
        status::keep(&mut status, &self.environments)?;
        status.environments.retain(|id, _| self.concerns(id));
        Ok(status)
    }
}

fn print(printer: &mut Printer, status: &Status, format: StatusFormat) {
    if format == StatusFormat::Json {
        return printer.json(status);
    }
    let mut rows = Vec::new();
    for (id, environment) in &status.environments {
        let state = environment.state().as_str().to_owned();
        let none = || "-".to_owned();
        if environment.nodes.is_none() || environment.images.is_empty() {
            rows.push(vec![id.to_string(), none(), none(), none(), state]);
            continue;
        }
        for image in &environment.images {
            let count = image.coverage.as_ref().map_or_else(none, |seen| format!("{}/{}", seen.ready, seen.eligible));
            let digest = image.digest.short().to_owned();
            rows.push(vec![id.to_string(), image.name.to_string(), digest, count, state.clone()]);
            if format == StatusFormat::Wide {
                rows.extend(image.coverage.iter().flat_map(|seen| &seen.nodes).map(node_row));
            }
        }
        if format == StatusFormat::Wide {
            let ineligible = environment.nodes.iter().flat_map(|nodes| &nodes.ineligible);
            rows.extend(ineligible.map(|(node, reason)| vec![format!("  {node}"), format!("not eligible: {reason}")]));
        }
    }
    printer.text(&table(&["ENVIRONMENT", "IMAGE", "DIGEST", "COVERAGE", "STATE"], &rows));
    print_findings(printer, status);
}

fn node_row(node: &NodeStatus) -> Vec<String> {
    // The kubelet's message is long and stands last, where it moves no other column.
    let blank = || String::new();
    vec![
        format!("  {}", node.node),
        node.state.as_str().to_owned(),
        blank(),
        blank(),
        blank(),
        node.message.clone().unwrap_or_default(),
    ]
}
