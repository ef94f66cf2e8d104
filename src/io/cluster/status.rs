//! The ConfigMap that a controller writes its status into, for `larder status` to read.

use kube::api::{GetParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::{KubeCluster, kube::attempt, path, problem::problem};
use crate::model::{
    failure::{Category, Problem},
    manifest::{Kind, ObjectId},
    status::Status,
};

/// The key under which a status is kept.
const KEY: &str = "status.json";

/// The key of the last accepted commit, where commits have to be signed.
pub(super) const ACCEPTED: &str = "accepted";

/// The namespace of `deploy/kustomize/base`.
const DEPLOYED: &str = "larder-system";

/// The most bytes of a status. The API server takes 1 MiB for the whole object.
pub(super) const MAX_BYTES: usize = 1_000_000;

impl KubeCluster {
    /// Writes a status into a ConfigMap, if it says something else than before. The ConfigMap is made when it is not
    /// there, and is not an object of the inventory.
    ///
    /// # Errors
    /// When it is too large, belongs to someone else, or the API server refuses.
    pub async fn write_status(&self, namespace: &str, name: &str, status: &str) -> Result<(), Problem> {
        let id = id(namespace, name);
        if status.len() > MAX_BYTES {
            return Err(Problem::new(
                Category::Cluster,
                format!("the status has {} bytes, which {id} cannot hold", status.len()),
            )
            .hint("`larder status` shows what the cluster holds without it; split the environment repository"));
        }
        // One read for each pass that has something to say is cheaper than to remember what is there.
        let live = self.get(&id).await?;
        if live.as_ref().is_some_and(|live| live["data"][KEY] == *status) {
            return Ok(());
        }
        let object = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": namespace, "labels": {"app.kubernetes.io/managed-by": "larder"}},
            "data": {KEY: status},
        });
        let params = PatchParams::apply(&self.identity.manager).force();
        let request = path::beside(&id).patch(name, &params, &Patch::Apply(&object));
        let written = self.send::<Value>(request).await;
        written.map(drop).map_err(|error| problem(attempt(&id, &id.to_string(), "patch"), &error))
    }

    /// The status that a controller has written down, in a form that this version reads. Where no namespace was named, it
    /// is looked for in the kubeconfig's and in the one of `deploy/`.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn published_status(&self) -> Result<Option<Status>, Problem> {
        let mut status = self.read_status(self.status_place(), &self.status_name()).await?;
        if status.is_none() && self.status_namespace.is_none() {
            status = self.read_status(DEPLOYED, &self.status_name()).await?;
        }
        Ok(status.and_then(|status| serde_json::from_str(&status).ok()))
    }

    pub(super) fn status_place(&self) -> &str {
        self.status_namespace.as_deref().unwrap_or_else(|| self.client.default_namespace())
    }

    pub(super) fn status_name(&self) -> String {
        match self.identity.instance.as_str() {
            "default" => "larder-status".to_owned(),
            instance => format!("larder-status-{instance}"),
        }
    }

    /// Reads what [`KubeCluster::write_status`] has written; none when there is nothing.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn read_status(&self, namespace: &str, name: &str) -> Result<Option<String>, Problem> {
        self.read_key(namespace, name, KEY).await
    }

    /// Records the last accepted commit, as a field of its own manager: who writes the status does not remove it.
    pub(super) async fn write_accepted(&self, commit: &str) -> Result<(), Problem> {
        let (namespace, name) = (self.status_place().to_owned(), self.status_name());
        let id = id(&namespace, &name);
        let object = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": namespace},
            "data": {ACCEPTED: commit},
        });
        let params = PatchParams::apply(&format!("{}-accepted", self.identity.manager)).force();
        let request = path::beside(&id).patch(&name, &params, &Patch::Apply(&object));
        let written = self.send::<Value>(request).await;
        written.map(drop).map_err(|error| problem(attempt(&id, &id.to_string(), "patch"), &error))
    }

    /// One key of the ConfigMap; none where there is none.
    pub(super) async fn read_key(&self, namespace: &str, name: &str, key: &str) -> Result<Option<String>, Problem> {
        let id = id(namespace, name);
        match self.send::<Value>(path::beside(&id).get(name, &GetParams::default())).await {
            Ok(object) => Ok(object["data"][key].as_str().map(str::to_owned)),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
            Err(error) => Err(problem(attempt(&id, &id.to_string(), "get"), &error)),
        }
    }
}

fn id(namespace: &str, name: &str) -> ObjectId {
    ObjectId { kind: Kind::ConfigMap, namespace: namespace.to_owned(), name: name.to_owned() }
}
