//! A tenant's own objects: its namespace and its records.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Options, checked_instance,
    checks::Expected,
    data::{Common, RecordsData, TenantContext},
    engine::{self, Engine},
    make,
};
use crate::model::{
    batch::Batch,
    environment::Environment,
    failure::{Category, Failure, Problem},
    lock::{Lock, Lockfile},
    manifest::{Kind, Manifest, Owner},
    name::Name,
    settings::{Settings, Tenant},
};

/// The tenants with an environment, or with something in the lock, and their records: a line `reference@digest` for each
/// locked image, sorted; of environments whose file is broken, too.
///
/// A lockfile that cannot be read is a failure: records without its images would say that they are gone.
pub fn records<'a>(
    environments: &'a Batch<Environment>,
    lock: &'a Lock,
) -> BTreeMap<&'a Name, Result<String, Failure>> {
    let mut lines: BTreeMap<&Name, Result<BTreeSet<String>, Failure>> =
        environments.keys().map(|id| (&id.tenant, Ok(BTreeSet::new()))).collect();
    for (id, lockfile) in lock {
        let lines = lines.entry(&id.tenant).or_insert_with(|| Ok(BTreeSet::new()));
        match (lines, lockfile) {
            (Ok(lines), Ok(Lockfile { images })) => {
                lines.extend(images.values().map(|image| image.reference.pinned(&image.digest)));
            }
            (lines @ Ok(_), Err(failure)) => *lines = Err(failure.clone()),
            (Err(_), _) => {}
        }
    }
    let joined = |lines: BTreeSet<String>| lines.into_iter().collect::<Vec<_>>().join("\n");
    lines.into_iter().map(|(name, lines)| (name, lines.map(joined))).collect()
}

/// The tenant as `larder.yaml` declares it.
pub fn declared<'a>(settings: &'a Settings, name: &Name) -> Result<&'a Tenant, Problem> {
    settings.tenants.get(name).ok_or_else(|| {
        Problem::new(Category::Policy, format!("the tenant {name} is not declared in larder.yaml"))
            .hint(format!("add `spec.tenants.{name}` with its namespace to larder.yaml, or remove the directory"))
    })
}

/// The tenant's objects: its namespace from its first environment on, since pull secrets must be put there before
/// anything can be locked, and its records, the `list`, as soon as an image is locked. None for an undeclared tenant with no lock.
pub fn render(
    engine: &Engine,
    name: &Name,
    settings: &Settings,
    list: &str,
    options: &Options,
) -> Result<Option<Vec<Manifest>>, Failure> {
    let tenant = match declared(settings, name) {
        Ok(tenant) if list.is_empty() && !tenant.create_namespace => return Ok(None),
        Err(_) if list.is_empty() => return Ok(None),
        tenant => tenant?,
    };
    let instance = checked_instance(options)?;
    let owner = Owner::Tenant(name.clone());
    let context = TenantContext {
        common: Common::new(instance, name, tenant),
        records: RecordsData { name: &settings.records.name, list },
    };
    let mut manifests = Vec::new();
    if tenant.create_namespace {
        let expected = Expected::new(Kind::Namespace, "", &tenant.namespace);
        manifests.push(make(engine, engine::NAMESPACE, &context, &expected, &owner, instance)?);
    }
    if !list.is_empty() {
        let expected = Expected::new(Kind::ConfigMap, &tenant.namespace, &settings.records.name);
        manifests.push(make(engine, engine::RECORDS, &context, &expected, &owner, instance)?);
    }
    Ok(Some(manifests))
}
