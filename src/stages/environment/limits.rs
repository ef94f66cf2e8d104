//! What larder.yaml allows a tenant, held against its environments' files.

use std::collections::BTreeMap;

use crate::model::{
    batch::{Batch, succeeded},
    environment::{Environment, Strategy},
    failure::{Category, Location, Problem},
    lock::Lock,
    name::{EnvironmentId, Name},
    reference::ImageReference,
    settings::{Settings, Tenant},
    snapshot::Snapshot,
};

use super::super::source::{check::Check, located::Place, text};

/// The tenant whose directory a file is in.
#[derive(Clone, Copy)]
pub struct Tenancy<'a> {
    /// Its name.
    pub name: &'a Name,
    /// What larder.yaml says about it.
    pub tenant: &'a Tenant,
}

fn refused(message: String, hint: String) -> Problem {
    Problem::new(Category::Policy, message).hint(hint)
}

fn list<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    if items.is_empty() { "nothing".to_owned() } else { items.join(", ") }
}

/// Reports an image from where the tenant may not take any.
pub fn image(check: &mut Check<'_>, tenancy: Tenancy<'_>, place: Place, reference: &ImageReference) {
    if !tenancy.tenant.allows(reference) {
        check.report(place, not_allowed(tenancy, reference));
    }
}

fn not_allowed(tenancy: Tenancy<'_>, reference: &ImageReference) -> Problem {
    let allowed = list(tenancy.tenant.bounds.registries.iter().flatten());
    refused(
        format!("images from `{}` are not allowed for tenant `{}`", reference.repository(), tenancy.name),
        format!("allowed are: {allowed}; else ask for an entry in `registries` of the tenant in larder.yaml"),
    )
}

/// Reports a pool that the tenant may not use.
pub fn pool(check: &mut Check<'_>, tenancy: Tenancy<'_>, place: Place, name: &str) {
    if let Some(pools) = &tenancy.tenant.bounds.pools
        && !pools.contains(name)
    {
        check.report(
            place,
            refused(
                format!("the tenant `{}` may not use the pool `{name}`", tenancy.name),
                format!("allowed are: {}; else ask for an entry in `pools` of the tenant in larder.yaml", list(pools)),
            ),
        );
    }
}

/// Reports nodes that are not named by a pool, where only pools are allowed.
pub fn inline(check: &mut Check<'_>, tenancy: Tenancy<'_>, place: Place, what: &str) {
    let bounds = &tenancy.tenant.bounds;
    if bounds.pools_only {
        let pools = bounds.pools.as_ref().map_or_else(|| "a pool of larder.yaml".to_owned(), list);
        check.report(
            place,
            refused(
                format!("the tenant `{}` may only use pools, and {what}", tenancy.name),
                format!("write `pool:` with one of: {pools}; else ask for `inlinePlacement: true` of the tenant in larder.yaml"),
            ),
        );
    }
}

/// Reports a strategy that the tenant may not choose.
pub fn strategy(check: &mut Check<'_>, tenancy: Tenancy<'_>, place: Place, strategy: Strategy) {
    if let Some(strategies) = &tenancy.tenant.bounds.strategies
        && !strategies.contains(&strategy)
    {
        check.report(
            place,
            refused(
                format!("the tenant `{}` may not use the strategy `{strategy}`", tenancy.name),
                format!(
                    "allowed are: {}; else ask for an entry in `strategies` of the tenant in larder.yaml",
                    list(strategies)
                ),
            ),
        );
    }
}

/// Turns environments that are too many for their tenant into failures.
///
/// What is locked already comes first, then what is added, each in the order of identities: a new image never pushes out
/// another environment's old one.
pub fn count_images(environments: &mut Batch<Environment>, settings: &Settings, lock: &Lock, snapshot: &Snapshot) {
    let mut refused = BTreeMap::new();
    for (name, tenant) in &settings.tenants {
        let Some(most) = tenant.bounds.max_images else { continue };
        let of_tenant: Vec<_> = succeeded(environments).filter(|(id, _)| id.tenant == *name).collect();
        let is_locked = |id: &EnvironmentId, environment: &Environment, index: usize| {
            let locked = lock.get(id).and_then(|lockfile| lockfile.as_ref().ok());
            locked.is_some_and(|lockfile| lockfile.images.contains_key(&environment.images[index].name))
        };
        let mut total = 0;
        for old in [true, false] {
            for &(id, environment) in &of_tenant {
                let counted: Vec<usize> =
                    (0..environment.images.len()).filter(|&index| is_locked(id, environment, index) == old).collect();
                if refused.contains_key(id) || counted.is_empty() {
                    continue;
                }
                if total + counted.len() <= most {
                    total += counted.len();
                    continue;
                }
                let line = environment.images[counted[most - total]].line;
                let message = format!("the tenant `{name}` exceeds its `maxImages` ({most})");
                let hint = "remove images here or in the tenant's other environments; else ask for a larger one in larder.yaml";
                let problem = Problem::new(Category::Policy, message).hint(hint);
                refused.insert(id.clone(), at_line(problem, snapshot, &environment.path, line));
            }
        }
    }
    environments.extend(refused.into_iter().map(|(id, problem)| (id, Err(problem.into()))));
}

fn at_line(mut problem: Problem, snapshot: &Snapshot, path: &str, line: usize) -> Problem {
    problem.location = Some(Location { path: path.to_owned(), line, column: 0, length: 0 });
    problem.source = snapshot.files.get(path).and_then(|entry| text::read(path, entry).ok()).map(|source| source.text);
    problem
}
