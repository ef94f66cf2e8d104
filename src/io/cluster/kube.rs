//! A real Kubernetes cluster.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use kube::{
    Client,
    api::{DeleteParams, GetParams, Preconditions},
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::OnceCell;

use super::{
    Cluster, connect, field_manager,
    inventory::Identity,
    path,
    problem::{Attempt, problem},
    status::{ACCEPTED, MAX_BYTES},
    store::Store,
};
use crate::model::{
    failure::{Category, Problem},
    manifest::{Comparison, Inventory, Kind, Manifest, ObjectId},
    status::Status,
};

/// How long an answer may take. Longer than webhooks may (30 s).
const ANSWER: Duration = Duration::from_secs(60);

/// A Kubernetes cluster, as one instance of larder sees it. Clones share connections and what is known.
#[derive(Clone)]
pub struct KubeCluster {
    pub(super) client: Client,
    pub(super) identity: Arc<Identity>,
    pub(super) store: Arc<Store>,
    version: Arc<OnceCell<(u32, u32)>>,
    requests: Arc<AtomicU64>,
    /// Where the status is; none: in the namespace of the pod or of the kubeconfig's context.
    pub(super) status_namespace: Option<String>,
}

impl KubeCluster {
    /// A cluster; nothing has been asked yet.
    ///
    /// `kubeconfig` is a file, or several as `KUBECONFIG` lists them; none: `~/.kube/config`, else the pod's own service
    /// account. `context` is one of its contexts; none: the current one. `instance` is this larder's name among those
    /// that share the cluster.
    ///
    /// # Errors
    /// When neither can be used.
    pub async fn connect(kubeconfig: Option<&Path>, context: Option<&str>, instance: &str) -> Result<Self, Problem> {
        let client = connect::client(kubeconfig, context).await?;
        let identity = Arc::new(Identity { instance: instance.to_owned(), manager: field_manager(instance) });
        let store = Arc::new(Store::new(identity.clone()));
        let (version, requests) = (Arc::default(), Arc::default());
        Ok(Self { client, identity, store, version, requests, status_namespace: None })
    }

    /// The same cluster, with the status in that namespace.
    #[must_use]
    pub fn with_status_in(mut self, namespace: Option<String>) -> Self {
        self.status_namespace = namespace;
        self
    }

    /// Sends a request. None of what is sent or answered is logged.
    pub(super) async fn send<T: DeserializeOwned>(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<T, kube::Error> {
        let request = request.map_err(kube::Error::BuildRequest)?;
        self.requests.fetch_add(1, Ordering::Relaxed);
        let text = tokio::time::timeout(ANSWER, self.client.request_text(request)).await;
        let text = text.map_err(|_| kube::Error::Service(format!("no answer within {ANSWER:?}").into()))??;
        serde_json::from_str(&text).map_err(kube::Error::SerdeError)
    }

    /// The object, if it is there.
    pub(super) async fn get(&self, id: &ObjectId) -> Result<Option<Value>, Problem> {
        match self.send(path::beside(id).get(&id.name, &GetParams::default())).await {
            Ok(object) => Ok(Some(object)),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
            Err(error) => Err(problem(attempt(id, &id.to_string(), "get"), &error)),
        }
    }
}

impl Cluster for KubeCluster {
    async fn inventory(&self) -> Result<Inventory, Problem> {
        match self.store.inventory() {
            Some(known) => Ok(known),
            None => self.list_all().await,
        }
    }

    async fn compare(&self, manifest: &Manifest) -> Result<Comparison, Problem> {
        let applied = self.patch(manifest, true).await?;
        // A dry run that would create has no version to show.
        if applied["metadata"]["resourceVersion"].as_str().unwrap_or_default().is_empty() {
            return Ok(Comparison { live: None, applied: Value::Null });
        }
        let live = self.get(&manifest.id).await?;
        if let Some(live) = &live {
            self.must_be_ours(&manifest.id, live)?;
        }
        Ok(Comparison { live, applied })
    }

    fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    async fn publish(&self, status: &Status) -> Result<(), Problem> {
        self.write_status(self.status_place(), &self.status_name(), &status.published(MAX_BYTES)).await
    }

    async fn accepted(&self) -> Result<Option<String>, Problem> {
        self.read_key(self.status_place(), &self.status_name(), ACCEPTED).await
    }

    async fn accept(&self, commit: &str) -> Result<(), Problem> {
        self.write_accepted(commit).await
    }

    fn how_to_accept(&self, commit: &str) -> String {
        let (namespace, name) = (self.status_place(), self.status_name());
        let patch = format!("{{\"data\":{{\"{ACCEPTED}\":\"{commit}\"}}}}");
        format!("kubectl -n {namespace} patch configmap {name} --type merge -p '{patch}'")
    }

    async fn apply(&self, manifest: &Manifest) -> Result<(), Problem> {
        let writing = self.store.writing(&manifest.id);
        let object = self.patch(manifest, false).await?;
        writing.wrote(&object);
        Ok(())
    }

    async fn delete(&self, id: &ObjectId, uid: &str) -> Result<(), Problem> {
        if id.kind == Kind::Namespace {
            let message = format!("{id} is not deleted, because larder never deletes a Namespace");
            return Err(Problem::new(Category::Policy, message)
                .hint(format!("run `kubectl delete namespace {}` if nothing else is in it", id.name)));
        }
        let uid_is = Preconditions { uid: Some(uid.to_owned()), ..Preconditions::default() };
        let params = DeleteParams::background().preconditions(uid_is);
        let deleting = self.store.deleting(id, uid);
        match self.send::<Value>(path::beside(id).delete(&id.name, &params)).await {
            Ok(_) => deleting.done(),
            Err(kube::Error::Api(status)) if status.is_not_found() => deleting.done(),
            Err(kube::Error::Api(status)) if status.is_conflict() => {
                let message = format!("{id} is not the object that was to be deleted: {}", status.message);
                return Err(Problem::new(Category::Conflict, message)
                    .hint("someone made it again meanwhile; the next pass looks again"));
            }
            Err(error) => return Err(problem(attempt(id, &id.to_string(), "delete"), &error)),
        }
        Ok(())
    }

    async fn server_version(&self) -> Option<(u32, u32)> {
        let ask = || async {
            let info = self.client.apiserver_version().await.ok()?;
            // Some providers write `34+`.
            let number = |text: &str| text.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().ok();
            Some((number(&info.major)?, number(&info.minor)?))
        };
        self.version.get_or_try_init(|| async { ask().await.ok_or(()) }).await.ok().copied()
    }

    fn has_drifted(&self) -> bool {
        self.store.has_drifted()
    }

    async fn drifted(&self) {
        self.store.drifted().await;
    }
}

/// What is being done to an object.
pub(super) fn attempt<'a>(id: &'a ObjectId, shown: &'a str, verb: &'static str) -> Attempt<'a> {
    Attempt { what: shown, verb, resource: path::plural(id.kind), namespace: &id.namespace }
}
