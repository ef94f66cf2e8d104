//! Lints about pools.

use crate::model::{
    batch::{Batch, failed, succeeded},
    environment::Environment,
    failure::{Category, Problem},
    lint::Lint,
    settings::Settings,
    snapshot::SETTINGS,
};

use super::{Finding, places::Places};

/// Pools that no environment uses. While an environment is broken, nobody knows what it would use.
pub fn unused(settings: &Settings, environments: &Batch<Environment>, places: &Places<'_>) -> Vec<Finding> {
    if environments.is_empty() || failed(environments).next().is_some() {
        return Vec::new();
    }
    let is_used = |name: &String| {
        let pool = settings.pools.get(name);
        settings.defaults.pool.as_ref() == Some(name)
            || succeeded(environments).any(|(_, environment)| Some(&environment.placement) == pool)
    };
    settings
        .pools
        .keys()
        .filter(|name| !is_used(name))
        .map(|name| {
            let problem = Problem::new(Category::Policy, format!("no environment uses the pool `{name}`"))
                .lint(Lint::UnusedPool)
                .hint("remove it, or name it as `pool` of an environment");
            (None, places.put(problem, SETTINGS, places.of_key(SETTINGS, &["spec", "pools", name])))
        })
        .collect()
}
