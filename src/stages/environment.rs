//! `environments/<tenant>/<name>.yaml`: from the file to a checked environment, completed with the defaults.

use std::collections::BTreeMap;

use crate::model::{
    environment::{Environment, Image, Placement, Range, Resources},
    failure::{Category, Failure, Problem},
    name::EnvironmentId,
    resolution::Platform,
    settings::Settings,
    snapshot::Entry,
};

pub mod dialect;
pub mod file;
pub mod identity;
pub mod limits;

use self::{
    file::{EnvironmentSpec, ImageEntry},
    limits::Tenancy,
};
use super::{
    settings::{file::shared, name, placement, pool, puller, reference},
    source::{
        check::Check,
        located::{Located, Place},
        text, values,
    },
};

/// Reads the file of the environment `id`.
///
/// # Errors
/// All that is wrong with it.
pub fn load(id: &EnvironmentId, path: &str, entry: &Entry, settings: &Settings) -> Result<Environment, Failure> {
    let source = text::read_yaml(path, entry)?;
    let tenant = settings.tenants.get(&id.tenant).ok_or_else(|| identity::undeclared(id, path, settings))?;
    let tenancy = Tenancy { name: &id.tenant, tenant };
    let (spec, mut check) = dialect::read(&source, tenancy)?;
    let environment = environment(&mut check, id, path, spec, settings, tenancy);
    check.finish(Some(environment))
}

fn environment(
    check: &mut Check<'_>,
    id: &EnvironmentId,
    path: &str,
    spec: EnvironmentSpec,
    settings: &Settings,
    tenancy: Tenancy<'_>,
) -> Environment {
    let images = images(check, spec.images, tenancy);
    let inline =
        shared::Placement { node_selector: spec.node_selector, tolerations: spec.tolerations, affinity: spec.affinity };
    let (display_name, description) = (check.prose(spec.display_name, false), check.prose(spec.description, true));
    let placement = nodes(check, spec.pool, inline, settings, tenancy);
    let refresh = check.read(spec.refresh.as_ref(), values::duration).unwrap_or(settings.defaults.refresh);
    let strategy = spec.puller.as_ref().and_then(|puller| puller.strategy.as_ref()).map(|strategy| strategy.place);
    let puller = puller(check, spec.puller, &settings.defaults.puller);
    limits::strategy(check, tenancy, strategy.unwrap_or_default(), puller.strategy);
    Environment {
        id: id.clone(),
        path: path.to_owned(),
        display_name,
        description,
        images,
        placement,
        refresh,
        puller,
        resources: spec.resources.map(|resources| self::resources(check, resources)),
        suspend: spec.suspend.unwrap_or_default(),
        allow: spec.allow.into_iter().flatten().collect(),
    }
}

fn images(check: &mut Check<'_>, entries: Located<Vec<ImageEntry>>, tenancy: Tenancy<'_>) -> Vec<Image> {
    if entries.value.is_empty() {
        check.report(
            entries.place,
            Problem::new(Category::Schema, "there are no images")
                .hint("add one, or delete the file: that removes the environment"),
        );
    }
    let mut images: Vec<Image> = Vec::new();
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    let mut references = BTreeMap::new();
    for entry in entries.value {
        if let Some(line) = names.insert(entry.name.value.clone(), entry.name.place.line) {
            check.report(entry.name.place, twice("image name", &entry.name.value, line));
        }
        let Some(image) = image(check, &entry) else { continue };
        let place = entry.image.place;
        limits::image(check, tenancy, place, &image.reference);
        if let Some(line) = references.insert(image.reference.clone(), place.line) {
            check.report(place, twice("reference", &image.reference.to_string(), line));
        }
        images.push(image);
    }
    images
}

fn twice(what: &str, value: &str, line: usize) -> Problem {
    Problem::new(Category::Schema, format!("duplicate {what} `{value}` (first on line {line})"))
        .hint("keep one of them")
}

fn image(check: &mut Check<'_>, entry: &ImageEntry) -> Option<Image> {
    if let Some(policy) = &entry.policy {
        check.report(
            policy.place,
            Problem::new(Category::Policy, "version policies are not supported yet").hint(
                "remove `policy`: the image then follows the tag of its reference, so choose the tag that you want",
            ),
        );
    }
    let name = check.read(Some(&entry.name), name);
    let reference = reference(check, &entry.image);
    let pull_secret = check.read(entry.pull_secret.as_ref(), values::object_name);
    let mut platforms: Vec<Platform> = Vec::new();
    for text in entry.platforms.iter().flatten() {
        let platform = check.read(Some(text), |text| {
            text.parse().map_err(|error: crate::model::resolution::PlatformError| {
                Problem::new(Category::Schema, error.to_string()).hint("write for example linux/amd64 or linux/arm64")
            })
        });
        platforms.extend(platform);
    }
    Some(Image { name: name?, reference: reference?, pull_secret, platforms, line: entry.image.place.line })
}

fn nodes(
    check: &mut Check<'_>,
    named: Option<Located<String>>,
    inline: shared::Placement,
    settings: &Settings,
    tenancy: Tenancy<'_>,
) -> Placement {
    match (named, inline.place()) {
        (Some(named), Some(_)) => {
            check.report(
                named.place,
                Problem::new(Category::Schema, "there are both a pool and nodeSelector, tolerations or affinity")
                    .hint("keep the pool, or write all of it inline"),
            );
            Placement::default()
        }
        (Some(named), None) => match pool(check, &named, &settings.pools) {
            Some(found) => {
                limits::pool(check, tenancy, named.place, &named.value);
                found.clone()
            }
            None => Placement::default(),
        },
        (None, Some(place)) => {
            limits::inline(check, tenancy, place, "this environment chooses nodes itself");
            placement::placement(check, inline)
        }
        (None, None) => by_default(check, settings, tenancy),
    }
}

/// The nodes of an environment that says nothing about them.
fn by_default(check: &mut Check<'_>, settings: &Settings, tenancy: Tenancy<'_>) -> Placement {
    let default = settings.defaults.pool.as_ref().and_then(|name| Some((name, settings.pools.get(name)?)));
    if let Some((name, placement)) = default {
        limits::pool(check, tenancy, Place::default(), name);
        return placement.clone();
    }
    limits::inline(check, tenancy, Place::default(), "this environment is for every Linux node");
    Placement::every_linux_node()
}

fn resources(check: &mut Check<'_>, file: file::Resources) -> Resources {
    let mut range = |file: Option<file::Range>| file.map(|file| self::range(check, file));
    let (memory, cpu) = (range(file.memory), range(file.cpu));
    let mut extra = BTreeMap::new();
    for (name, quantity) in check.entries(file.extra) {
        let name = check.read(Some(&name), values::label_key);
        if let (Some(name), Some(_)) = (name, check.read(Some(&quantity), values::quantity)) {
            extra.insert(name, quantity.value);
        }
    }
    Resources { memory, cpu, extra }
}

fn range(check: &mut Check<'_>, file: file::Range) -> Range {
    let guarantee = check.read(file.guarantee.as_ref(), values::quantity);
    let limit = check.read(file.limit.as_ref(), values::quantity);
    if let (Some(guarantee), Some(limit), Some(text)) = (guarantee, limit, &file.limit)
        && guarantee > limit
    {
        check.report(
            text.place,
            Problem::new(Category::Schema, "the limit is below the guarantee")
                .hint("write a limit of at least the guarantee"),
        );
    }
    Range { guarantee: file.guarantee.map(|text| text.value), limit: file.limit.map(|text| text.value) }
}
