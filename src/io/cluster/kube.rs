//! A real Kubernetes cluster.

use std::{collections::BTreeMap, time::Duration};

use kube::{
    Client,
    api::{DeleteParams, GetParams, ListParams, ObjectList, PartialObjectMeta, Preconditions},
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::OnceCell;

use super::{
    Access, Cluster, connect, field_manager,
    inventory::{Identity, Shapes},
    path,
    problem::{Attempt, problem},
};
use crate::model::{
    failure::{Category, Problem},
    manifest::{Comparison, Inventory, Kind, Manifest, ObjectId},
};

/// How long an answer may take. Longer than webhooks may (30 s).
const ANSWER: Duration = Duration::from_secs(60);

/// Objects of one page of a list.
const PAGE: u32 = 500;

/// A Kubernetes cluster, as one instance of larder sees it.
pub struct KubeCluster {
    pub(super) client: Client,
    pub(super) identity: Identity,
    version: OnceCell<(u32, u32)>,
}

impl KubeCluster {
    /// A cluster; nothing has been asked yet.
    ///
    /// # Errors
    /// When no kubeconfig and no service account can be used.
    pub async fn connect(access: &Access) -> Result<Self, Problem> {
        let client = connect::client(access).await?;
        let identity = Identity { instance: access.instance.clone(), manager: field_manager(&access.instance) };
        Ok(Self { client, identity, version: OnceCell::new() })
    }

    /// Sends a request. None of what is sent or answered is logged.
    pub(super) async fn send<T: DeserializeOwned>(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<T, kube::Error> {
        let request = request.map_err(kube::Error::BuildRequest)?;
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

    /// The metadata of all objects of a kind with our label.
    async fn list(&self, kind: Kind, shapes: &mut Shapes, inventory: &mut Inventory) -> Result<(), Problem> {
        let what = format!("the list of {}", path::plural(kind));
        let attempt = Attempt { what: &what, verb: "list", resource: path::plural(kind), namespace: "" };
        let mut page = ListParams::default().labels(&self.identity.selector()).limit(PAGE);
        loop {
            let list: ObjectList<PartialObjectMeta> =
                self.send(path::all(kind).list_metadata(&page)).await.map_err(|error| problem(attempt, &error))?;
            inventory.extend(list.items.iter().filter_map(|item| self.identity.entry(kind, &item.metadata, shapes)));
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page.continue_token = Some(token),
                None => return Ok(()),
            }
        }
    }
}

impl Cluster for KubeCluster {
    async fn inventory(&self) -> Result<Inventory, Problem> {
        let mut inventory = BTreeMap::new();
        let mut shapes = Shapes::default();
        for kind in Kind::ALL {
            self.list(kind, &mut shapes, &mut inventory).await?;
        }
        Ok(inventory)
    }

    async fn compare(&self, manifest: &Manifest) -> Result<Comparison, Problem> {
        let applied = self.patch(manifest, true).await?;
        // A dry run that would create has no version to show.
        if applied["metadata"]["resourceVersion"].as_str().unwrap_or_default().is_empty() {
            return Ok(Comparison { live: None, applied });
        }
        let live = self.get(&manifest.id).await?;
        if let Some(live) = &live {
            self.must_be_ours(&manifest.id, live)?;
        }
        Ok(Comparison { live, applied })
    }

    async fn apply(&self, manifest: &Manifest) -> Result<(), Problem> {
        self.patch(manifest, false).await.map(drop)
    }

    async fn delete(&self, id: &ObjectId, uid: &str) -> Result<(), Problem> {
        if id.kind == Kind::Namespace {
            return Err(Problem::new(
                Category::Policy,
                format!("{id} is not deleted, because larder never deletes a Namespace"),
            )
            .hint(format!("run `kubectl delete namespace {}` if nothing else is in it", id.name)));
        }
        let uid_is = Preconditions { uid: Some(uid.to_owned()), ..Preconditions::default() };
        let params = DeleteParams::background().preconditions(uid_is);
        match self.send::<Value>(path::beside(id).delete(&id.name, &params)).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            Err(kube::Error::Api(status)) if status.is_conflict() => Err(Problem::new(
                Category::Conflict,
                format!("{id} is not the object that was to be deleted: {}", status.message),
            )
            .hint("somebody made it anew meanwhile; the next pass looks again")),
            Err(error) => Err(problem(attempt(id, &id.to_string(), "delete"), &error)),
        }
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
}

/// What is being done to an object.
pub(super) fn attempt<'a>(id: &'a ObjectId, shown: &'a str, verb: &'static str) -> Attempt<'a> {
    Attempt { what: shown, verb, resource: path::plural(id.kind), namespace: &id.namespace }
}
