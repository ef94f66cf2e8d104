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
        let values = (0..nodes.len())
            .filter_map(|index| Some((key(&variables[index].1)?, (place(index), variables[index].2.clone()))));
        let whole = document::Node { value: document::Value::Null, line: 0 };
        let root = Cursor::root(&input.name, &whole);
        return environment(
            &Settings { name: names::of_file(&input.name), place: root, values: values.collect() },
            collected,
        );
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
    let lists = object.get("items").or_else(|| object.get("objects"));
    if let Some(items) = lists {
        return items.items().iter().flat_map(of_object).collect();
    }
    let read = |fields: &Cursor<'a>, variable: bool| -> BTreeMap<&'static str, (Cursor<'a>, String)> {
        let found = KEYS.iter().filter_map(|(name, field)| {
            let place = fields.get(if variable { name } else { field })?;
            let text = place.text().unwrap_or_else(|| place.json().to_string());
            Some((*name, (place, text)))
        });
        found.collect()
    };
    let mut all: Vec<BTreeMap<&'static str, (Cursor<'a>, String)>> = Vec::new();
    if object.text_of("kind").is_some_and(|kind| kind == "KubernetesImagePuller") {
        all.extend(object.get("spec").map(|spec| read(&spec, false)));
    }
    all.extend(object.get("data").map(|data| read(&data, true)));
    for container in object.at(&["spec", "template", "spec", "containers"]).map(|list| list.items()).unwrap_or_default()
    {
        let env = container.get("env").map(|env| env.items()).unwrap_or_default();
        let values = env.into_iter().filter_map(|variable| {
            let name = key(&variable.text_of("name")?)?;
            let place = variable.get("value")?;
            let text = place.text()?;
            Some((name, (place, text)))
        });
        all.push(values.collect());
    }
    all.into_iter()
        .filter(|values| values.contains_key("IMAGES"))
        .map(|values| Settings { name: objects::name(object), place: object.clone(), values })
        .collect()
}

fn environment(settings: &Settings<'_>, collected: &mut Collected) {
    let Some((images_place, images)) = settings.values.get("IMAGES") else {
        let message = "there is no IMAGES";
        let hint = format!("give {}", Format::ImagePuller.expected());
        return collected.unexpected(settings.place.file(), 0, message, &hint);
    };
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
            let Some(node) = documents.first() else { continue };
            let value = Cursor::root(place.file(), node);
            match name {
                "NODE_SELECTOR" => parts.selector = nodes::selector(Some(&value)),
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
