//! How many environments one pass may remove without a commit that says so.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{
    failure::{Category, Problem},
    name::{EnvironmentId, Name},
    plan::Blocked,
    settings::Prune,
};

/// Environments that the message names; the hint has all of them.
const NAMED: usize = 3;

/// Lines that the hint shows at most.
const LINES: usize = 50;

/// Whether all of `removed` may go, of the environments that are there (`existing`).
///
/// # Errors
/// See [`decide_beside`], with nothing new in Git.
pub fn decide(
    existing: &BTreeSet<EnvironmentId>,
    removed: &BTreeSet<EnvironmentId>,
    prune: &Prune,
) -> Result<(), Box<Blocked>> {
    decide_beside(existing, removed, &BTreeSet::new(), prune)
}

/// Whether all of `removed` may go, of the environments that are there (`existing`), while Git has `present`: a tenant
/// whose only environment gets another name keeps one, so its last environment is not removed.
///
/// Each tenant has a budget of its own, so that one tenant never stops another. Removals that `prune` confirms count
/// neither as removed nor as existing.
///
/// # Errors
/// The environments that stay, and why: those of tenants that would lose all they have, or more than their share (one is
/// always within it); and those that are within it only because one always is, when these are too many of all together.
pub fn decide_beside(
    existing: &BTreeSet<EnvironmentId>,
    removed: &BTreeSet<EnvironmentId>,
    present: &BTreeSet<EnvironmentId>,
    prune: &Prune,
) -> Result<(), Box<Blocked>> {
    let shares = shares(existing, removed, present, prune);
    let exceeds = |count: usize, of: usize| count * 100 > of * usize::from(prune.budget);
    let (mut emptied, mut over, mut single) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (tenant, share) in shares.iter().filter(|(_, share)| !share.removed.is_empty()) {
        match share.removed.len() {
            _ if !share.keeps => emptied.insert(*tenant),
            count if !exceeds(count, share.counted) => false,
            1 => single.insert(*tenant),
            _ => over.insert(*tenant),
        };
    }
    let all = shares.values().map(|share| share.counted).sum();
    if single.len() < 2 || !exceeds(single.len(), all) {
        single.clear();
    }

    let mut reasons = Vec::new();
    if !emptied.is_empty() {
        let tenants = listed(emptied.iter().map(|tenant| format!("`{tenant}`")));
        let all = if emptied.len() == 1 { "tenant" } else { "tenants" };
        reasons.push(format!("all environments of the {all} {tenants} would be removed"));
    }
    if !over.is_empty() {
        let counts = over.iter().filter_map(|tenant| Some((tenant, shares.get(tenant)?)));
        let counts = counts
            .map(|(tenant, share)| format!("{} of {} environments of `{tenant}`", share.removed.len(), share.counted));
        let counts = listed(counts.collect::<Vec<_>>().into_iter());
        reasons.push(format!("{counts} would be removed, more than the budget of {} %", prune.budget));
    }
    if !single.is_empty() {
        let (count, budget) = (single.len(), prune.budget);
        reasons.push(format!(
            "one environment of each of {count} tenants, {count} of {all} in all, would be removed, more than the budget of {budget} %"
        ));
    }
    let blocked = emptied.iter().chain(&over).chain(&single).filter_map(|tenant| shares.get(tenant));
    let environments: BTreeSet<&EnvironmentId> = blocked.flat_map(|share| &share.removed).copied().collect();
    if environments.is_empty() {
        return Ok(());
    }
    let names = listed(environments.iter().map(ToString::to_string));
    let problem = Problem::new(Category::Budget, format!("{}: {names}", reasons.join("; ")))
        .in_file("larder.yaml")
        .hint(hint(&environments, &emptied));
    Err(Box::new(Blocked { environments: environments.into_iter().cloned().collect(), problem }))
}

/// A tenant's part of the removals.
#[derive(Default)]
struct Share<'a> {
    /// Unconfirmed removals.
    removed: BTreeSet<&'a EnvironmentId>,
    /// The environments there are, without confirmed removals.
    counted: usize,
    /// Whether any of its environments stays, or is new in Git.
    keeps: bool,
}

fn shares<'a>(
    existing: &'a BTreeSet<EnvironmentId>,
    removed: &'a BTreeSet<EnvironmentId>,
    present: &'a BTreeSet<EnvironmentId>,
    prune: &Prune,
) -> BTreeMap<&'a Name, Share<'a>> {
    let confirmed = |id: &EnvironmentId| prune.confirmed.iter().any(|confirmed| confirmed.covers(id));
    let mut shares: BTreeMap<&Name, Share<'_>> = BTreeMap::new();
    for id in existing.union(removed) {
        let share = shares.entry(&id.tenant).or_default();
        let goes = removed.contains(id);
        share.keeps |= !goes;
        if !goes || !confirmed(id) {
            share.counted += usize::from(existing.contains(id));
        }
        if goes && !confirmed(id) {
            share.removed.insert(id);
        }
    }
    for id in present.difference(removed) {
        shares.entry(&id.tenant).or_default().keeps = true;
    }
    shares
}

/// `a, b, c and 7 more`.
fn listed(items: impl ExactSizeIterator<Item = String>) -> String {
    let more = items.len().saturating_sub(NAMED);
    let first: Vec<String> = items.take(NAMED).collect();
    match more {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// The lines of `larder.yaml` that confirm these removals: one for a tenant that loses all, else one an environment.
fn hint(unconfirmed: &BTreeSet<&EnvironmentId>, emptied: &BTreeSet<&Name>) -> String {
    let mut by_tenant: BTreeMap<&Name, Vec<String>> = BTreeMap::new();
    for id in unconfirmed {
        by_tenant.entry(&id.tenant).or_default().push(id.to_string());
    }
    let entries: Vec<String> = by_tenant
        .into_iter()
        .flat_map(|(tenant, ids)| if emptied.contains(tenant) { vec![format!("{tenant}/*")] } else { ids })
        .collect();
    let mut text = "restore the files, or, if the removal is wanted, confirm it in larder.yaml:\n\
                    spec:\n  prune:\n    confirmed:"
        .to_owned();
    for entry in entries.iter().take(LINES) {
        // A JSON string is a YAML string, whatever a name holds.
        text.push_str(&format!("\n      - {}", serde_json::Value::from(entry.as_str())));
    }
    if entries.len() > LINES {
        text.push_str(&format!("\n      # and {} more", entries.len() - LINES));
    }
    text
}
