//! A namespace of a test's own, and what a pass does with the cluster.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use larder::{
    io::cluster::{Cluster as _, KubeCluster, carry_out, compare_all},
    model::{
        digest::Digest,
        failure::Problem,
        manifest::{
            INSTANCE_LABEL, Kind, MANIFEST_ANNOTATION, Manifest, Manifests, OBJECT_ANNOTATION, OWNER_ANNOTATION,
            ObjectId, Owner,
        },
        plan::{Action, Applied, Outcome, Plan},
        settings::{Confirmed, Prune},
        yaml::to_canonical_json,
    },
    stages::plan::{judge, plan, suspects},
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// A namespace and an instance that no other test uses. Both are removed when it is dropped.
pub struct World {
    pub id: String,
    pub cluster: KubeCluster,
}

impl World {
    /// A namespace that is there.
    pub async fn new(name: &str) -> Self {
        let world = Self::without_namespace(name).await;
        world.kubectl(&["create", "namespace", &world.id]);
        world
    }

    /// A namespace that is not there.
    pub async fn without_namespace(name: &str) -> Self {
        let id = format!("cluster-{name}-{:06}", fastrand::u32(..1_000_000));
        let cluster = KubeCluster::connect(Some(&kubeconfig()), None, &id).await.unwrap();
        Self { id, cluster }
    }

    /// The same instance, as another process would see it.
    pub async fn restarted(&self) -> KubeCluster {
        KubeCluster::connect(Some(&kubeconfig()), None, &self.id).await.unwrap()
    }

    /// Runs kubectl on the test's namespace and gives what it printed.
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        let output = self.try_kubectl(arguments);
        assert!(output.status.success(), "kubectl {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn try_kubectl(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(kubectl());
        command.arg("--kubeconfig").arg(kubeconfig()).args(["--namespace", &self.id]).args(arguments);
        command.output().expect("kubectl runs; `make cluster-up` installs it")
    }

    /// Hands objects to kubectl as a file.
    pub fn kubectl_with(&self, arguments: &[&str], objects: &Value) -> String {
        let file = tempfile::NamedTempFile::with_suffix(".json").unwrap();
        std::fs::write(file.path(), objects.to_string()).unwrap();
        let mut all = arguments.to_vec();
        all.extend(["-f", file.path().to_str().unwrap()]);
        self.kubectl(&all)
    }

    /// A field of a live object, as a JSON path.
    pub fn field(&self, object: &str, path: &str) -> String {
        self.kubectl(&["get", object, "-o", &format!("jsonpath={{{path}}}")])
    }

    pub fn version(&self, object: &str) -> String {
        self.field(object, ".metadata.resourceVersion")
    }

    /// A manifest in the test's namespace, with labels and annotations as the render stage writes them.
    pub fn manifest(&self, owner: &str, kind: Kind, name: &str, body: Value) -> Manifest {
        let namespace = if kind == Kind::Namespace { String::new() } else { self.id.clone() };
        let id = ObjectId { kind, namespace, name: name.to_owned() };
        let mut object = body;
        object["apiVersion"] = kind.api_version().into();
        object["kind"] = kind.as_str().into();
        object["metadata"] = json!({
            "name": name,
            "labels": {INSTANCE_LABEL: self.id},
            "annotations": {OBJECT_ANNOTATION: id.to_string(), OWNER_ANNOTATION: owner},
        });
        if !id.namespace.is_empty() {
            object["metadata"]["namespace"] = id.namespace.clone().into();
        }
        let digest = Digest::sha256(to_canonical_json(&object).as_bytes());
        object["metadata"]["annotations"][MANIFEST_ANNOTATION] = digest.short().into();
        Manifest { id, owner: Owner::parse(owner).unwrap(), object: object.into(), impersonate: None }
    }

    pub fn config_map(&self, owner: &str, name: &str, value: &str) -> Manifest {
        self.manifest(owner, Kind::ConfigMap, name, json!({"data": {"images.list": value}}))
    }

    /// A puller that no node runs, with the fields that have been trouble elsewhere.
    pub fn daemon_set(&self, owner: &str, name: &str, init: &str, image: &str) -> Manifest {
        let container = |name: &str| {
            json!({
                "name": name, "image": image, "command": ["sleep", "1"], "env": [], "ports": [{"containerPort": 80}],
                "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}, "requests": {"cpu": "0.5", "memory": "0.5G"}},
                "volumeMounts": [{"name": "hold", "mountPath": "/hold", "readOnly": true}],
                "securityContext": {"runAsNonRoot": true, "capabilities": {"drop": ["ALL"]}},
            })
        };
        let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]}]}}});
        let template = json!({
            "metadata": {"labels": {"larder.dev/puller": name}},
            "spec": {
                "serviceAccountName": "default", "automountServiceAccountToken": false, "enableServiceLinks": false,
                "nodeSelector": {"larder.dev/no-node": "true"}, "tolerations": null, "affinity": affinity,
                "imagePullSecrets": [{"name": "pull"}], "securityContext": {},
                "initContainers": [container(init)], "containers": [container("image-a"), container("image-b")],
                "volumes": [{"name": "hold", "emptyDir": {"sizeLimit": "32Mi"}}],
            },
        });
        let spec = json!({
            "selector": {"matchLabels": {"larder.dev/puller": name}}, "revisionHistoryLimit": 1,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}}, "template": template,
        });
        self.manifest(owner, Kind::DaemonSet, name, json!({"spec": spec}))
    }

    /// One pass, from the inventory to the last write.
    pub async fn pass(&self, manifests: &Manifests) -> (Plan, Applied) {
        pass(&self.cluster, manifests).await
    }

    /// A pass that must go well; how many objects had each action.
    pub async fn good_pass(&self, manifests: &Manifests) -> Vec<(Action, ObjectId)> {
        let (plan, applied) = self.pass(manifests).await;
        assert_eq!(plan.failures.len(), 0, "{:?}", plan.failures);
        for (change, outcome) in &applied.outcomes {
            assert!(matches!(outcome, Outcome::Done | Outcome::Unchanged), "{} {outcome:?}", change.id);
        }
        plan.changes.into_iter().map(|change| (change.action, change.id)).collect()
    }

    /// The problem of a pass that must fail for this one owner, before anything is written.
    pub async fn problem(&self, manifests: &Manifests) -> String {
        let (plan, _) = self.pass(manifests).await;
        let [(_, failure)] = plan.failures.iter().collect::<Vec<_>>()[..] else {
            panic!("one failure: {:?}", plan.failures)
        };
        failure.to_string()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.try_kubectl(&["delete", "namespace", &self.id, "--wait=false", "--ignore-not-found"]);
    }
}

pub async fn pass(cluster: &KubeCluster, manifests: &Manifests) -> (Plan, Applied) {
    let plan = planned(cluster, manifests).await.unwrap();
    let applied = carry_out(cluster, &plan, &CancellationToken::new()).await;
    (plan, applied)
}

pub async fn planned(cluster: &KubeCluster, manifests: &Manifests) -> Result<Plan, Problem> {
    let held = BTreeSet::new();
    let inventory = cluster.inventory().await?;
    let suspects = suspects(manifests, &inventory, &held);
    let verdicts = compare_all(cluster, &suspects, |manifest, live| judge(manifest, live, "commit 1234567")).await;
    Ok(plan(
        manifests,
        &inventory,
        verdicts,
        &held,
        &Prune { budget: 100, confirmed: vec![Confirmed::Tenant("team".parse().unwrap())] },
    ))
}

/// Manifests by their owners.
pub fn manifests(list: Vec<Manifest>) -> Manifests {
    let mut manifests = Manifests::new();
    for manifest in list {
        manifests.entry(manifest.owner.clone()).or_insert_with(|| Ok(Vec::new())).as_mut().unwrap().push(manifest);
    }
    manifests
}

/// What `make cluster-up` printed.
pub fn kubeconfig() -> PathBuf {
    let path = variable("KUBECONFIG").map_or_else(|| state().join("kubeconfig"), PathBuf::from);
    assert!(
        path.exists(),
        "{} is not there: `make cluster-up` starts the cluster that this test needs",
        path.display()
    );
    path
}

fn state() -> PathBuf {
    variable("CLUSTER_STATE").map_or_else(|| Path::new("/var/tmp").join("local-cluster"), PathBuf::from)
}

fn kubectl() -> PathBuf {
    let home = variable("CLUSTER_HOME").or_else(|| variable("HOME").map(|home| format!("{home}/.cache/local-cluster")));
    let installed = home.map(|home| Path::new(&home).join("bin/kubectl"));
    installed.filter(|path| path.exists()).unwrap_or_else(|| "kubectl".into())
}

#[expect(clippy::disallowed_methods, reason = "tests are told about their world by the environment")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
