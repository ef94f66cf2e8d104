//! `larder render`: the manifests of the locked environments.

use clap::Args;

use super::{CliError, Exit, Printer, session};
use crate::{
    config::{OutputFormat, SourceOptions},
    model::{
        manifest::{Manifest, Owner},
        name::EnvironmentId,
        yaml,
    },
    pipeline::render_locked,
    stages::render,
};

/// Print the manifests of what is locked; needs neither cluster nor registry
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  larder render                         all environments of the directory you are in
  larder render research/geospatial     one of them
  larder render | kubectl apply --server-side -f -")]
pub struct Render {
    /// Only these environments, each `tenant/name`; by default all, and the tenants' own objects.
    environments: Vec<EnvironmentId>,
    #[command(flatten)]
    source: SourceOptions,
    /// Tells several larders of one cluster apart.
    #[arg(long, value_name = "NAME", default_value = "default")]
    instance: String,
    /// How manifests are printed.
    #[arg(long, value_enum, default_value_t)]
    output: OutputFormat,
}

impl Render {
    pub(super) async fn run(self, printer: &mut Printer) -> Result<Exit, CliError> {
        let source = session::source(&self.source).await?;
        let environments = session::load(&source)?;
        session::must_be_known(&self.environments, &environments)?;
        let options = render::Options { instance: self.instance };
        let manifests = render_locked(&environments, &session::locked(&environments), &options);
        let wanted = |owner: &Owner| match owner {
            Owner::Environment(id) => self.environments.is_empty() || self.environments.contains(id),
            Owner::Tenant(_) => self.environments.is_empty(),
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
