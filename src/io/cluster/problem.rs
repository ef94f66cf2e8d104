//! The API server's errors, as problems that say what to do.

use kube::{Error, core::Status};

use crate::model::failure::{Category, Problem};

/// The way out of a refusal by a quota, a webhook or a policy.
const POLICY: &str =
    "a rule of the cluster refuses it: change the environment, or ask who runs the policy or the quota";

/// What was being done, for messages and hints.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt<'a> {
    /// The object or the list: `DaemonSet/a/b`.
    pub(super) what: &'a str,
    /// The verb that RBAC must allow: `patch`.
    pub(super) verb: &'static str,
    /// The resource in RBAC's words: `daemonsets`.
    pub(super) resource: &'static str,
    /// The namespace, or nothing.
    pub(super) namespace: &'a str,
}

/// The problem that an error is.
pub(super) fn problem(attempt: Attempt<'_>, error: &Error) -> Problem {
    match error {
        Error::Api(status) => of_status(attempt, status),
        error => of_transport(attempt.what, error),
    }
}

/// The problem when there was no answer.
pub(super) fn of_transport(what: &str, error: &Error) -> Problem {
    let hint = match error {
        Error::Service(_) | Error::HyperError(_) => {
            "check that the API server of the kubeconfig can be reached from here"
        }
        Error::Auth(_) | Error::InferConfig(_) | Error::InferKubeconfig(_) => {
            "check the kubeconfig: --kubeconfig, KUBECONFIG"
        }
        _ => "try again; if it stays, it is a fault of larder or of a proxy before the API server",
    };
    let why = match error {
        // What lies between only names layers of the client.
        Error::Service(_) | Error::HyperError(_) => format!("the API server does not answer: {}", root(error)),
        error => chain(error),
    };
    Problem::new(Category::Cluster, format!("{what}: {why}")).hint(hint)
}

/// The first cause of an error.
fn root(mut error: &dyn std::error::Error) -> String {
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// An error and its sources, each said once.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let next = error.to_string();
        if !text.ends_with(&next) {
            text = format!("{text}: {next}");
        }
        source = error.source();
    }
    text
}

fn of_status(attempt: Attempt<'_>, status: &Status) -> Problem {
    let Attempt { what, verb, resource, namespace } = attempt;
    let cause = |reason: &str, field: &str| {
        let causes = status.details.iter().flat_map(|details| &details.causes);
        causes
            .into_iter()
            .any(|cause| (reason.is_empty() || cause.reason == reason) && (field.is_empty() || cause.field == field))
    };
    let message = status.message.trim();
    let says = |message: &str| Problem::new(Category::Cluster, format!("{what}: {message}"));
    match status.code {
        401 => says("the API server does not know who this is")
            .hint("check the token or certificate of the kubeconfig; it may have expired"),
        403 if cause("NamespaceTerminating", "") => says(&format!("the namespace {namespace} is being deleted"))
            .hint("it continues when the namespace is there again"),
        403 if message.contains("cannot impersonate") => says(message)
            .hint("allow `impersonate` on that one service account in a Role for larder, or correct `impersonate` of the tenant in larder.yaml"),
        403 if message.contains("cannot") && message.contains("User \"system:serviceaccount:") && message.contains(verb) => {
            says(message).hint(format!(
                "allow `{verb}` on `{resource}` to the user that the message names: in larder's ClusterRole, or in a Role for the service account that the tenant's `impersonate` names"
            ))
        }
        // Only RBAC's refusal names the verb.
        403 if message.contains("cannot") && message.contains(verb) => {
            says(message).hint(format!("allow `{verb}` on `{resource}` in larder's ClusterRole"))
        }
        // A quota, or what a webhook or a policy of the API server denies.
        403 => says(message).hint(POLICY),
        _ if message.contains("denied request") || message.contains("denied the request") => says(message).hint(POLICY),
        404 if !namespace.is_empty() && message.contains(&format!("namespaces \"{namespace}\"")) => says(&format!(
            "the namespace {namespace} does not exist"
        ))
        .hint(format!(
            "set `createNamespace: true` for the tenant in larder.yaml, or run `kubectl create namespace {namespace}`"
        )),
        404 => says(message).hint("the API server does not have it (any more); the next pass looks again"),
        422 if resource == "daemonsets" && cause("", "spec.selector") => {
            let name = what.rsplit('/').next().unwrap_or_default();
            says("its selector is another one, and a selector cannot be changed").hint(format!(
                "run `kubectl --namespace {namespace} delete daemonset {name}`; the next pass makes it again (images stay on the nodes)"
            ))
        }
        400 | 422 => {
            says(message).hint("change what the message names in the environment, `larder.yaml` or the template")
        }
        413 => says(message).hint("the object is too large: split the environment"),
        429 | 503 | 504 => {
            says(&format!("the API server is overloaded: {message}")).hint("nothing to do: the next pass tries again")
        }
        code => says(&format!("{message} ({code})")).hint("see the API server's log; the next pass tries again"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn message(resource: &'static str, status: &Value) -> String {
        let status: Status = serde_json::from_value(status.clone()).unwrap();
        let attempt = Attempt { what: "DaemonSet/a/b", verb: "patch", resource, namespace: "a" };
        problem(attempt, &Error::Api(status.boxed())).to_string()
    }

    #[test]
    fn every_answer_says_what_to_do() {
        let cases = [
            // Real answers of an API server 1.34.
            (
                json!({"code": 404, "reason": "NotFound", "message": "namespaces \"a\" not found"}),
                "the namespace a does not exist",
                "createNamespace: true",
            ),
            (
                json!({"code": 422, "reason": "Invalid", "message": "DaemonSet.apps \"b\" is invalid", "details":
                    {"causes": [{"reason": "FieldValueInvalid", "message": "field is immutable", "field": "spec.selector"}]}}),
                "its selector is another one",
                "kubectl --namespace a delete daemonset b",
            ),
            (
                json!({"code": 403, "reason": "Forbidden", "message":
                    "daemonsets.apps \"b\" is forbidden: User \"u\" cannot patch resource \"daemonsets\" in API group \"apps\" in the namespace \"a\""}),
                "cannot patch",
                "allow `patch` on `daemonsets`",
            ),
            (
                json!({"code": 403, "reason": "Forbidden", "message": "unable to create new content in namespace a because it is being terminated",
                    "details": {"causes": [{"reason": "NamespaceTerminating", "message": "namespace a is being terminated", "field": "metadata.namespace"}]}}),
                "the namespace a is being deleted",
                "continues when",
            ),
            (
                json!({"code": 403, "message": "admission webhook \"policy.example.com\" denied the request: no images of team x"}),
                "admission webhook \"policy.example.com\" denied the request: no images of team x",
                "policy",
            ),
            (
                json!({"code": 429, "message": "storage is (re)initializing"}),
                "storage is (re)initializing",
                "the next pass",
            ),
            (json!({"code": 401, "message": "Unauthorized"}), "does not know who this is", "kubeconfig"),
            (json!({"code": 500, "message": "etcd: boom"}), "etcd: boom (500)", "log"),
        ];
        for (status, expected, hint) in cases {
            let text = message("daemonsets", &status);
            let (said, hinted) = text.split_once(" (hint: ").unwrap();
            assert!(said.contains(expected), "{text}");
            assert!(hinted.contains(hint), "{text}");
        }
    }
}
