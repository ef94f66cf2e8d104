//! Sets of nodes as others write them, brought into one form, so that equal ones are seen to be equal.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json, json};

use crate::model::environment::{Placement, Toleration};

use super::cursor::Cursor;

/// The label that tells a node's name.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// A condition on one label, or on one field, of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Expression {
    field: bool,
    key: String,
    operator: String,
    values: Vec<String>,
}

/// Conditions that all hold for a node.
pub type Term = BTreeSet<Expression>;

/// The nodes for which one of the terms holds, with the taints that are tolerated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nodes {
    terms: BTreeSet<Term>,
    tolerations: Vec<Toleration>,
}

impl Expression {
    fn equal(key: &str, value: &str) -> Self {
        Self { field: false, key: key.to_owned(), operator: "In".to_owned(), values: vec![value.to_owned()] }
    }

    fn label(key: &str, operator: &str, values: Vec<String>) -> Self {
        let values = values.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
        Self { field: false, key: key.to_owned(), operator: operator.to_owned(), values }
    }

    fn is_equal(&self) -> bool {
        !self.field && self.operator == "In" && self.values.len() == 1
    }

    fn json(&self) -> Json {
        match self.values.as_slice() {
            [] => json!({"key": self.key, "operator": self.operator}),
            values => json!({"key": self.key, "operator": self.operator, "values": values}),
        }
    }
}

impl Nodes {
    /// Nodes with these labels, for which one of `required` holds (unless there are none).
    pub fn new(selector: &BTreeMap<String, String>, required: &[Term], tolerations: Vec<Toleration>) -> Self {
        let base: Term = selector.iter().map(|(key, value)| Expression::equal(key, value)).collect();
        let terms = match required {
            [] => [base].into(),
            required => required.iter().map(|term| term.union(&base).cloned().collect()).collect(),
        };
        let mut nodes = Self { terms, tolerations: Vec::new() };
        nodes.tolerate(tolerations);
        nodes.simplify();
        nodes
    }

    /// The nodes of either.
    pub fn union(&mut self, other: Self) {
        self.terms.extend(other.terms);
        self.tolerate(other.tolerations);
        self.simplify();
    }

    fn tolerate(&mut self, more: Vec<Toleration>) {
        for toleration in more {
            if !self.tolerations.contains(&toleration) {
                self.tolerations.push(toleration);
            }
        }
    }

    /// Drops terms that another one covers, and joins those that differ in the values of one label, until nothing is
    /// left to do.
    fn simplify(&mut self) {
        let mut terms: Vec<Term> = std::mem::take(&mut self.terms).into_iter().collect();
        let pairs =
            |count: usize| (0..count).flat_map(move |a| (0..count).map(move |b| (a, b))).filter(|(a, b)| a != b);
        loop {
            if let Some((_, covered)) = pairs(terms.len()).find(|(a, b)| covers(&terms[*a], &terms[*b])) {
                terms.remove(covered);
                continue;
            }
            let joined = pairs(terms.len()).find_map(|(a, b)| Some((a, b, join(&terms[a], &terms[b])?)));
            let Some((a, b, term)) = joined else { break };
            terms[a] = term;
            terms.remove(b);
        }
        self.terms = terms.into_iter().collect();
    }

    /// The same in Kubernetes' own words: a node selector as far as possible, an affinity for the rest.
    pub fn placement(&self) -> Placement {
        let mut placement = Placement { tolerations: self.tolerations.clone(), ..Placement::default() };
        let mut terms: Vec<Term> = self.terms.iter().cloned().collect();
        if let Some(first) = terms.first().cloned() {
            let shared = first.into_iter().filter(|e| e.is_equal() && terms.iter().all(|term| term.contains(e)));
            for expression in shared.collect::<Vec<_>>() {
                terms.iter_mut().for_each(|term| {
                    term.remove(&expression);
                });
                placement
                    .node_selector
                    .insert(expression.key, expression.values.into_iter().next().unwrap_or_default());
            }
        }
        if terms.iter().all(|term| !term.is_empty()) && !terms.is_empty() {
            let terms: Vec<Json> = terms.iter().map(term_json).collect();
            placement.affinity = Some(json!({"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
            }}));
        }
        placement
    }
}

/// Whether each node of `inner` is one of `outer`.
fn covers(outer: &Term, inner: &Term) -> bool {
    let follows = |wide: &Expression| {
        inner.iter().any(|narrow| {
            let both_in = wide.operator == "In" && narrow.operator == "In";
            let same = wide.field == narrow.field && wide.key == narrow.key;
            wide == narrow || (same && both_in && narrow.values.iter().all(|value| wide.values.contains(value)))
        })
    };
    outer.iter().all(follows)
}

/// One term for two that differ in the values of one label only.
fn join(a: &Term, b: &Term) -> Option<Term> {
    let (only_a, only_b): (Vec<_>, Vec<_>) = (a.difference(b).collect(), b.difference(a).collect());
    let ([x], [y]) = (only_a.as_slice(), only_b.as_slice()) else { return None };
    if x.field || y.field || x.key != y.key || x.operator != "In" || y.operator != "In" {
        return None;
    }
    let mut term: Term = a.intersection(b).cloned().collect();
    term.insert(Expression::label(&x.key, "In", x.values.iter().chain(&y.values).cloned().collect()));
    Some(term)
}

fn term_json(term: &Term) -> Json {
    let list = |field: bool| -> Vec<Json> { term.iter().filter(|e| e.field == field).map(Expression::json).collect() };
    let entries = [("matchExpressions", list(false)), ("matchFields", list(true))];
    let filled = entries.into_iter().filter(|(_, list)| !list.is_empty());
    Json::Object(filled.map(|(key, list)| (key.to_owned(), Json::Array(list))).collect::<Map<_, _>>())
}

/// Reads a mapping of labels.
pub fn selector(labels: Option<&Cursor<'_>>) -> BTreeMap<String, String> {
    let entries = labels.map(Cursor::entries).unwrap_or_default();
    entries.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value.text()?))).collect()
}

/// Reads labels as a mapping or as a text, `zone=a,type=b`; none for a text of another form, which must not mean every
/// node.
pub fn selector_or_text(labels: &Cursor<'_>) -> Option<BTreeMap<String, String>> {
    let Some(text) = labels.text() else { return Some(selector(Some(labels))) };
    let label = |part: &str| {
        let (key, value) = part.split_once('=')?;
        Some((key.trim().to_owned(), value.trim_start_matches('=').trim().to_owned()))
    };
    text.split(',').filter(|part| !part.trim().is_empty()).map(label).collect()
}

/// Reads tolerations, a list or (as KubeSpawner allows) a mapping of them.
pub fn tolerations(list: Option<&Cursor<'_>>) -> Vec<Toleration> {
    let items = list.map(Cursor::values).unwrap_or_default();
    let read = |item: Cursor<'_>| {
        item.is_map().then(|| Toleration {
            key: item.text_of("key"),
            operator: item.text_of("operator"),
            value: item.text_of("value"),
            effect: item.text_of("effect"),
            toleration_seconds: item.text_of("tolerationSeconds").and_then(|seconds| seconds.parse().ok()),
        })
    };
    items.into_iter().filter_map(read).collect()
}

/// Reads a list of `nodeSelectorTerms`. An empty term matches no node and is left out.
pub fn terms(list: Option<&Cursor<'_>>) -> Vec<Term> {
    let items = list.map(Cursor::values).unwrap_or_default();
    let read = |item: Cursor<'_>| -> Term {
        let labels = item.get("matchExpressions").map(|list| expressions(&list, false)).unwrap_or_default();
        let fields = item.get("matchFields").map(|list| expressions(&list, true)).unwrap_or_default();
        labels.into_iter().chain(fields).collect()
    };
    items.into_iter().map(read).filter(|term| !term.is_empty()).collect()
}

/// Reads the required node affinity of an `affinity`, and says what of it has no meaning for a puller.
pub fn affinity(affinity: &Cursor<'_>) -> (Vec<Term>, Vec<&'static str>) {
    let node = affinity.get("nodeAffinity");
    let required = node
        .as_ref()
        .and_then(|node| node.at(&["requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"]));
    let mut left_out = Vec::new();
    if node.is_some_and(|node| node.get("preferredDuringSchedulingIgnoredDuringExecution").is_some()) {
        left_out.push("the preferred node affinity is left out: a puller runs on every node that is allowed");
    }
    if affinity.get("podAffinity").is_some() || affinity.get("podAntiAffinity").is_some() {
        left_out.push("affinity to pods is left out: a puller runs on every node that is allowed");
    }
    (terms(required.as_ref()), left_out)
}

/// Reads a label selector over nodes, with nodes by name beside it.
pub fn label_selector(selector: &Cursor<'_>) -> Vec<Term> {
    let labels = self::selector(selector.get("matchLabels").as_ref());
    let mut term: Term = labels.iter().map(|(key, value)| Expression::equal(key, value)).collect();
    if let Some(list) = selector.get("matchExpressions") {
        term.extend(expressions(&list, false));
    }
    let names: Vec<String> = selector.get("names").map(|names| texts(&names)).unwrap_or_default();
    if !names.is_empty() {
        term.insert(Expression::label(HOSTNAME, "In", names));
    }
    if term.is_empty() { Vec::new() } else { vec![term] }
}

/// The texts of a list.
pub fn texts(list: &Cursor<'_>) -> Vec<String> {
    list.items().iter().filter_map(Cursor::text).collect()
}

fn expressions(list: &Cursor<'_>, field: bool) -> Vec<Expression> {
    let read = |item: Cursor<'_>| {
        let values = item.get("values").map(|values| texts(&values)).unwrap_or_default();
        Some(Expression { field, ..Expression::label(&item.text_of("key")?, &item.text_of("operator")?, values) })
    };
    list.items().into_iter().filter_map(read).collect()
}

/// A toleration of one taint.
pub fn tolerate(key: &str, value: &str) -> Toleration {
    Toleration {
        key: Some(key.to_owned()),
        operator: Some("Equal".to_owned()),
        value: Some(value.to_owned()),
        effect: Some("NoSchedule".to_owned()),
        toleration_seconds: None,
    }
}

/// The taint that nodes with an extended resource such as a GPU are given, so that other pods stay away. Pods that ask
/// for the resource tolerate it by the API server's own doing; a puller asks for none.
///
/// Source: <https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#extendedresourcetoleration>.
pub fn tolerate_resource(name: &str) -> Toleration {
    Toleration {
        key: Some(name.to_owned()),
        operator: Some("Exists".to_owned()),
        effect: Some("NoSchedule".to_owned()),
        ..Toleration::default()
    }
}

/// A term of one label with one value.
pub fn label(key: &str, value: &str) -> Term {
    [Expression::equal(key, value)].into()
}

#[cfg(test)]
mod tests {
    use super::{Nodes, label};

    fn nodes(selector: &[(&str, &str)], required: &[&[(&str, &str)]]) -> Nodes {
        let selector = selector.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let required: Vec<_> =
            required.iter().map(|term| term.iter().flat_map(|(key, value)| label(key, value)).collect()).collect();
        Nodes::new(&selector, &required, Vec::new())
    }

    fn shown(nodes: &Nodes) -> String {
        let placement = nodes.placement();
        let affinity = placement.affinity.map(|affinity| {
            affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"].to_string()
        });
        format!("{:?} {}", placement.node_selector, affinity.unwrap_or_default())
    }

    #[test]
    fn unions_are_simplified() {
        let all = nodes(&[], &[]);
        let small = nodes(&[("type", "small"), ("zone", "a")], &[]);
        let large = nodes(&[("type", "large"), ("zone", "a")], &[]);
        let either = |a: &Nodes, b: &Nodes| {
            let mut a = a.clone();
            a.union(b.clone());
            a
        };
        assert_eq!(shown(&all), "{} ");
        assert_eq!(shown(&small), r#"{"type": "small", "zone": "a"} "#);
        assert_eq!(shown(&either(&small, &all)), "{} ");
        assert_eq!(shown(&either(&small, &small)), shown(&small));
        assert_eq!(
            shown(&either(&small, &large)),
            r#"{"zone": "a"} [{"matchExpressions":[{"key":"type","operator":"In","values":["large","small"]}]}]"#
        );
        assert_eq!(either(&small, &large), either(&large, &small));
        let mut three = either(&small, &large);
        three.union(nodes(&[("type", "small"), ("zone", "a"), ("arch", "arm64")], &[]));
        assert_eq!(three, either(&small, &large));
        assert_eq!(shown(&nodes(&[("zone", "a")], &[&[("type", "small")]])), shown(&small));
        let other = nodes(&[("gpu", "yes")], &[]);
        assert_eq!(
            shown(&either(&other, &nodes(&[("cpu", "yes")], &[]))),
            r#"{} [{"matchExpressions":[{"key":"cpu","operator":"In","values":["yes"]}]},{"matchExpressions":[{"key":"gpu","operator":"In","values":["yes"]}]}]"#
        );
    }
}
