//! Lists and watches of our objects' metadata.

use std::{collections::BTreeSet, fmt::Debug, time::Duration};

use futures::StreamExt as _;
use k8s_openapi::api::{
    apps::v1::DaemonSet,
    core::v1::{ConfigMap, Namespace, ServiceAccount},
};
use kube::{
    Api, Resource,
    api::{ListParams, ObjectList, PartialObjectMeta},
    runtime::watcher::{self, Event, watcher},
};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    KubeCluster,
    inventory::Shapes,
    path,
    problem::{Attempt, chain, problem},
    store::Store,
};
use crate::model::{
    failure::Problem,
    manifest::{Inventory, Kind},
};

/// Objects of one page of a list.
const PAGE: u32 = 500;

/// How long the first lists may take before a pass makes its own.
const FIRST_LIST: Duration = Duration::from_secs(10);

impl KubeCluster {
    /// Watches our objects from now on, until `shutdown`: an inventory then costs no request, and drift is told. Returns
    /// when all is known, or after a while without.
    pub async fn watch(&self, shutdown: &CancellationToken) {
        let (known, mut all_known) = watch::channel(BTreeSet::new());
        self.follow::<Namespace>(Kind::Namespace, shutdown, known.clone());
        self.follow::<ServiceAccount>(Kind::ServiceAccount, shutdown, known.clone());
        self.follow::<ConfigMap>(Kind::ConfigMap, shutdown, known.clone());
        self.follow::<DaemonSet>(Kind::DaemonSet, shutdown, known);
        let complete = all_known.wait_for(|kinds| kinds.len() == Kind::ALL.len());
        if tokio::time::timeout(FIRST_LIST, complete).await.is_err() {
            tracing::warn!("the cluster cannot be watched yet; passes ask it themselves until it can");
        }
    }

    /// Watches one kind in a task of its own.
    fn follow<K>(&self, kind: Kind, shutdown: &CancellationToken, known: watch::Sender<BTreeSet<Kind>>)
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    {
        let api: Api<PartialObjectMeta<K>> = Api::all(self.client.clone());
        let config = watcher::Config::default().labels(&self.identity.selector()).page_size(PAGE);
        let (store, shutdown) = (self.store.clone(), shutdown.clone());
        tokio::spawn(async move {
            let mut failures = 0;
            while !shutdown.is_cancelled() {
                let events = watcher(api.clone(), config.clone()).take_until(shutdown.cancelled());
                let mut events = std::pin::pin!(events);
                while let Some(event) = events.next().await {
                    match event {
                        Ok(event) => {
                            let complete = matches!(event, Event::InitDone);
                            take_in(&store, kind, event);
                            if complete {
                                failures = 0;
                                known.send_modify(|kinds| {
                                    kinds.insert(kind);
                                });
                            }
                        }
                        // The server has forgotten what came before; the watcher lists again by itself.
                        Err(watcher::Error::WatchError(status)) if status.code == 410 => {
                            tracing::info!(%kind, "the watch is too old and starts over");
                        }
                        Err(error) => {
                            tracing::warn!(%kind, error = chain(&error), "the watch failed and is tried again");
                            break;
                        }
                    }
                }
                // A watcher that resumes tells nobody, so a new one begins, whose first list says that all is well.
                store.doubt(kind);
                let wait = Duration::from_secs(1 << u32::min(failures, 5)).mul_f64(1.0 + fastrand::f64() / 2.0);
                failures += 1;
                let _ = tokio::time::timeout(wait, shutdown.cancelled()).await;
            }
        });
    }

    /// Asks for the metadata of all objects of ours.
    pub(super) async fn list_all(&self) -> Result<Inventory, Problem> {
        let mut inventory = Inventory::new();
        let mut shapes = Shapes::default();
        for kind in Kind::ALL {
            let what = format!("the list of {}", path::plural(kind));
            let attempt = Attempt { what: &what, verb: "list", resource: path::plural(kind), namespace: "" };
            let mut page = ListParams::default().labels(&self.identity.selector()).limit(PAGE);
            loop {
                let list: ObjectList<PartialObjectMeta> =
                    self.send(path::all(kind).list_metadata(&page)).await.map_err(|error| problem(attempt, &error))?;
                inventory.extend(
                    list.items.iter().filter_map(|item| self.identity.entry(kind, &item.metadata, &mut shapes)),
                );
                match list.metadata.continue_.filter(|token| !token.is_empty()) {
                    Some(token) => page.continue_token = Some(token),
                    None => break,
                }
            }
        }
        Ok(inventory)
    }
}

/// Takes in what a watch tells.
fn take_in<K>(store: &Store, kind: Kind, event: Event<PartialObjectMeta<K>>) {
    match event {
        Event::Init => store.begin(kind),
        Event::InitApply(object) => store.listed(kind, &object.metadata),
        Event::InitDone => store.complete(kind),
        Event::Apply(object) => store.changed(kind, &object.metadata),
        Event::Delete(object) => store.gone(kind, &object.metadata),
    }
}
