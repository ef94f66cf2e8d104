//! From the locked snapshot to manifests: the same commit gives the same bytes, on any machine.
//!
//! ```text
//! environments + settings + lock ─► data ─► engine (templates) ─► document ─► checks ─► seal ─► manifests
//! ```

mod checks;
mod collisions;
mod data;
mod digest;
mod document;
mod engine;
mod isolation;
pub mod names;
mod renderer;
mod sandbox;
mod seal;
mod shards;
mod tenant;
#[cfg(test)]
pub(super) mod tests;

use std::collections::BTreeMap;

use serde_json::Value;

pub use self::{
    digest::digest,
    isolation::{Process, isolate},
    renderer::Renderer,
    sandbox::{Refusal, Sandbox, Sources},
};

use self::{
    data::{Common, EnvironmentContext, PullerData},
    engine::Engine,
};
use crate::model::{
    batch::Batch,
    environment::Environment,
    failure::{Category, Failure, Problem},
    lock::{Lock, Lockfile},
    manifest::{Kind, Manifest, Manifests, Owner},
    settings::Settings,
};

/// What is chosen for a whole larder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Tells this larder's objects from those of another in the same cluster; a valid label value.
    pub instance: String,
}

impl Default for Options {
    fn default() -> Self {
        Self { instance: names::DEFAULT_INSTANCE.to_owned() }
    }
}

/// Pods that an environment costs on each of its nodes, once it retains as many previous digests as it may.
pub fn pods_a_node(environment: &Environment) -> usize {
    shards::count(environment.images.len() * (1 + environment.puller.retain))
}

/// Renders everything that the lock allows.
///
/// `templates` are the repository's own, by file name; they replace the built-in ones. Environments that failed or are
/// suspended have no entry: what they have in the cluster is for the plan to keep or to remove. A failure is that of its owner alone.
pub fn render(
    environments: &Batch<Environment>,
    settings: &Settings,
    templates: &BTreeMap<String, String>,
    lock: &Lock,
    options: &Options,
) -> Manifests {
    Renderer::default().render(environments, settings, templates, lock, options)
}

/// Has each tenant's objects applied in the name that larder.yaml gives it. A namespace belongs to no tenant's rights.
fn impersonate(manifests: &mut Manifests, settings: &Settings) {
    for (owner, result) in manifests {
        let Some(user) = settings.tenants.get(owner.tenant()).and_then(|tenant| tenant.impersonate.as_ref()) else {
            continue;
        };
        let own = result.iter_mut().flatten().filter(|manifest| manifest.id.kind != Kind::Namespace);
        own.for_each(|manifest| manifest.impersonate = Some(user.clone()));
    }
}

/// The same manifests, without those of owners that need a newer server. A version that is not known refuses nothing.
pub fn for_server(mut manifests: Manifests, version: Option<(u32, u32)>) -> Manifests {
    let Some(version) = version else { return manifests };
    for result in manifests.values_mut() {
        let needed = result.iter().flatten().filter_map(|manifest| Some((manifest, needs_server(manifest)?)));
        let too_new = needed.filter(|(_, needed)| *needed > version).map(|(manifest, (major, minor))| {
            let message =
                format!("{} needs Kubernetes {major}.{minor}, the server is {}.{}", manifest.id, version.0, version.1);
            Problem::new(Category::Cluster, message).hint("use the strategy `containers`, or upgrade the cluster")
        });
        if let Some(failure) = Failure::of(too_new.collect()) {
            *result = Err(failure);
        }
    }
    manifests
}

/// The server's version that an object needs, major and minor, if it is newer than the oldest supported one.
pub fn needs_server(manifest: &Manifest) -> Option<(u32, u32)> {
    let volumes = manifest.object.pointer("/spec/template/spec/volumes").and_then(Value::as_array);
    let image = volumes.is_some_and(|volumes| volumes.iter().any(|volume| volume.get("image").is_some()));
    // Image volumes: on by default from 1.35, https://kubernetes.io/docs/tasks/configure-pod-container/image-volumes/.
    (manifest.id.kind == Kind::DaemonSet && image).then_some((1, 35))
}

/// The lockfile of an environment, if anything in it is locked.
fn locked<'a>(
    entry: Option<&'a Result<Lockfile, Failure>>,
    environment: &Environment,
) -> Result<&'a Lockfile, Failure> {
    match entry {
        Some(Err(failure)) => Err(failure.clone()),
        Some(Ok(lockfile)) if !lockfile.images.is_empty() => Ok(lockfile),
        _ => Err(Problem::new(Category::Lock, "none of the environment's images is locked yet")
            .in_file(environment.id.lock_path())
            .hint("run `larder lock`, or see why its references could not be resolved")
            .into()),
    }
}

fn render_environment(
    engine: &Engine,
    environment: &Environment,
    settings: &Settings,
    lockfile: &Lockfile,
    options: &Options,
) -> Result<Vec<Manifest>, Problem> {
    let id = &environment.id;
    let tenant = tenant::declared(settings, &id.tenant)?;
    let instance = checked_instance(options)?;
    let owner = Owner::Environment(id.clone());
    let mut context = EnvironmentContext::new(Common::new(instance, &id.tenant, tenant), environment, tenant, settings);

    let mut expected = checks::Expected::new(Kind::ServiceAccount, &tenant.namespace, &context.service_account);
    let mut manifests = vec![make(engine, engine::SERVICE_ACCOUNT, &context, &expected, &owner, instance)?];

    let (shards, parts) = data::sharded(data::images(environment, tenant, lockfile));
    for (shard, images) in parts {
        let puller = PullerData::new(instance, environment, shard, shards);
        expected = checks::Expected::new(Kind::DaemonSet, &tenant.namespace, &puller.name);
        expected.selector = puller.selector.clone();
        expected.service_account = context.service_account.clone();
        expected.images = images.iter().map(|image| image.pinned.clone()).collect();
        expected.helpers = [context.helpers.hold.clone(), context.helpers.pause.clone()].into();
        context.puller = Some(puller);
        context.images = images;
        manifests.push(make(engine, engine::PULLER, &context, &expected, &owner, instance)?);
    }
    Ok(manifests)
}

/// One object: rendered, parsed, checked and sealed.
fn make(
    engine: &Engine,
    template: &str,
    context: &impl serde::Serialize,
    expected: &checks::Expected,
    owner: &Owner,
    instance: &str,
) -> Result<Manifest, Problem> {
    let text = engine.render(template, context)?;
    let object = document::parse(engine, template, &text)?;
    let manifest = seal::seal(object, expected.id(), owner, instance);
    checks::check(&manifest.object, expected).map_err(|violation| {
        let line = violation.field().map_or(0, |field| engine.line_of(template, field));
        engine.problem(template, line, violation.to_string()).hint(violation.hint())
    })?;
    Ok(manifest)
}

/// The instance, if Kubernetes takes it as a label's value.
fn checked_instance(options: &Options) -> Result<&str, Problem> {
    let instance = options.instance.as_str();
    if names::is_label_value(instance) {
        return Ok(instance);
    }
    let message = format!("the instance {instance:?} is not a valid value of a label");
    Err(Problem::new(Category::Name, message)
        .hint("use at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends"))
}
