//! `larder render`: the manifests of the locked environments.

use clap::Args;

use super::{CliError, Exit, Printer, session};
use crate::{
    config::{OutputFormat, SourceOptions},
    model::{
        manifest::{Manifest, Owner},
        name::{EnvironmentId, Name},
        yaml,
    },
    pipeline::render_locked,
    stages::render,
};

/// Print the manifests of the locked state; needs neither cluster nor registry
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  larder render                         all environments of the current directory
  larder render research/geospatial     one of them
  larder render | kubectl apply --server-side -f -")]
pub struct Render {
    /// Only these environments, each `tenant/name`; by default all, and the tenants' own objects.
    environments: Vec<EnvironmentId>,
    /// Instance name; lets several larders share a cluster.
    #[arg(long, value_name = "NAME", default_value = "default")]
    instance: String,
    /// Only environments of this tenant.
    #[arg(short = 'n', long, value_name = "NAME")]
    tenant: Option<Name>,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
    #[command(flatten)]
    source: SourceOptions,
}

impl Render {
    pub(super) async fn run(self, printer: &mut Printer) -> Result<Exit, CliError> {
        let source = session::source(&self.source).await?;
        let environments = session::load(&source)?;
        session::must_be_known(&self.environments, &environments)?;
        let options = render::Options { instance: self.instance };
        let manifests = render_locked(&environments, &session::locked(&environments), &options);
        let is_named = |tenant: &Name| self.tenant.as_ref().is_none_or(|named| named == tenant);
        let wanted = |owner: &Owner| match owner {
            Owner::Environment(id) => {
                (self.environments.is_empty() || self.environments.contains(id)) && is_named(&id.tenant)
            }
            Owner::Tenant(tenant) => self.environments.is_empty() && is_named(tenant),
        };
        let mut exit = session::report_broken(printer, &environments, &self.environments);
        let mut objects: Vec<&Manifest> = Vec::new();
        for (_, result) in manifests.iter().filter(|(owner, _)| wanted(owner)) {
            match result {
                Ok(manifests) => objects.extend(manifests),
                Err(failure) => {
                    printer.failure(failure);
                    exit = Exit::Failure;
                }
            }
        }
        objects.sort_by(|a, b| a.id.cmp(&b.id));
        match self.output {
            OutputFormat::Json => printer.json(&objects.iter().map(|manifest| &*manifest.object).collect::<Vec<_>>()),
            OutputFormat::Text => {
                for manifest in objects {
                    printer.text(&format!("---\n{}", yaml::to_yaml(&manifest.object)));
                }
            }
        }
        Ok(exit)
    }
}
