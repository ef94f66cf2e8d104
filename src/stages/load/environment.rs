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

use super::{
    bounds,
    check::Check,
    dialect::{self, Folder},
    file::{
        self,
        environment::{EnvironmentSpec, ImageEntry},
    },
    identity,
    located::{Located, Place},
    placement,
    settings::{name, pool, puller, reference},
    text, values,
};

/// Nodes that an environment's file may have: a thousand images, and more.
pub const MAX_NODES: usize = 20_000;

/// The label of every Linux node. Source: <https://kubernetes.io/docs/reference/labels-annotations-taints/>.
const EVERY_LINUX_NODE: (&str, &str) = ("kubernetes.io/os", "linux");

/// Reads the file of the environment `id`.
///
/// # Errors
/// All that is wrong with it.
pub fn load(id: &EnvironmentId, path: &str, entry: &Entry, settings: &Settings) -> Result<Environment, Failure> {
    let source = text::read_yaml(path, entry)?;
    let tenant = settings.tenants.get(&id.tenant).ok_or_else(|| identity::undeclared(id, path, settings))?;
    let folder = Folder { name: &id.tenant, tenant };
    let (spec, mut check) = dialect::read(&source, folder)?;
    let environment = environment(&mut check, id, path, spec, settings, folder);
    check.finish(Some(environment))
}

fn environment(
    check: &mut Check<'_>,
    id: &EnvironmentId,
    path: &str,
    spec: EnvironmentSpec,
    settings: &Settings,
    folder: Folder<'_>,
) -> Environment {
    let images = images(check, spec.images, folder);
    let place = bounds::place_of_inline(spec.node_selector.as_ref(), spec.tolerations.as_ref(), spec.affinity.as_ref());
    let inline = placement::inline(spec.node_selector, spec.tolerations, spec.affinity).map(|inline| (place, inline));
    let (display_name, description) = (check.prose(spec.display_name, false), check.prose(spec.description, true));
    let placement = nodes(check, spec.pool, inline, settings, folder);
    let refresh = check.read(spec.refresh.as_ref(), values::duration).unwrap_or(settings.defaults.refresh);
    let strategy = spec.puller.as_ref().and_then(|puller| puller.strategy.as_ref()).map(|strategy| strategy.place);
    let puller = puller(check, spec.puller, &settings.defaults.puller);
    bounds::strategy(check, folder, strategy.unwrap_or_default(), puller.strategy);
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

fn images(check: &mut Check<'_>, entries: Located<Vec<ImageEntry>>, folder: Folder<'_>) -> Vec<Image> {
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
        bounds::image(check, folder, place, &image.reference);
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
    inline: Option<(Place, file::Placement)>,
    settings: &Settings,
    folder: Folder<'_>,
) -> Placement {
    match (named, inline) {
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
                bounds::pool(check, folder, named.place, &named.value);
                found.clone()
            }
            None => Placement::default(),
        },
        (None, Some((place, inline))) => {
            bounds::inline(check, folder, place, "this environment chooses nodes itself");
            placement::placement(check, inline)
        }
        (None, None) => by_default(check, settings, folder),
    }
}

/// The nodes of an environment that says nothing about them.
fn by_default(check: &mut Check<'_>, settings: &Settings, folder: Folder<'_>) -> Placement {
    let default = settings.defaults.pool.as_ref().and_then(|name| Some((name, settings.pools.get(name)?)));
    if let Some((name, placement)) = default {
        bounds::pool(check, folder, Place::default(), name);
        return placement.clone();
    }
    bounds::inline(check, folder, Place::default(), "this environment is for every Linux node");
    let (key, value) = EVERY_LINUX_NODE;
    Placement { node_selector: [(key.to_owned(), value.to_owned())].into(), ..Placement::default() }
}

fn resources(check: &mut Check<'_>, file: file::environment::Resources) -> Resources {
    let mut range = |file: Option<file::environment::Range>| file.map(|file| self::range(check, file));
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

fn range(check: &mut Check<'_>, file: file::environment::Range) -> Range {
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
