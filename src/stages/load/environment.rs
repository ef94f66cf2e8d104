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
    check::{Check, place_in},
    file::{
        self,
        environment::{EnvironmentFile, EnvironmentSpec, ImageEntry, KIND},
    },
    located::{Located, Place},
    placement,
    settings::{name, pool, puller, reference},
    text, values, yaml,
};

/// Nodes that an environment's file may have: a thousand images, and more.
const MAX_NODES: usize = 20_000;

/// The label of every Linux node. Source: <https://kubernetes.io/docs/reference/labels-annotations-taints/>.
const EVERY_LINUX_NODE: (&str, &str) = ("kubernetes.io/os", "linux");

/// Reads the file of the environment `id`.
///
/// # Errors
/// All that is wrong with it; of what is wrong with its structure the first.
pub fn load(
    id: &EnvironmentId,
    path: &str,
    entry: &Entry,
    settings: &Settings,
    warnings: &mut Vec<Problem>,
) -> Result<Environment, Failure> {
    let source = text::read(path, entry)?;
    let file: EnvironmentFile = yaml::parse(&source, KIND, MAX_NODES)?;
    let mut check = Check::new(&source);
    check.header(&file.api_version, &file.kind, KIND);
    let environment = environment(&mut check, id, path, file.spec, settings);
    let (environment, lints) = check.finish(Some(environment))?;
    warnings.extend(lints.into_iter().map(|(place, problem)| place_in(&source, place, problem)));
    Ok(environment)
}

type Lints = Vec<(Place, Problem)>;

fn environment(
    check: &mut Check<'_>,
    id: &EnvironmentId,
    path: &str,
    spec: EnvironmentSpec,
    settings: &Settings,
) -> (Environment, Lints) {
    let (images, lints) = images(check, spec.images);
    let inline = placement::inline(spec.node_selector, spec.tolerations, spec.affinity);
    let environment = Environment {
        id: id.clone(),
        path: path.to_owned(),
        display_name: spec.display_name,
        description: spec.description,
        images,
        placement: nodes(check, spec.pool, inline, settings),
        refresh: check.read(spec.refresh.as_ref(), values::duration).unwrap_or(settings.defaults.refresh),
        puller: puller(check, spec.puller, &settings.defaults.puller),
        resources: spec.resources.map(|resources| self::resources(check, resources)),
        suspend: spec.suspend.unwrap_or_default(),
    };
    (environment, lints)
}

fn images(check: &mut Check<'_>, entries: Located<Vec<ImageEntry>>) -> (Vec<Image>, Lints) {
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
    let mut lints = Vec::new();
    for entry in entries.value {
        if let Some(line) = names.insert(entry.name.value.clone(), entry.name.place.line) {
            check.report(entry.name.place, twice("image name", &entry.name.value, line));
        }
        let Some(image) = image(check, &entry) else { continue };
        let place = entry.image.place;
        if let Some(line) = references.insert(image.reference.clone(), place.line) {
            check.report(place, twice("reference", &image.reference.to_string(), line));
        }
        lints.extend(image.reference.lints().into_iter().map(|lint| {
            let hint = "write the whole reference, host/path:tag; if it is meant as it stands, ignore this";
            (place, Problem::new(Category::Reference, lint.to_string()).hint(hint))
        }));
        images.push(image);
    }
    (images, lints)
}

fn twice(what: &str, value: &str, line: usize) -> Problem {
    Problem::new(Category::Schema, format!("the {what} `{value}` is there twice, first in line {line}"))
        .hint("keep one of them")
}

fn image(check: &mut Check<'_>, entry: &ImageEntry) -> Option<Image> {
    if let Some(policy) = &entry.policy {
        check.report(
            policy.place,
            Problem::new(Category::Policy, "version policies come with a later release")
                .hint("remove it: the image then follows the tag of its reference, so choose the tag that you want"),
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
    inline: Option<file::Placement>,
    settings: &Settings,
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
        (Some(named), None) => pool(check, &named, &settings.pools).cloned().unwrap_or_default(),
        (None, Some(inline)) => placement::placement(check, inline),
        (None, None) => {
            let default = settings.defaults.pool.as_ref().and_then(|name| settings.pools.get(name));
            default.cloned().unwrap_or_else(|| {
                let (key, value) = EVERY_LINUX_NODE;
                Placement { node_selector: [(key.to_owned(), value.to_owned())].into(), ..Placement::default() }
            })
        }
    }
}

fn resources(check: &mut Check<'_>, file: file::environment::Resources) -> Resources {
    let mut range = |file: Option<file::environment::Range>| file.map(|file| self::range(check, file));
    Resources { memory: range(file.memory), cpu: range(file.cpu) }
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
