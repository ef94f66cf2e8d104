//! The tenants of `larder.yaml`, and what they are allowed.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{
    environment::Placement,
    failure::{Category, Problem},
    name::Name,
    pattern::RepositoryPattern,
    settings::{Bounds, Tenant},
};

use super::{
    super::source::{
        check::Check,
        located::{Entries, Located, Place},
        values,
    },
    file, name, pool,
};

/// The user name of a service account begins with this. Source:
/// <https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/>.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// Checks the tenants.
pub fn tenants(
    check: &mut Check<'_>,
    entries: Option<Entries<file::Tenant>>,
    pools: &BTreeMap<String, Placement>,
) -> BTreeMap<Name, Tenant> {
    let mut tenants = BTreeMap::new();
    let mut owners: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for (key, file) in check.entries(entries) {
        let name = check.read(Some(&key), name);
        let place = file.namespace.place;
        let Some(tenant) = tenant(check, file, pools) else { continue };
        let Some(name) = name else { continue };
        let namespace = &tenant.namespace;
        if let Some((other, line)) = owners.insert(namespace.clone(), (key.value, key.place.line)) {
            let message =
                format!("the namespace `{namespace}` belongs to the tenant `{other}` already, in line {line}");
            check
                .report(place, Problem::new(Category::Policy, message).hint("give each tenant a namespace of its own"));
        }
        tenants.insert(name, tenant);
    }
    tenants
}

fn tenant(check: &mut Check<'_>, file: file::Tenant, pools: &BTreeMap<String, Placement>) -> Option<Tenant> {
    let namespace = check.read(Some(&file.namespace), values::namespace);
    let pools_only = !file.inline_placement.unwrap_or(file.pools.is_none());
    let bounds = Bounds {
        registries: file.registries.map(|list| registries(check, &list)),
        pools: file
            .pools
            .map(|list| some(check, &list, "pools").iter().filter_map(|name| pool_name(check, name, pools)).collect()),
        pools_only,
        strategies: file.strategies.map(|list| some(check, &list, "strategies").iter().copied().collect()),
        max_images: file.max_images.map(|most| above_zero(check, &most)),
        max_size: check.read(file.max_size.as_ref(), values::quantity).map(|bytes| bytes as u64),
    };
    let pull_secrets: BTreeSet<String> =
        file.pull_secrets.iter().flatten().filter_map(|name| check.read(Some(name), values::object_name)).collect();
    let impersonate = check.read(file.impersonate.as_ref(), service_account);
    Some(Tenant {
        namespace: namespace?,
        create_namespace: file.create_namespace.unwrap_or_default(),
        bounds,
        pull_secrets: pull_secrets.into_iter().collect(),
        impersonate,
    })
}

/// The items of a list that bounds something. An empty one would allow nothing, which nobody means.
fn some<'a, T>(check: &mut Check<'_>, list: &'a Located<Vec<T>>, field: &str) -> &'a [T] {
    if list.value.is_empty() {
        let problem =
            Problem::new(Category::Schema, format!("`{field}` allows nothing, so that no environment can exist"));
        check.report(list.place, problem.hint("list what is allowed, or remove the field to allow everything"));
    }
    &list.value
}

fn registries(check: &mut Check<'_>, list: &Located<Vec<Located<String>>>) -> Vec<RepositoryPattern> {
    some(check, list, "registries").iter().filter_map(|text| check.read(Some(text), str::parse)).collect()
}

fn pool_name(check: &mut Check<'_>, name: &Located<String>, pools: &BTreeMap<String, Placement>) -> Option<String> {
    pool(check, name, pools).map(|_| name.value.clone())
}

fn above_zero(check: &mut Check<'_>, Located { value, place }: &Located<u32>) -> usize {
    if *value == 0 {
        check.report(
            Place { ..*place },
            Problem::new(Category::Schema, "a tenant without images has no use")
                .hint("write at least 1, or remove the tenant"),
        );
    }
    *value as usize
}

/// A service account as a user.
fn service_account(text: &str) -> Result<String, Problem> {
    let parts = text.strip_prefix(SERVICE_ACCOUNT).and_then(|rest| rest.split_once(':'));
    match parts {
        // kube-system's accounts may do far too much.
        Some((namespace, name)) if !name.contains(':') => {
            values::namespace(namespace)?;
            values::object_name(name)?;
            Ok(text.to_owned())
        }
        _ => Err(Problem::new(Category::Schema, format!("`{text}` is not a service account"))
            .hint(format!("write {SERVICE_ACCOUNT}NAMESPACE:NAME"))),
    }
}
