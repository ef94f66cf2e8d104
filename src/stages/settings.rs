//! `larder.yaml`: from the file to checked settings, with the defaults for what it leaves out.

pub mod file;
pub mod placement;
mod registries;
mod tenant;

use std::{collections::BTreeMap, time::Duration};

use crate::model::{
    environment::{self, Placement, Strategy},
    failure::{Category, Failure, Problem},
    name::Name,
    redact,
    reference::ImageReference,
    settings::{Confirmed, Defaults, Helpers, LockSettings, Prune, Records, Settings},
    snapshot::Entry,
};

use self::file::{KIND, SettingsFile, SettingsSpec, shared};
use super::source::{
    check::{self, Check},
    located::Located,
    suggest, text, values,
};

const REFRESH: Duration = Duration::from_secs(2 * 3600);
const DEADLINE: Duration = Duration::from_secs(30 * 60);
const MAX_UNAVAILABLE: &str = "10%";
const BUDGET: u8 = 30;
/// The name that Submarine's JupyterImagePuller uses.
const RECORDS: &str = "submarine-image-pull-operator-records";
const HOLD: &str = "docker.io/library/busybox:1.37.0-musl";
const PAUSE: &str = "registry.k8s.io/pause:3.10";

/// The most previous digests that an environment may hold on its nodes, which all take disk space.
const MAX_RETAIN: u32 = 10;

/// Reads `larder.yaml`.
///
/// # Errors
/// All that is wrong with it.
pub fn load(path: &str, entry: &Entry) -> Result<Settings, Failure> {
    let source = text::read_yaml(path, entry)?;
    let (file, mut check) = check::open::<SettingsFile>(&source, KIND)?;
    check.header(&file.api_version, &file.kind, KIND);
    let settings = settings(&mut check, file.spec.unwrap_or_default());
    check.finish(settings)
}

fn settings(check: &mut Check<'_>, spec: SettingsSpec) -> Option<Settings> {
    let pools: BTreeMap<String, Placement> = check
        .entries(spec.pools)
        .into_iter()
        .map(|(name, pool)| (name.value, placement::placement(check, pool)))
        .collect();
    let tenants = tenant::tenants(check, spec.tenants, &pools);
    let defaults = defaults(check, spec.defaults.unwrap_or_default(), &pools);
    let registries = registries::registries(check, spec.registries);
    let records = spec.records.and_then(|records| records.name);
    let records = check.read(records.as_ref(), values::object_name).unwrap_or_else(|| RECORDS.to_owned());
    let lock = lock(check, &spec.lock.unwrap_or_default());
    let (budget, confirmed) = spec.prune.map(|prune| (prune.budget, prune.confirmed)).unwrap_or_default();
    let prune = Prune {
        budget: check.read(budget.as_ref(), values::percent).unwrap_or(BUDGET),
        confirmed: confirmed
            .unwrap_or_default()
            .iter()
            .filter_map(|confirmed| check.read(Some(confirmed), self::confirmed))
            .collect(),
    };
    let (hold, pause) = spec.helpers.map(|helpers| (helpers.hold, helpers.pause)).unwrap_or_default();
    let (hold, pause) = (helper(check, hold.as_ref(), HOLD), helper(check, pause.as_ref(), PAUSE));
    let helpers = Helpers { hold: hold?, pause: pause? };
    let records = Records { name: records };
    let allow = spec.lints.and_then(|lints| lints.allow).into_iter().flatten().collect();
    Some(Settings { tenants, pools, defaults, registries, records, lock, prune, helpers, allow })
}

fn lock(check: &mut Check<'_>, file: &file::Lock) -> LockSettings {
    let branch = check.read(file.branch.as_ref(), values::branch).unwrap_or_else(|| LockSettings::default().branch);
    LockSettings { mode: file.mode.unwrap_or_default(), branch }
}

/// What an environment is that says nothing.
fn defaults(check: &mut Check<'_>, file: file::Defaults, pools: &BTreeMap<String, Placement>) -> Defaults {
    let built_in = environment::Puller {
        strategy: Strategy::default(),
        max_unavailable: MAX_UNAVAILABLE.to_owned(),
        retain: 0,
        deadline: DEADLINE,
    };
    Defaults {
        pool: file.pool.and_then(|name| pool(check, &name, pools).map(|_| name.value)),
        refresh: check.read(file.refresh.as_ref(), values::duration).unwrap_or(REFRESH),
        puller: puller(check, file.puller, &built_in),
    }
}

/// A pool by its name.
pub fn pool<'a>(
    check: &mut Check<'_>,
    name: &Located<String>,
    pools: &'a BTreeMap<String, Placement>,
) -> Option<&'a Placement> {
    let found = pools.get(&name.value);
    if found.is_none() {
        let names = pools.keys().map(String::as_str);
        let hint = if pools.is_empty() {
            "add it to spec.pools of larder.yaml".to_owned()
        } else {
            format!("{}; or add it to spec.pools of larder.yaml", suggest::hint(&name.value, names))
        };
        let problem = Problem::new(Category::Schema, format!("unknown pool `{}`", name.value));
        check.report(name.place, problem.hint(hint));
    }
    found
}

/// A puller, with what it leaves out taken from the defaults.
pub fn puller(
    check: &mut Check<'_>,
    file: Option<shared::Puller>,
    defaults: &environment::Puller,
) -> environment::Puller {
    let file = file.unwrap_or_default();
    let retain = file.retain.and_then(|retain| {
        let allowed = (retain.value <= MAX_RETAIN).then_some(retain.value).ok_or_else(|| {
            Problem::new(Category::Schema, format!("{} previous digests are too many to retain", retain.value))
                .hint(format!("write a number up to {MAX_RETAIN}: all of them stay on the nodes' disks"))
        });
        check.keep(retain.place, allowed)
    });
    environment::Puller {
        strategy: file.strategy.map_or(defaults.strategy, |strategy| strategy.value),
        max_unavailable: check
            .read(file.max_unavailable.as_ref(), values::max_unavailable)
            .unwrap_or_else(|| defaults.max_unavailable.clone()),
        retain: retain.map_or(defaults.retain, |retain| retain as usize),
        deadline: check.read(file.deadline.as_ref(), values::duration).unwrap_or(defaults.deadline),
    }
}

/// A tenant's or an image's name.
pub fn name(text: &str) -> Result<Name, Problem> {
    text.parse().map_err(|error: crate::model::name::NameError| {
        Problem::new(Category::Name, error.to_string()).hint("use letters, digits, `-`, `_` and `.`")
    })
}

fn confirmed(text: &str) -> Result<Confirmed, Problem> {
    let parsed = match text.split_once('/') {
        Some((tenant, "*")) => name(tenant).ok().map(Confirmed::Tenant),
        Some(_) => text.parse().ok().map(Confirmed::Environment),
        None => None,
    };
    parsed.ok_or_else(|| {
        Problem::new(Category::Name, format!("`{text}` names no environment and no tenant"))
            .hint("write tenant/name for one environment, or tenant/* for all of a tenant")
    })
}

fn helper(check: &mut Check<'_>, text: Option<&Located<String>>, default: &str) -> Option<ImageReference> {
    match text {
        Some(text) => reference(check, text),
        None => default.parse().ok(),
    }
}

/// An image reference. One with a user is refused without repeating it.
pub fn reference(check: &mut Check<'_>, text: &Located<String>) -> Option<ImageReference> {
    use crate::model::reference::ReferenceError;

    let reference = text.value.parse::<ImageReference>();
    if reference.is_err() && redact::holds_user(&text.value) {
        check.report_secret(text.place, ReferenceError::User.into());
        return None;
    }
    check.keep(text.place, reference)
}
