//! The Che image puller: a `;`-separated list of `name=image` and what goes with it.
//!
//! Source: the table of settings in <https://github.com/che-incubator/kubernetes-image-puller>, and its operator's
//! `KubernetesImagePuller`.

use std::collections::BTreeMap;

use crate::model::environment::Toleration;

use super::{
    Format, Input,
    cursor::Cursor,
    document,
    draft::{Collected, Draft, DraftImage, image_name},
    image, names,
    nodes::{self, Nodes, Term},
    objects, secret, submarine,
};

/// Settings by their name as environment variables, each with its place.
struct Settings<'a> {
    name: String,
    place: Cursor<'a>,
    values: BTreeMap<&'static str, (Cursor<'a>, String)>,
    /// Settings that are not read.
    rest: Vec<Cursor<'a>>,
}

/// What is read: the name of the variable, and that of the custom resource's field.
const KEYS: [(&str, &str); 6] = [
    ("IMAGES", "images"),
    ("CACHING_INTERVAL_HOURS", "cachingIntervalHours"),
    ("NODE_SELECTOR", "nodeSelector"),
    ("IMAGE_PULL_SECRETS", "imagePullSecrets"),
    ("TOLERATIONS", "tolerations"),
    ("AFFINITY", "affinity"),
];

/// Imports the settings: one environment each.
pub fn settings(input: &Input, collected: &mut Collected) {
    let format = Format::ImagePuller;
    if let Some(variables) = variables(&input.text) {
        let nodes: Vec<document::Node> = variables
            .iter()
            .map(|(line, _, value)| document::Node { value: document::Value::Text(value.clone()), line: *line })
            .collect();
        let place = |index: usize| Cursor::root(&input.name, &nodes[index]).named(&variables[index].1);
        let (known, rest): (Vec<usize>, Vec<usize>) =
            (0..nodes.len()).partition(|index| key(&variables[*index].1).is_some());
        let values = known
            .into_iter()
            .filter_map(|index| Some((key(&variables[index].1)?, (place(index), variables[index].2.clone()))));
        let whole = document::Node { value: document::Value::Null, line: 0 };
        let root = Cursor::root(&input.name, &whole);
        let rest = rest.into_iter().map(place).collect();
        let name = names::of_file(&input.name);
        return environment(&Settings { name, place: root, values: values.collect(), rest }, collected);
    }
    let documents = objects::documents(input, format, collected);
    let mut found = false;
    for node in &documents {
        for settings in of_object(&Cursor::root(&input.name, node)) {
            found = true;
            environment(&settings, collected);
        }
    }
    if let (false, Some(node)) = (found, documents.first()) {
        let root = Cursor::root(&input.name, node);
        let message = format!("{} are expected, found {}", format.expected(), objects::describe(&root));
        collected.unexpected(&input.name, node.line, &message, &objects::hint(Some(&root)));
    }
}

fn key(name: &str) -> Option<&'static str> {
    KEYS.iter().map(|(variable, _)| *variable).find(|variable| *variable == name)
}

/// The lines of a file of environment variables: `IMAGES=…`, with `export` and quotes or without.
fn variables(text: &str) -> Option<Vec<(usize, String, String)>> {
    let mut variables = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
        let upper = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        if name.is_empty() || !name.chars().all(upper) {
            return None;
        }
        let value = value.trim();
        let unquoted = ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
        variables.push((index + 1, name.to_owned(), unquoted.unwrap_or(value).to_owned()));
    }
    (!variables.is_empty()).then_some(variables)
}

/// The settings in an object: the operator's own kind, a ConfigMap, or the variables of a workload's containers.
fn of_object<'a>(object: &Cursor<'a>) -> Vec<Settings<'a>> {
    let kind = object.text_of("kind").unwrap_or_default();
    // What an OpenShift Template fills in, rather than the objects that it fills it into.
    if let Some(parameters) = object.get("parameters").filter(|_| kind == "Template") {
        return settings_of(object, vec![variables_of(&parameters)]);
    }
    let lists = object.get("items").or_else(|| object.get("objects"));
    if let Some(items) = lists {
        return items.items().iter().flat_map(of_object).collect();
    }
    let read = |fields: &Cursor<'a>, name: fn(&(&'static str, &'static str)) -> &'static str| {
        let mut found = Found::default();
        for (field, place) in fields.entries() {
            match KEYS.iter().find(|key| name(key) == field) {
                Some((variable, _)) if place.node.value != document::Value::Null => {
                    let text = place.text().unwrap_or_else(|| place.json().to_string());
                    found.values.insert(*variable, (place, text));
                }
                _ => found.rest.push(place),
            }
        }
        found
    };
    let mut all: Vec<Found<'a>> = Vec::new();
    if kind == "KubernetesImagePuller" {
        all.extend(object.get("spec").map(|spec| read(&spec, |key| key.1)));
    }
    all.extend(object.get("data").map(|data| read(&data, |key| key.0)));
    let containers = object.at(&["spec", "template", "spec", "containers"]);
    let containers = containers.map(|list| list.items()).unwrap_or_default();
    all.extend(containers.iter().filter_map(|container| container.get("env")).map(|list| variables_of(&list)));
    settings_of(object, all)
}

/// Settings that were found in one place.
#[derive(Default)]
struct Found<'a> {
    values: BTreeMap<&'static str, (Cursor<'a>, String)>,
    rest: Vec<Cursor<'a>>,
}

/// A list of variables with `name` and `value`.
fn variables_of<'a>(list: &Cursor<'a>) -> Found<'a> {
    let mut found = Found::default();
    for variable in list.items() {
        let known = variable.text_of("name").and_then(|name| key(&name));
        match (known, variable.get("value").and_then(|place| Some((place.clone(), place.text()?)))) {
            (Some(name), Some(value)) => _ = found.values.insert(name, value),
            _ => found.rest.push(variable),
        }
    }
    found
}

fn settings_of<'a>(object: &Cursor<'a>, all: Vec<Found<'a>>) -> Vec<Settings<'a>> {
    all.into_iter()
        .filter(|found| found.values.contains_key("IMAGES"))
        .map(|Found { values, rest }| Settings { name: objects::name(object), place: object.clone(), values, rest })
        .collect()
}

fn environment(settings: &Settings<'_>, collected: &mut Collected) {
    let Some((images_place, images)) = settings.values.get("IMAGES") else {
        let message = "there is no IMAGES";
        let hint = format!("give {}", Format::ImagePuller.expected());
        return collected.unexpected(settings.place.file(), 0, message, &hint);
    };
    for place in &settings.rest {
        collected.leave_out(place, "an environment has nothing like it");
    }
    let parts = Parts::read(settings, collected);
    let nodes = Nodes::new(&parts.selector, &parts.required, parts.tolerations);
    let mut draft = Draft::new(&settings.name, &settings.place, nodes);
    if let Some((place, hours)) = settings.values.get("CACHING_INTERVAL_HOURS") {
        draft.refresh = submarine::refresh(place, Some(hours), collected);
    }
    let secrets = settings.values.get("IMAGE_PULL_SECRETS").map(|(_, text)| text.as_str()).unwrap_or_default();
    let secrets: Vec<String> =
        secrets.split([';', ',']).map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let (pull_secret, secret_notes) = secret::first(&secrets);
    for entry in images.split(';').map(str::trim).filter(|entry| !entry.is_empty()) {
        let Some((name, text)) = entry.split_once('=') else {
            collected.leave_out(images_place, format!("`{entry}` is not `name=image`"));
            continue;
        };
        let Some((reference, mut notes)) = collected.keep(images_place, image::whole(text)) else { continue };
        notes.extend(secret_notes.clone());
        let name = names::slug(name).unwrap_or_else(|| image_name(&reference));
        let image = DraftImage { name, reference, pull_secret: pull_secret.clone(), title: None };
        draft.add(images_place.place(), image, notes);
    }
    collected.push(draft);
}

/// The settings that are JSON inside a text.
#[derive(Default)]
struct Parts {
    selector: BTreeMap<String, String>,
    tolerations: Vec<Toleration>,
    required: Vec<Term>,
}

impl Parts {
    fn read(settings: &Settings<'_>, collected: &mut Collected) -> Self {
        let mut parts = Self::default();
        for name in ["NODE_SELECTOR", "TOLERATIONS", "AFFINITY"] {
            let Some((place, text)) = settings.values.get(name) else { continue };
            let inner = Input { name: place.file().to_owned(), text: text.clone() };
            let Ok(documents) = document::parse(&inner) else {
                collected.leave_out(place, format!("{name} is no JSON, so it is ignored"));
                continue;
            };
            let Some(node) = documents.trees.first() else { continue };
            let value = Cursor::root(place.file(), node);
            match name {
                "NODE_SELECTOR" => match nodes::selector_or_text(&value) {
                    Some(selector) => parts.selector = selector,
                    None => collected.leave_out(place, "this is neither a mapping nor `label=value`, so it is ignored"),
                },
                "TOLERATIONS" => parts.tolerations = nodes::tolerations(Some(&value)),
                _ => {
                    let (required, left_out) = nodes::affinity(&value);
                    parts.required = required;
                    left_out.into_iter().for_each(|why| collected.leave_out(place, why));
                }
            }
        }
        parts
    }
}
