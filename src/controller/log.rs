//! What a pass logs: what moved, what is wrong, and what is new to know.

use std::{collections::BTreeSet, time::Duration};

use crate::{
    model::{
        failure::Failure,
        lock::{HoldChange, Move, Previous},
        plan::Action,
        status::{Finding, Status},
    },
    pipeline::Pass,
};

/// Logs passes. Notes, such as images on hold, are logged once as long as they do not change.
#[derive(Default)]
pub(super) struct Log {
    noted: BTreeSet<String>,
}

impl Log {
    /// Logs why a pass could not start.
    pub(super) fn cannot_start(&self, failure: &Failure) {
        for problem in failure.problems() {
            tracing::error!(
                category = problem.category.as_str(),
                hint = problem.hint.as_deref(),
                "{}",
                problem.without_hint()
            );
        }
    }

    /// Logs a pass that was carried out.
    pub(super) fn pass(&mut self, pass: &Pass, took: Duration) {
        pass.lock.moves.iter().for_each(moved);
        pass.lock.holds.iter().for_each(hold_changed);
        let done = |action| pass.applied.count(action);
        tracing::info!(
            commit = pass.status.commit,
            environments = pass.status.environments.len(),
            created = done(Action::Create),
            configured = done(Action::Configure),
            deleted = done(Action::Delete),
            unchanged = done(Action::Unchanged),
            duration_ms = took.as_millis() as u64,
            "pass finished"
        );
        problems(&pass.status);
        self.notes(&pass.status);
    }

    fn notes(&mut self, status: &Status) {
        let mut noted = BTreeSet::new();
        for (environment, part) in &status.environments {
            for Finding { problem, .. } in &part.notes {
                let key = format!("{environment} {problem}");
                if !self.noted.contains(&key) {
                    tracing::info!(%environment, hint = problem.hint.as_deref(), "{}", problem.without_hint());
                }
                noted.insert(key);
            }
        }
        for Finding { problem, .. } in &status.notes {
            let key = problem.to_string();
            if !self.noted.contains(&key) {
                tracing::info!(hint = problem.hint.as_deref(), "{}", problem.without_hint());
            }
            noted.insert(key);
        }
        self.noted = noted;
    }
}

fn problems(status: &Status) {
    for (environment, part) in &status.environments {
        for Finding { reason, problem } in &part.problems {
            let (reason, text) = (reason.as_str(), problem.without_hint());
            tracing::warn!(%environment, reason, category = problem.category.as_str(), hint = problem.hint.as_deref(), "{text}");
        }
    }
    for (tenant, part) in &status.tenants {
        for Finding { reason, problem } in &part.problems {
            let (reason, text) = (reason.as_str(), problem.without_hint());
            tracing::warn!(%tenant, reason, category = problem.category.as_str(), hint = problem.hint.as_deref(), "{text}");
        }
    }
    for Finding { reason, problem } in &status.problems {
        let (reason, text) = (reason.as_str(), problem.without_hint());
        tracing::warn!(reason, category = problem.category.as_str(), hint = problem.hint.as_deref(), "{text}");
    }
}

/// `image=research/a notebook from=quay.io/a:1@sha256:… to=…`
fn moved(moved: &Move) {
    let Move { environment, image, old, new } = moved;
    let (from, to) = (old.as_ref().map(pinned), new.as_ref().map(pinned));
    let message = match (old, new) {
        (None, _) => "image locked",
        (Some(_), Some(_)) => "image moved",
        (Some(_), None) => "image removed from the lock",
    };
    tracing::info!(%environment, %image, from, to, "{message}");
}

fn hold_changed(change: &HoldChange) {
    let HoldChange { environment, image, at, .. } = change;
    match change.reason() {
        Some(reason) => tracing::info!(%environment, %image, at = pinned(at), reason, "image put on hold"),
        None => tracing::info!(%environment, %image, at = pinned(at), "image released"),
    }
}

fn pinned(entry: &Previous) -> String {
    entry.reference.pinned(&entry.digest)
}
