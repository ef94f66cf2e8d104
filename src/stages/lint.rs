//! Lints: what is valid and yet looks like a mistake. Each has a name by which it can be allowed, and a section in
//! `docs/reference/lints.md`.

mod images;
mod places;
mod pools;
mod pullers;

use std::{collections::BTreeSet, time::Duration};

use crate::model::{
    batch::{Batch, succeeded},
    environment::Environment,
    failure::{Category, Problem, capped},
    lint::Lint,
    name::EnvironmentId,
    settings::{Confirmed, Settings},
    snapshot::{SETTINGS, Snapshot},
};

use self::places::Places;
use super::load::Environments;

/// More often than this is only a burden to registries, which count requests.
const SHORTEST_REFRESH: Duration = Duration::from_secs(60);

/// The most findings that are reported; one more counts the rest.
const MAX_FINDINGS: usize = 500;

/// A finding and the environment that it is about, if it is about one.
type Finding = (Option<EnvironmentId>, Problem);

/// All findings that are not allowed, in the order of their files and places, at most `MAX_FINDINGS`. `snapshot` is
/// where `loaded` was read from, for excerpts.
pub fn lint(snapshot: &Snapshot, loaded: &Environments) -> Vec<Problem> {
    let Environments { settings, environments, .. } = loaded;
    let places = Places::of(snapshot);
    let mut findings: Vec<Finding> = Vec::new();
    for (id, environment) in succeeded(environments) {
        let own = images::references(environment, &places).chain(short_refresh(environment, &places));
        findings.extend(own.map(|problem| (Some(id.clone()), problem)));
    }
    findings.extend(images::same(environments, &places));
    findings.extend(pools::unused(settings, environments, &places));
    findings.extend(pullers::many(settings, environments, &places));
    findings.extend(stale_confirmations(settings, environments, &places));
    let is_allowed = |(id, problem): &Finding| {
        let own = id.as_ref().and_then(|id| environments.get(id)?.as_ref().ok());
        let allows = |allow: &BTreeSet<Lint>| problem.lint.is_some_and(|lint| allow.contains(&lint));
        allows(&settings.allow) || own.is_some_and(|environment| allows(&environment.allow))
    };
    findings.retain(|finding| !is_allowed(finding));
    let mut findings: Vec<Problem> = findings.into_iter().map(|(_, problem)| problem).collect();
    findings.sort_by(|a, b| {
        let key = |problem: &Problem| problem.location.clone().map(|place| (place.path, place.line, place.column));
        key(a).cmp(&key(b))
    });
    findings.dedup();
    capped(findings, MAX_FINDINGS)
}

fn short_refresh(environment: &Environment, places: &Places<'_>) -> Option<Problem> {
    (environment.refresh < SHORTEST_REFRESH).then(|| {
        let message = match environment.refresh.as_secs() {
            1 => "images are refreshed every second".to_owned(),
            seconds => format!("images are refreshed every {seconds} seconds"),
        };
        let problem = Problem::new(Category::Registry, message)
            .lint(Lint::ShortRefresh)
            .hint("write at least 1m: registries count requests and refuse those above their limit");
        let own = places.of_value(&environment.path, &["spec", "refresh"]);
        let place = own.or_else(|| places.of_value(SETTINGS, &["spec", "defaults", "refresh"]));
        places.put(problem, &environment.path, place)
    })
}

/// A confirmed removal of something that is still there would let a later removal by mistake pass.
fn stale_confirmations(settings: &Settings, environments: &Batch<Environment>, places: &Places<'_>) -> Vec<Finding> {
    let stale = settings.prune.confirmed.iter().filter(|confirmed| environments.keys().any(|id| confirmed.covers(id)));
    stale
        .map(|confirmed| {
            let name = match confirmed {
                Confirmed::Environment(id) => id.to_string(),
                Confirmed::Tenant(tenant) => format!("{tenant}/*"),
            };
            let message = format!("prune.confirmed lists `{name}`, which still exists");
            let problem = Problem::new(Category::Budget, message)
                .lint(Lint::StaleConfirmation)
                .hint("take it out again once the removal is done, or it also confirms a later one");
            let place = places.of_item(SETTINGS, &["spec", "prune", "confirmed"], &name);
            (None, places.put(problem, SETTINGS, place))
        })
        .collect()
}
