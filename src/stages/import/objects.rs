//! Kubernetes objects in a file: several documents, or a `List` of them.

use super::{
    Format, Input, Line,
    cursor::Cursor,
    document::{self, Documents, Node, Replaced},
    draft::Collected,
};

/// Reads a file's documents; an unreadable one is a problem.
pub fn documents(input: &Input, format: Format, collected: &mut Collected) -> Vec<Node> {
    match document::parse(input) {
        Ok(Documents { trees: documents, replaced }) => {
            for Replaced { key, line, by } in replaced {
                collected.left_out.push(Line {
                    from: format!("{}:{line} {key}", input.name),
                    to: None,
                    note: format!("the key `{key}` is there again in line {by}, and the last one counts"),
                });
            }
            if documents.is_empty() {
                let hint = format!("give {}", format.expected());
                collected.unexpected(&input.name, 0, "the file is empty", &hint);
            }
            documents
        }
        Err(problem) => {
            collected.problems.push(problem);
            Vec::new()
        }
    }
}

/// Kinds of one API group.
pub struct Kinds<'a> {
    /// The group's end: `kubefledged.io`.
    pub group: &'a str,
    /// Their names.
    pub kinds: &'a [&'a str],
}

/// The objects of one of these kinds and an API group; others are left out, and a file with none of them is a problem.
pub fn of_kind<'a>(
    input: &'a Input,
    documents: &'a [Node],
    wanted: &Kinds<'_>,
    format: Format,
    collected: &mut Collected,
) -> Vec<Cursor<'a>> {
    let objects: Vec<Cursor<'a>> = documents.iter().flat_map(|node| flat(Cursor::root(&input.name, node))).collect();
    let Kinds { group, kinds } = wanted;
    let wanted = |object: &Cursor<'_>| {
        let kind = object.text_of("kind").unwrap_or_default();
        let version = object.text_of("apiVersion").unwrap_or_default();
        kinds.contains(&kind.as_str()) && version.split('/').next().is_some_and(|found| found.ends_with(*group))
    };
    let (found, others): (Vec<_>, Vec<_>) = objects.into_iter().partition(|object| wanted(object));
    if found.is_empty() && !documents.is_empty() {
        let what = others.first().map(describe).unwrap_or_default();
        let message = format!("{} are expected, found {what}", format.expected());
        let line = others.first().map_or(0, |object| object.node.line);
        collected.unexpected(&input.name, line, &message, &hint(others.first()));
    } else {
        for other in &others {
            let what = describe(other);
            collected.leave_out(other, format!("{what} is not what is imported here"));
        }
    }
    found
}

fn flat(object: Cursor<'_>) -> Vec<Cursor<'_>> {
    let is_list = object.text_of("kind").is_some_and(|kind| kind.ends_with("List")) && object.get("items").is_some();
    match object.get("items") {
        Some(items) if is_list => items.items(),
        _ => vec![object],
    }
}

/// What a document seems to be.
pub fn describe(document: &Cursor<'_>) -> String {
    match (document.text_of("kind"), document.text_of("apiVersion")) {
        (Some(kind), Some(version)) => format!("an object of kind {kind} ({version})"),
        (Some(kind), None) => format!("an object of kind {kind} without apiVersion"),
        _ if document.is_map() => "a mapping without kind".to_owned(),
        _ => "no mapping".to_owned(),
    }
}

/// Names every field of a mapping that the importer does not read: none is dropped without a word.
pub fn rest(of: &Cursor<'_>, known: &[&str], collected: &mut Collected) {
    for (_, field) in of.entries().into_iter().filter(|(key, _)| !known.contains(key)) {
        collected.leave_out(&field, "an environment has nothing like it");
    }
}

/// Which importer would have been the right one.
pub fn hint(document: Option<&Cursor<'_>>) -> String {
    let kind = document.and_then(|document| document.text_of("kind")).unwrap_or_default();
    let has = |key: &str| document.is_some_and(|document| document.get(key).is_some());
    let right = match kind.as_str() {
        "JupyterImagePuller" => Some(Format::JupyterImagePuller),
        "ImageCache" => Some(Format::ImageCache),
        "ImagePullJob" | "ImageListPullJob" => Some(Format::ImagePullJob),
        "KubernetesImagePuller" => Some(Format::ImagePuller),
        _ if has("singleuser") || has("jupyterhub") || has("basehub") => Some(Format::Zero2Jupyterhub),
        _ if has("dockerImage") || has("environmentSpec") => Some(Format::SubmarineEnvironment),
        _ => None,
    };
    match right {
        Some(format) => format!("for this file use `larder import {format} …`"),
        None => "look at the file; `larder import --help` lists what can be imported".to_owned(),
    }
}

/// The name of an object, as a name of an environment.
pub fn name(object: &Cursor<'_>) -> String {
    let name = object
        .at(&["metadata"])
        .and_then(|metadata| metadata.text_of("name").or_else(|| metadata.text_of("generateName")));
    name.and_then(|name| super::names::slug(&name)).unwrap_or_else(|| super::names::of_file(object.file()))
}
