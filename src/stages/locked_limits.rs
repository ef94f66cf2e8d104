//! What larder.yaml allows a tenant, held against the lock: whatever is in a lockfile, and however it came there, nothing
//! beyond the bounds is rendered.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{
    batch::{Batch, succeeded},
    environment::Environment,
    failure::{Category, Failure, Location, Problem},
    lock::{Lock, LockedImage, Lockfile},
    name::{EnvironmentId, Name},
    settings::{Settings, Tenant},
    text,
};

/// The environments that must not be rendered as they are locked, and why.
///
/// A tenant's size is that of the images of all its environments together: compressed, of each image its largest
/// platform, the same digest once. Environments come in the order of their identities; those that no longer fit fail.
/// Previous digests that are retained do not count, since the lock does not know their sizes.
pub fn check(environments: &Batch<Environment>, settings: &Settings, lock: &Lock) -> BTreeMap<EnvironmentId, Failure> {
    let mut failures = BTreeMap::new();
    let mut used: BTreeMap<&Name, Used> = BTreeMap::new();
    for (id, environment) in succeeded(environments) {
        let (Some(tenant), Some(Ok(lockfile))) = (settings.tenants.get(&id.tenant), lock.get(id)) else { continue };
        let registries = registries(environment, tenant, lockfile);
        let problems = if registries.is_empty() {
            size(environment, tenant, lockfile, used.entry(&id.tenant).or_default()).into_iter().collect()
        } else {
            registries
        };
        failures.extend(Failure::of(problems).map(|failure| (id.clone(), failure)));
    }
    failures
}

/// What counts for a tenant so far.
#[derive(Default)]
struct Used<'a> {
    bytes: u64,
    digests: BTreeSet<&'a str>,
}

/// What is rendered: the file's images with their lines, then those that only the lockfile still has.
fn locked<'a>(
    environment: &'a Environment,
    lockfile: &'a Lockfile,
) -> impl Iterator<Item = (&'a Name, usize, &'a LockedImage)> {
    let names: BTreeSet<&Name> = environment.images.iter().map(|image| &image.name).collect();
    let named = environment.images.iter().filter_map(|i| Some((&i.name, i.line, lockfile.images.get(&i.name)?)));
    let rest = lockfile.images.iter().filter(move |(name, _)| !names.contains(name));
    named.chain(rest.map(|(name, image)| (name, 0, image)))
}

/// Locked images from where the tenant may not take any. The file's references are checked when it is read, but a lockfile
/// may name others.
fn registries(environment: &Environment, tenant: &Tenant, lockfile: &Lockfile) -> Vec<Problem> {
    let outside = locked(environment, lockfile).filter(|(.., image)| !tenant.allows(&image.reference));
    outside
        .map(|(name, _, image)| {
            let (tenant, repository) = (&environment.id.tenant, image.reference.repository());
            let message = format!("the image {name} is locked at `{repository}`, which the tenant `{tenant}` may not use");
            Problem::new(Category::Policy, message)
                .in_file(environment.id.lock_path())
                .hint("larder locks the file's own reference as soon as its registry answers; if someone changed the lockfile, set it back")
        })
        .collect()
}

/// Adds an environment's images to what its tenant has, if they fit.
fn size<'a>(
    environment: &'a Environment,
    tenant: &Tenant,
    lockfile: &'a Lockfile,
    used: &mut Used<'a>,
) -> Option<Problem> {
    let most = tenant.bounds.max_size?;
    let mut digests = BTreeSet::new();
    let new: Vec<(&Name, usize, u64)> = locked(environment, lockfile)
        .filter(|(.., image)| !used.digests.contains(image.digest.as_str()) && digests.insert(image.digest.as_str()))
        .map(|(name, line, image)| {
            (name, line, image.platforms.iter().map(|p| p.size.unwrap_or_default()).max().unwrap_or_default())
        })
        .collect();
    let bytes: u64 = new.iter().fold(0, |sum, (.., size)| sum.saturating_add(*size));
    if used.bytes.saturating_add(bytes) <= most {
        used.bytes += bytes;
        used.digests.extend(digests);
        return None;
    }
    let (name, line, largest) = new.into_iter().max_by_key(|(.., size)| *size)?;
    let message = format!(
        "the tenant `{}` may have images of {}; these are {} beside {} of its other environments, the largest is {name} with {}",
        environment.id.tenant,
        text::size(most),
        text::size(bytes),
        text::size(used.bytes),
        text::size(largest),
    );
    let mut problem = Problem::new(Category::Policy, message)
        .hint("use smaller images, or fewer; else ask for a larger `maxSize` of the tenant in larder.yaml");
    problem.location = Some(Location { path: environment.path.clone(), line, column: 0, length: 0 });
    Some(problem)
}
