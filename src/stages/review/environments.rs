//! Which environments are new, gone or different, and whether they may go.

use std::collections::BTreeSet;

use super::{EnvironmentChange, EnvironmentChangeKind as Kind, Nodes, Side};
use crate::{
    model::{
        environment::{Environment, Placement},
        failure::Failure,
        name::EnvironmentId,
        plan::Blocked,
        settings::Settings,
    },
    stages::{budget, load::Environments, resolve},
};

pub(super) fn changes(from: Option<&Side>, to: &Side) -> Vec<EnvironmentChange> {
    let before = |id: &EnvironmentId| from.and_then(|side| side.environments.environments.get(to.name_before(id)));
    let after = |id: &EnvironmentId| to.environments.environments.get(id);
    ids(from, to)
        .into_iter()
        .filter_map(|id| {
            let change = compare(before(&id), after(&id));
            let (kind, parts) = match to.name_before(&id) {
                name if *name != id => {
                    (Kind::Renamed(name.clone()), change.map(|(_, parts)| parts).unwrap_or_default())
                }
                _ => change?,
            };
            let nodes = match (after(&id), before(&id), from) {
                (Some(Ok(environment)), ..) => nodes(environment, &to.environments.settings),
                (None, Some(Ok(environment)), Some(from)) => nodes(environment, &from.environments.settings),
                _ => Nodes::Unknown,
            };
            Some(EnvironmentChange { id, kind, parts, nodes })
        })
        .collect()
}

/// Whatever concerns all environments.
pub(super) fn shared(from: Option<&Side>, to: &Side) -> Vec<String> {
    let Some(from) = from else { return Vec::new() };
    let mut shared = Vec::new();
    if from.environments.settings != to.environments.settings {
        shared.push("larder.yaml".to_owned());
    }
    let (old, new) = (&from.environments, &to.environments);
    let names: BTreeSet<&String> = old.templates.keys().chain(new.templates.keys()).collect();
    let changed = names.into_iter().filter(|name| old.templates.get(*name) != new.templates.get(*name));
    shared.extend(changed.map(|name| format!("templates/{name}")));
    shared
}

/// Removals that the budget would stop, as the pass after the merge would.
pub(super) fn blocked(from: Option<&Side>, to: &Side) -> Option<Blocked> {
    let existing: BTreeSet<EnvironmentId> = from?.environments.environments.keys().cloned().collect();
    let present: BTreeSet<EnvironmentId> = to.environments.environments.keys().cloned().collect();
    let removed = existing.difference(&present).filter(|id| !to.has_renamed(id)).cloned().collect();
    budget::decide_beside(&existing, &removed, &present, &to.environments.settings.prune).err().map(|blocked| *blocked)
}

/// The environments whose file or lockfile differs, or whose registries are asked in another way; all of them where the
/// earlier files are not known.
pub fn differing(from: Option<&Environments>, to: &Environments) -> BTreeSet<EnvironmentId> {
    let lookups = |side: &Environments, environment: &Environment| -> Vec<_> {
        environment.images.iter().map(|image| resolve::key(environment, image, &side.settings)).collect()
    };
    let is_same = |from: &Environments, id: &EnvironmentId| {
        let (before, after) = (from.environments.get(id), to.environments.get(id));
        let is_asked_alike = match (before, after) {
            (Some(Ok(before)), Some(Ok(after))) => lookups(from, before) == lookups(to, after),
            _ => true,
        };
        before == after && from.lock.get(id) == to.lock.get(id) && is_asked_alike
    };
    let sides = from.into_iter().chain([to]);
    let all = sides.flat_map(|side| side.environments.keys().chain(side.lock.keys()));
    all.filter(|id| from.is_none_or(|from| !is_same(from, id))).cloned().collect()
}

pub(super) fn ids(from: Option<&Side>, to: &Side) -> BTreeSet<EnvironmentId> {
    let former = from.into_iter().flat_map(|side| side.environments.environments.keys());
    former.filter(|id| !to.has_renamed(id)).chain(to.environments.environments.keys()).cloned().collect()
}

/// The pool of `larder.yaml` with these nodes, if there is one.
fn nodes(environment: &Environment, settings: &Settings) -> Nodes {
    let mut pools = settings.pools.iter();
    match pools.find(|(_, placement)| **placement == environment.placement) {
        Some((name, _)) => Nodes::Pool(name.clone()),
        None if environment.placement == Placement::every_linux_node() => Nodes::All,
        None => Nodes::Selected,
    }
}

type Read = Result<Environment, Failure>;

fn compare(before: Option<&Read>, after: Option<&Read>) -> Option<(Kind, Vec<&'static str>)> {
    let bare = |kind| Some((kind, Vec::new()));
    match (before, after) {
        (None, None) | (Some(Err(_)), Some(Err(_))) => None,
        (None, Some(Ok(_))) => bare(Kind::Added),
        (None | Some(Ok(_)), Some(Err(_))) => bare(Kind::Broken),
        (Some(_), None) => bare(Kind::Removed),
        (Some(Err(_)), Some(Ok(_))) => bare(Kind::Repaired),
        (Some(Ok(old)), Some(Ok(new))) => {
            let parts = parts(old, new);
            (!parts.is_empty()).then_some((Kind::Changed, parts))
        }
    }
}

/// The parts of the file that mean something else. Where in its file an image stands means nothing.
fn parts(old: &Environment, new: &Environment) -> Vec<&'static str> {
    let images = |environment: &Environment| -> Vec<_> {
        let mut images = environment.images.clone();
        images.iter_mut().for_each(|image| image.line = 0);
        images
    };
    let all = [
        ("display name", old.display_name != new.display_name),
        ("description", old.description != new.description),
        ("images", images(old) != images(new)),
        ("nodes", old.placement != new.placement),
        ("refresh", old.refresh != new.refresh),
        ("puller", old.puller != new.puller),
        ("resources", old.resources != new.resources),
        ("suspend", old.suspend != new.suspend),
    ];
    all.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
}
