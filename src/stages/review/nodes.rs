//! How many nodes a puller is meant for, by the rules of the DaemonSet controller.
//!
//! Source: <https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/#how-daemon-pods-are-scheduled>.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Side;
use crate::model::{
    manifest::{Kind, Owner},
    name::EnvironmentId,
    observation::{NodeTraits, Taint},
};

pub(super) fn count(side: &Side, nodes: &BTreeMap<String, NodeTraits>) -> BTreeMap<EnvironmentId, usize> {
    let mut counts = BTreeMap::new();
    for (owner, result) in &side.manifests {
        let (Owner::Environment(id), Ok(manifests)) = (owner, result) else { continue };
        let pullers = manifests.iter().filter(|manifest| manifest.id.kind == Kind::DaemonSet);
        let pods: Vec<&Value> = pullers.filter_map(|puller| puller.object.pointer("/spec/template/spec")).collect();
        if !pods.is_empty() {
            let takes = |(name, node): &(&String, &NodeTraits)| pods.iter().any(|pod| may_run(pod, name, node));
            counts.insert(id.clone(), nodes.iter().filter(takes).count());
        }
    }
    counts
}

fn may_run(pod: &Value, name: &str, node: &NodeTraits) -> bool {
    let selector = pod["nodeSelector"].as_object();
    let selected = selector.is_none_or(|selector| {
        selector.iter().all(|(key, value)| node.labels.get(key).map(String::as_str) == value.as_str())
    });
    let tolerations = pod["tolerations"].as_array().map(Vec::as_slice).unwrap_or_default();
    let hard = node.taints.iter().filter(|taint| taint.effect != "PreferNoSchedule");
    let tolerated =
        hard.into_iter().all(|taint| always_tolerated(taint) || tolerations.iter().any(|one| tolerates(one, taint)));
    let terms = pod.pointer("/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms");
    let wanted = terms.and_then(Value::as_array).is_none_or(|terms| terms.iter().any(|term| fits(term, name, node)));
    selected && tolerated && wanted
}

/// What every DaemonSet's pod tolerates: the state of a node.
fn always_tolerated(taint: &Taint) -> bool {
    let states = ["not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable"];
    taint.key.strip_prefix("node.kubernetes.io/").is_some_and(|state| states.contains(&state))
}

fn tolerates(toleration: &Value, taint: &Taint) -> bool {
    let text = |key: &str| toleration[key].as_str().unwrap_or_default();
    let effect = text("effect").is_empty() || text("effect") == taint.effect;
    let value = text("operator") == "Exists" || text("value") == taint.value;
    let key = if text("key").is_empty() { text("operator") == "Exists" } else { text("key") == taint.key };
    effect && key && value
}

/// Whether a node fits a term: all of its expressions. A term without any fits none.
fn fits(term: &Value, name: &str, node: &NodeTraits) -> bool {
    let list = |key: &str| term[key].as_array().map(Vec::as_slice).unwrap_or_default();
    let (expressions, fields) = (list("matchExpressions"), list("matchFields"));
    let field = |key: &str| (key == "metadata.name").then_some(name);
    let label = |key: &str| node.labels.get(key).map(String::as_str);
    !(expressions.is_empty() && fields.is_empty())
        && expressions.iter().all(|one| holds(one, label(one["key"].as_str().unwrap_or_default())))
        && fields.iter().all(|one| holds(one, field(one["key"].as_str().unwrap_or_default())))
}

fn holds(expression: &Value, actual: Option<&str>) -> bool {
    let values: Vec<&str> = expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let number = |text: &str| text.parse::<i64>().ok();
    let compared = |greater: bool| {
        let (Some(actual), Some(bound)) = (actual.and_then(number), values.first().copied().and_then(number)) else {
            return false;
        };
        if greater { actual > bound } else { actual < bound }
    };
    match expression["operator"].as_str().unwrap_or_default() {
        "In" => actual.is_some_and(|actual| values.contains(&actual)),
        "NotIn" => actual.is_none_or(|actual| !values.contains(&actual)),
        "Exists" => actual.is_some(),
        "DoesNotExist" => actual.is_none(),
        "Gt" => compared(true),
        "Lt" => compared(false),
        _ => false,
    }
}
