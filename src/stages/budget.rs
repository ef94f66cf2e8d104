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
/// whose only environment gets another name keeps one, so that is no removal of a whole tenant.
///
/// # Errors
/// When removals that `prune` does not confirm are more than its budget (one is always within it), or would leave a
/// tenant with none of its environments. The error lists the unconfirmed ones: none of these may be removed, while
/// confirmed ones still may. Confirmed removals count neither as removed nor as existing.
pub fn decide_beside(
    existing: &BTreeSet<EnvironmentId>,
    removed: &BTreeSet<EnvironmentId>,
    present: &BTreeSet<EnvironmentId>,
    prune: &Prune,
) -> Result<(), Box<Blocked>> {
    let confirmed = |id: &EnvironmentId| prune.confirmed.iter().any(|confirmed| confirmed.covers(id));
    let unconfirmed: BTreeSet<&EnvironmentId> = removed.iter().filter(|id| !confirmed(id)).collect();
    if unconfirmed.is_empty() {
        return Ok(());
    }
    let counted = existing.iter().filter(|id| !removed.contains(id) || unconfirmed.contains(id)).count();
    let kept: BTreeSet<&Name> =
        existing.union(present).filter(|id| !removed.contains(id)).map(|id| &id.tenant).collect();
    let emptied: BTreeSet<&Name> =
        unconfirmed.iter().map(|id| &id.tenant).filter(|tenant| !kept.contains(tenant)).collect();

    let count = unconfirmed.len();
    let over = count > 1 && count * 100 > counted * usize::from(prune.budget);
    let names = listed(unconfirmed.iter().map(ToString::to_string));
    let message = if over {
        format!(
            "{count} of {counted} environments would be removed, more than the budget of {} %: {names}",
            prune.budget
        )
    } else if emptied.is_empty() {
        return Ok(());
    } else {
        let tenants = listed(emptied.iter().map(|tenant| format!("`{tenant}`")));
        let all = if emptied.len() == 1 { "tenant" } else { "tenants" };
        format!("all environments of the {all} {tenants} would be removed: {names}")
    };
    let problem = Problem::new(Category::Budget, message).in_file("larder.yaml").hint(hint(&unconfirmed, &emptied));
    Err(Box::new(Blocked { environments: unconfirmed.into_iter().cloned().collect(), problem }))
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
