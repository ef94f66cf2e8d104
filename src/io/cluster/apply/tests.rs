//! Carrying out plans on a cluster that fails where it is told to.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::json;

use super::*;
use crate::model::{
    manifest::{Comparison, Inventory},
    status::Status,
};

/// Remembers what was done, and fails for some names.
#[derive(Default)]
struct Fake {
    failing: BTreeSet<&'static str>,
    done: Mutex<Vec<String>>,
    under_way: AtomicUsize,
    most: AtomicUsize,
    cancel_after: Option<(usize, CancellationToken)>,
}

impl Fake {
    async fn act(&self, verb: &str, id: &ObjectId) -> Result<(), Problem> {
        let now = self.under_way.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        tokio::task::yield_now().await;
        self.under_way.fetch_sub(1, Ordering::SeqCst);
        let count = {
            let mut done = self.done.lock().unwrap();
            done.push(format!("{verb} {}", id.name));
            done.len()
        };
        if let Some((after, token)) = &self.cancel_after
            && count >= *after
        {
            token.cancel();
        }
        match self.failing.contains(format!("{verb} {}", id.name).as_str()) {
            true => Err(Problem::new(Category::Cluster, "refused")),
            false => Ok(()),
        }
    }

    fn done(&self) -> Vec<String> {
        self.done.lock().unwrap().clone()
    }
}

impl Cluster for Fake {
    async fn inventory(&self) -> Result<Inventory, Problem> {
        Ok(Inventory::new())
    }

    async fn compare(&self, manifest: &Manifest) -> Result<Comparison, Problem> {
        self.act("try", &manifest.id).await?;
        Ok(Comparison { live: None, applied: serde_json::Value::Null })
    }

    async fn apply(&self, manifest: &Manifest) -> Result<(), Problem> {
        self.act("apply", &manifest.id).await
    }

    async fn delete(&self, id: &ObjectId, _: &str) -> Result<(), Problem> {
        self.act("delete", id).await
    }

    async fn server_version(&self) -> Option<(u32, u32)> {
        None
    }

    async fn publish(&self, _: &Status) -> Result<(), Problem> {
        Ok(())
    }
}

fn change(action: Action, owner: &str, kind: Kind, namespace: &str, name: &str) -> Change {
    let id = ObjectId { kind, namespace: namespace.to_owned(), name: name.to_owned() };
    let owner = Owner::parse(owner).unwrap();
    let manifest = Manifest { id: id.clone(), owner: owner.clone(), object: json!({}).into(), impersonate: None };
    let manifest = (action != Action::Delete).then_some(manifest);
    Change { id, owner, action, diff: "diff".to_owned(), manifest, uid: "u".to_owned() }
}

async fn outcomes(fake: &Fake, changes: Vec<Change>) -> Vec<String> {
    let plan = Plan { changes, ..Plan::default() };
    let token = fake.cancel_after.as_ref().map(|(_, token)| token.clone()).unwrap_or_default();
    let applied = carry_out(fake, &plan, &token).await;
    let shown = |(change, outcome): &(Change, Outcome)| {
        assert!(change.manifest.is_none() && change.diff.is_empty());
        let outcome = match outcome {
            Outcome::Done => "done",
            Outcome::Unchanged => "unchanged",
            Outcome::Failed(_) => "failed",
            Outcome::NotAttempted => "not attempted",
        };
        format!("{} {outcome}", change.id.name)
    };
    applied.outcomes.iter().map(shown).collect()
}

fn two_environments() -> Vec<Change> {
    use Action::{Configure, Create, Delete, Unchanged};
    vec![
        change(Create, "t/a", Kind::ServiceAccount, "n", "a-account"),
        change(Unchanged, "t/b", Kind::ServiceAccount, "n", "b-account"),
        change(Configure, "t", Kind::ConfigMap, "n", "records"),
        change(Create, "t/a", Kind::DaemonSet, "n", "a-puller"),
        change(Create, "t/b", Kind::DaemonSet, "n", "b-puller"),
        change(Delete, "t/a", Kind::DaemonSet, "n", "a-old"),
        change(Delete, "t/b", Kind::DaemonSet, "n", "b-old"),
        change(Delete, "t/b", Kind::ServiceAccount, "n", "b-old-account"),
    ]
}

#[tokio::test]
async fn kinds_follow_each_other_and_deletes_come_last() {
    let fake = Fake::default();
    let outcomes = outcomes(&fake, two_environments()).await;
    assert!(outcomes.iter().all(|line| line.ends_with("done") || line == "b-account unchanged"), "{outcomes:?}");
    let done = fake.done();
    assert_eq!(done[..2], ["apply a-account", "apply records"]);
    assert_eq!(done.iter().filter(|line| line.starts_with("apply")).count(), 4);
    assert_eq!(done[6], "delete b-old-account", "{done:?}");
}

#[tokio::test]
async fn a_failure_stops_its_owner_alone() {
    let fake = Fake { failing: ["apply a-account"].into(), ..Fake::default() };
    assert_eq!(
        outcomes(&fake, two_environments()).await,
        [
            "a-account failed",
            "b-account unchanged",
            "records done",
            "a-puller not attempted",
            "b-puller done",
            "a-old not attempted",
            "b-old done",
            "b-old-account done",
        ]
    );
}

#[tokio::test]
async fn nothing_is_done_in_a_namespace_that_could_not_be_made() {
    let changes = || {
        vec![
            change(Action::Create, "t", Kind::Namespace, "", "n"),
            change(Action::Create, "u", Kind::Namespace, "", "m"),
            change(Action::Create, "t/a", Kind::ConfigMap, "n", "one"),
            change(Action::Create, "u/b", Kind::ConfigMap, "m", "two"),
            change(Action::Create, "u/b", Kind::DaemonSet, "m", "three"),
            change(Action::Create, "u/c", Kind::ConfigMap, "m", "four"),
        ]
    };
    let fake = Fake { failing: ["apply n"].into(), ..Fake::default() };
    assert_eq!(
        outcomes(&fake, changes()).await,
        ["n failed", "m done", "one not attempted", "two done", "three done", "four done"]
    );
    // What goes into a new namespace is tried when that is there, before any of its owner's objects is written.
    let tries: Vec<String> = fake.done().into_iter().filter(|line| line.starts_with("try")).collect();
    assert_eq!(tries.len(), 3);

    let fake = Fake { failing: ["try three"].into(), ..Fake::default() };
    assert_eq!(
        outcomes(&fake, changes()).await,
        ["n done", "m done", "one done", "two not attempted", "three failed", "four done"]
    );
}

#[tokio::test]
async fn a_cancelled_pass_ends_what_it_has_begun() {
    let token = CancellationToken::new();
    let fake = Fake { cancel_after: Some((1, token.clone())), ..Fake::default() };
    let outcomes = outcomes(&fake, two_environments()).await;
    assert!(token.is_cancelled());
    assert_eq!(outcomes[0], "a-account done");
    assert_eq!(outcomes.iter().filter(|line| line.ends_with("not attempted")).count(), 6, "{outcomes:?}");
}

#[tokio::test]
async fn few_requests_are_under_way_at_once() {
    let fake = Fake::default();
    let changes = (0..100).map(|n| change(Action::Create, &format!("t/{n}"), Kind::ConfigMap, "n", &format!("c{n}")));
    outcomes(&fake, changes.collect()).await;
    assert_eq!(fake.done().len(), 100);
    assert_eq!(fake.most.load(Ordering::SeqCst), CONCURRENCY);
}
