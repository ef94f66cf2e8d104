//! Server-side apply, and whose fields it may take.

use kube::{
    api::{ObjectMeta, Patch, PatchParams},
    core::Status,
};
use serde_json::Value;

use super::{KubeCluster, impersonate, inventory::label, kube::attempt, path, problem::problem};
use crate::model::{
    failure::{Category, Problem},
    manifest::{INSTANCE_LABEL, Manifest, OBJECT_ANNOTATION, ObjectId},
};

/// A field manager that does not apply on the server's side and yet declares what it sends.
const KUBECTL_APPLY: &str = "kubectl-client-side-apply";

/// Another manager's claim on a field.
#[derive(Debug, PartialEq, Eq)]
struct Claim {
    manager: String,
    field: String,
    /// Whether the manager declares the field, as an apply does, and did not just write it once, as `kubectl edit` does.
    declared: bool,
}

impl KubeCluster {
    /// Applies a manifest, or shows what an apply would come to.
    ///
    /// A field of an object of ours that someone has only written (`kubectl edit`) is put right; one that someone else
    /// applies as well is a conflict that people must solve.
    pub(super) async fn patch(&self, manifest: &Manifest, dry_run: bool) -> Result<Value, Problem> {
        let id = &manifest.id;
        let send = |force| {
            let params = PatchParams {
                dry_run,
                force,
                field_manager: Some(self.identity.manager.clone()),
                field_validation: None,
            };
            let request = path::beside(id).patch(&id.name, &params, &Patch::Apply(&*manifest.object));
            self.send::<Value>(impersonate::in_the_name_of(manifest.impersonate.as_deref(), request))
        };
        let failed = |error| problem(attempt(id, &id.to_string(), "patch"), &error);
        let object = match send(false).await {
            Ok(object) => object,
            Err(kube::Error::Api(status)) if status.is_conflict() => {
                let claims = claims(&status);
                // Whose object it is decides first: a foreign one is none of our business, whatever its fields.
                let Some(live) = self.get(id).await? else { return Err(failed(kube::Error::Api(status))) };
                self.must_be_ours(id, &live)?;
                if claims.is_empty() {
                    return Err(failed(kube::Error::Api(status)));
                }
                if let Some(problem) = conflict(id, &claims) {
                    return Err(problem);
                }
                send(true).await.map_err(failed)?
            }
            Err(error) => return Err(failed(error)),
        };
        if object["metadata"]["deletionTimestamp"].is_string() {
            return Err(Problem::new(Category::Cluster, format!("{id} is being deleted"))
                .hint("nothing to do: it is recreated once it is gone; if it stays, see its finalizers"));
        }
        Ok(object)
    }

    /// That an object has our label and its own identity.
    pub(super) fn must_be_ours(&self, id: &ObjectId, live: &Value) -> Result<(), Problem> {
        let metadata: ObjectMeta = serde_json::from_value(live["metadata"].clone()).unwrap_or_default();
        if self.identity.is_ours(id, &metadata) {
            return Ok(());
        }
        let whose = match label(&metadata) {
            Some(instance) if instance != self.identity.instance => {
                format!("belongs to the larder instance `{instance}`")
            }
            _ => "exists and was not made by larder".to_owned(),
        };
        let see = match label(&metadata) {
            Some(instance) if instance != self.identity.instance => format!("add `--instance {instance}`, "),
            _ => "rename it, ".to_owned(),
        };
        let kind = id.kind.as_str().to_lowercase();
        let namespace = if id.namespace.is_empty() { String::new() } else { format!(" --namespace {}", id.namespace) };
        Err(Problem::new(Category::Conflict, format!("{id} {whose}; it is left alone")).hint(format!(
            "{see}or hand it over: `kubectl{namespace} label --overwrite {kind} {name} {INSTANCE_LABEL}={instance}` and \
             `kubectl{namespace} annotate --overwrite {kind} {name} {OBJECT_ANNOTATION}={id}`",
            name = id.name,
            instance = self.identity.instance,
        )))
    }
}

/// The problem when someone else declares fields.
fn conflict(id: &ObjectId, claims: &[Claim]) -> Option<Problem> {
    let declared: Vec<&Claim> = claims.iter().filter(|claim| claim.declared).collect();
    let first = declared.first()?;
    let list: Vec<String> = declared
        .iter()
        .map(|claim| format!("{} belongs to the field manager `{}`", claim.field, claim.manager))
        .collect();
    Some(Problem::new(Category::Conflict, format!("{id}: {}", list.join(", "))).hint(format!(
        "take the field out of what `{}` applies to this object, or out of larder's template",
        first.manager
    )))
}

/// The claims that a refused apply names.
///
/// The message of each cause is `conflict with "MANAGER"` for an apply, and has ` using VERSION` after it for an update:
/// <https://github.com/kubernetes-sigs/structured-merge-diff> leaves the text to `fieldmanager/managedfields` of
/// `apimachinery`.
fn claims(status: &Status) -> Vec<Claim> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes
        .into_iter()
        .filter(|cause| cause.reason == "FieldManagerConflict")
        .map(|cause| {
            let manager = cause.message.split('"').nth(1).unwrap_or(&cause.message).to_owned();
            let declared = !cause.message.contains(" using ") || manager == KUBECTL_APPLY;
            Claim { manager, field: cause.field.clone(), declared }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::manifest::Kind;

    fn status(causes: &[(&str, &str)]) -> Status {
        let causes: Vec<Value> = causes
            .iter()
            .map(|(message, field)| json!({"reason": "FieldManagerConflict", "message": message, "field": field}))
            .collect();
        serde_json::from_value(json!({"code": 409, "reason": "Conflict", "details": {"causes": causes}})).unwrap()
    }

    #[test]
    fn who_declares_a_field_is_told_from_who_wrote_it() {
        let cases = [
            ("conflict with \"alice\"", "alice", true),
            ("conflict with \"kubectl-edit\" using apps/v1", "kubectl-edit", false),
            ("conflict with \"kubectl-set\" using apps/v1 at 2026-11-30T14:32:12Z", "kubectl-set", false),
            ("conflict with \"kubectl-client-side-apply\" using apps/v1", "kubectl-client-side-apply", true),
            ("conflict with \"before-first-apply\" using v1", "before-first-apply", false),
        ];
        for (message, manager, declared) in cases {
            let expected = Claim { manager: manager.to_owned(), field: ".spec.x".to_owned(), declared };
            assert_eq!(claims(&status(&[(message, ".spec.x")])), [expected]);
        }
    }

    #[test]
    fn a_conflict_names_manager_and_field() {
        let id = ObjectId { kind: Kind::DaemonSet, namespace: "a".to_owned(), name: "b".to_owned() };
        let status = status(&[
            ("conflict with \"alice\"", ".spec.template.spec.containers[name=\"c\"].image"),
            ("conflict with \"kubectl-edit\" using apps/v1", ".spec.paused"),
        ]);
        let text = conflict(&id, &claims(&status)).unwrap().to_string();
        assert!(
            text.contains("`alice`") && text.contains(".spec.template.spec.containers[name=\"c\"].image"),
            "{text}"
        );
        assert!(!text.contains(".spec.paused"), "{text}");
    }
}
