//! The file of an environment, as a person would write it.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use serde_saphyr::{Commented, FlowMap};

use crate::model::{
    environment::{Placement, Range, Toleration},
    text::words,
    yaml::to_ordered_yaml,
};

use super::draft::{Draft, DraftImage};

/// The longest comment, in characters.
const MAX_COMMENT: usize = 200;

/// Where a draft's nodes are named.
pub enum Pool {
    /// A pool of larder.yaml.
    Named(String),
    /// In the file itself.
    Inline(Placement),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    api_version: &'a str,
    kind: &'a str,
    spec: Spec<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Spec<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    display_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    images: Vec<Image<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<&'a str>,
    #[serde(flatten)]
    placement: Option<Inline<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refresh: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    puller: Option<FlowMap<BTreeMap<&'a str, &'a str>>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    resources: BTreeMap<&'a str, FlowMap<Value>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Image<'a> {
    name: Name<'a>,
    image: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pull_secret: Option<&'a str>,
}

/// A name, with what people call the image behind it.
#[derive(Serialize)]
#[serde(untagged)]
enum Name<'a> {
    Plain(&'a str),
    Titled(Commented<&'a str>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Inline<'a> {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    node_selector: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tolerations: Vec<FlowMap<&'a Toleration>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    affinity: Option<&'a Value>,
}

/// Writes a draft's file.
pub fn file(draft: &Draft, pool: &Pool) -> String {
    let (pool, placement) = match pool {
        Pool::Named(name) => (Some(name.as_str()), None),
        Pool::Inline(placement) => (None, Some(inline(placement))),
    };
    let puller = [("maxUnavailable", &draft.max_unavailable), ("deadline", &draft.deadline)];
    let puller: BTreeMap<_, _> = puller.into_iter().filter_map(|(key, value)| Some((key, value.as_deref()?))).collect();
    let ranges = [("memory", &draft.resources.memory), ("cpu", &draft.resources.cpu)];
    let mut resources: BTreeMap<_, _> =
        ranges.into_iter().filter_map(|(key, found)| Some((key, FlowMap(range(found.as_ref()?))))).collect();
    if !draft.resources.extra.is_empty() {
        let extra = draft.resources.extra.iter().map(|(name, count)| (name.clone(), count.as_str().into()));
        resources.insert("extra", FlowMap(Value::Object(extra.collect())));
    }
    let file = File {
        api_version: "larder.dev/v1alpha1",
        kind: "Environment",
        spec: Spec {
            display_name: draft.display_name.as_deref(),
            description: draft.description.as_deref(),
            images: draft.images.iter().map(image).collect(),
            pool,
            placement,
            refresh: draft.refresh.as_deref(),
            puller: (!puller.is_empty()).then_some(FlowMap(puller)),
            resources,
        },
    };
    let origin = words(&draft.origin, MAX_COMMENT);
    format!("{SCHEMA}# Imported from {origin}\n{}", to_ordered_yaml(&file))
}

/// What editors check the file by; `larder init` writes that schema.
const SCHEMA: &str = "# yaml-language-server: $schema=../../.larder/schema/environment.json\n";

fn image(image: &DraftImage) -> Image<'_> {
    let name = match &image.title {
        Some(title) => Name::Titled(Commented(&image.name, words(title, MAX_COMMENT))),
        None => Name::Plain(&image.name),
    };
    Image { name, image: image.reference.to_string(), pull_secret: image.pull_secret.as_deref() }
}

fn inline(placement: &Placement) -> Inline<'_> {
    Inline {
        node_selector: &placement.node_selector,
        tolerations: placement.tolerations.iter().map(FlowMap).collect(),
        affinity: placement.affinity.as_ref(),
    }
}

fn range(range: &Range) -> Value {
    let entries = [("guarantee", &range.guarantee), ("limit", &range.limit)];
    let filled = entries.into_iter().filter_map(|(key, text)| Some((key.to_owned(), text.as_deref()?.into())));
    Value::Object(filled.collect())
}
