//! Node selectors, tolerations and affinity.

use k8s_openapi::api::core::v1::Affinity;
use serde_json::Value;

use crate::model::{
    environment::{Placement, Toleration},
    failure::{Category, Problem},
    text::is_unseen,
};

use super::{
    super::source::{
        check::Check,
        located::Located,
        values::{label_key, label_value},
    },
    file::shared::{self, Effect, Operator},
};

/// Checks a set of nodes.
pub fn placement(check: &mut Check<'_>, file: shared::Placement) -> Placement {
    Placement {
        node_selector: check
            .entries(file.node_selector)
            .into_iter()
            .filter_map(|(key, value)| {
                let key = check.read(Some(&key), label_key);
                let value = check.read(Some(&value), label_value);
                Some((key?, value?))
            })
            .collect(),
        tolerations: file
            .tolerations
            .unwrap_or_default()
            .into_iter()
            .map(|toleration| self::toleration(check, toleration))
            .collect(),
        affinity: file.affinity.and_then(|affinity| check.keep(affinity.place, self::affinity(affinity.value))),
    }
}

/// The API server's own rules, so that a wrong toleration fails here and not there. Source:
/// <https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/>.
fn toleration(check: &mut Check<'_>, Located { value: file, place }: Located<shared::Toleration>) -> Toleration {
    let schema = |message: &str, hint: &str| Problem::new(Category::Schema, message).hint(hint);
    if file.key.is_none() && file.operator != Some(Operator::Exists) {
        check
            .report(place, schema("a toleration without key needs operator Exists", "add `key` or `operator: Exists`"));
    }
    if file.operator == Some(Operator::Exists)
        && let Some(value) = &file.value
    {
        check.report(value.place, schema("operator Exists takes no value", "remove `value`, or use operator Equal"));
    }
    if let Some(seconds) = &file.toleration_seconds
        && file.effect != Some(Effect::NoExecute)
    {
        check.report(
            seconds.place,
            schema("tolerationSeconds needs effect NoExecute", "add `effect: NoExecute`, or remove tolerationSeconds"),
        );
    }
    Toleration {
        key: check.read(file.key.as_ref(), label_key),
        operator: file.operator.map(|operator| operator.as_str().to_owned()),
        value: check.read(file.value.as_ref(), label_value),
        effect: file.effect.map(|effect| effect.as_str().to_owned()),
        toleration_seconds: file.toleration_seconds.map(|seconds| seconds.value),
    }
}

/// Kubernetes' own type says what is allowed. It drops what it does not know, so what is lost on the way was wrong.
fn affinity(value: Value) -> Result<Value, Problem> {
    let hint = "see the fields of `affinity` in a Pod; numbers and yes or no among `values` need quotes";
    let schema = |message: String| Problem::new(Category::Schema, message).hint(hint);
    let typed = serde_json::from_value::<Affinity>(value.clone())
        .and_then(serde_json::to_value)
        .map_err(|error| schema(format!("invalid affinity: {error}")))?;
    if holds_unseen(&value) {
        return Err(schema("the affinity contains an invisible character".to_owned()));
    }
    match unknown_key(&value, &typed) {
        Some(key) => Err(schema(format!("unknown field `{key}` in the affinity"))),
        None => Ok(value),
    }
}

fn holds_unseen(value: &Value) -> bool {
    let unseen = |text: &str| text.contains(is_unseen);
    match value {
        Value::String(text) => unseen(text),
        Value::Array(items) => items.iter().any(holds_unseen),
        Value::Object(entries) => entries.iter().any(|(key, value)| unseen(key) || holds_unseen(value)),
        _ => false,
    }
}

/// A key of `given` that `known` lacks. Empty values may be left out of `known`.
fn unknown_key(given: &Value, known: &Value) -> Option<String> {
    match (given, known) {
        (Value::Object(given), Value::Object(known)) => given.iter().find_map(|(key, value)| match known.get(key) {
            Some(known) => unknown_key(value, known),
            None => (!value.is_null()).then(|| key.clone()),
        }),
        (Value::Array(given), Value::Array(known)) => {
            given.iter().zip(known).find_map(|(given, known)| unknown_key(given, known))
        }
        _ => None,
    }
}
