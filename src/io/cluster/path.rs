//! Where the API server has objects.

use kube::core::Request;

use crate::model::manifest::{Kind, ObjectId};

/// Requests to all objects of a kind, in all namespaces.
pub(super) fn all(kind: Kind) -> Request {
    Request::new(format!("{}/{}", group(kind), plural(kind)))
}

/// Requests to the objects beside this one: its kind, in its namespace.
pub(super) fn beside(id: &ObjectId) -> Request {
    match id.namespace.as_str() {
        "" => all(id.kind),
        namespace => Request::new(format!("{}/namespaces/{namespace}/{}", group(id.kind), plural(id.kind))),
    }
}

/// The name of a kind in RBAC rules and paths.
pub(super) fn plural(kind: Kind) -> &'static str {
    match kind {
        Kind::Namespace => "namespaces",
        Kind::ServiceAccount => "serviceaccounts",
        Kind::ConfigMap => "configmaps",
        Kind::DaemonSet => "daemonsets",
    }
}

fn group(kind: Kind) -> &'static str {
    match kind {
        Kind::DaemonSet => "/apis/apps/v1",
        Kind::Namespace | Kind::ServiceAccount | Kind::ConfigMap => "/api/v1",
    }
}
