//! Submarine's `JupyterImagePuller` objects and its environments.
//!
//! Sources: the design in <https://github.com/apache/submarine/issues/895> and the REST API of Submarine's server.

use std::collections::BTreeMap;

use super::{
    Format, Input,
    cursor::Cursor,
    draft::{Collected, Draft, DraftImage, image_name},
    names,
    nodes::{self, Nodes},
    objects, secret,
};

/// Imports `JupyterImagePuller` objects: one environment each.
pub fn pullers(input: &Input, namespace: &str, collected: &mut Collected) {
    let format = Format::JupyterImagePuller;
    let documents = objects::documents(input, format, collected);
    let kinds = objects::Kinds { group: "org.apache.submarine", kinds: &["JupyterImagePuller"] };
    for object in objects::of_kind(input, &documents, &kinds, format, collected) {
        let name = objects::name(&object);
        let Some(spec) = object.get("spec") else {
            collected.leave_out(&object, "there is no `spec`");
            continue;
        };
        let selector = nodes::selector(spec.get("nodeSelector").as_ref());
        let mut draft = Draft::new(&name, &object, Nodes::new(&selector, &[], Vec::new()));
        objects::rest(&spec, &["images", "nodeSelector", "refreshHours"], collected);
        if let Some(hours) = spec.get("refreshHours") {
            draft.refresh = refresh(&hours, hours.text().as_deref(), collected);
        }
        let images = spec.get("images").map(|images| images.items()).unwrap_or_default();
        if images.is_empty() {
            collected.leave_out(&spec, "there are no images in `spec.images`");
        }
        for item in images {
            puller_image(&item, &name, namespace, &mut draft, collected);
        }
        collected.push(draft);
    }
}

fn puller_image(item: &Cursor<'_>, name: &str, namespace: &str, draft: &mut Draft, collected: &mut Collected) {
    let Some(place) = item.get("image") else {
        collected.leave_out(item, "no image is set here");
        return;
    };
    let Some((reference, mut notes)) = collected.image(&place) else { return };
    objects::rest(item, &["image", "name", "auth"], collected);
    let (pull_secret, more) = secret::submarine(item.get("auth").as_ref(), name, &reference, namespace);
    notes.extend(more);
    let image = item.text_of("name").and_then(|name| names::slug(&name)).unwrap_or_else(|| image_name(&reference));
    draft.add(place.place(), DraftImage { name: image, reference, pull_secret, title: None }, notes);
}

/// Hours as a time with a unit. What is none is left out.
pub fn refresh(place: &Cursor<'_>, hours: Option<&str>, collected: &mut Collected) -> Option<String> {
    let refresh = hours.and_then(time);
    if refresh.is_none() {
        collected.leave_out(place, "this is not a number of hours above 0, so the default is used");
    }
    refresh
}

/// `2` is `2h`, `0.5` is `30m`.
fn time(hours: &str) -> Option<String> {
    let hours: f64 = hours.trim().parse().ok()?;
    let minutes = (hours * 60.0).round();
    if !(1.0..=527_040.0).contains(&minutes) {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded above")]
    let minutes = minutes as u64;
    Some(if minutes.is_multiple_of(60) { format!("{}h", minutes / 60) } else { format!("{minutes}m") })
}

/// Imports environments: one object, a list, or an answer of the REST API that wraps either.
pub fn environments(input: &Input, namespace: &str, collected: &mut Collected) {
    let format = Format::SubmarineEnvironment;
    let documents = objects::documents(input, format, collected);
    for node in &documents {
        let root = Cursor::root(&input.name, node);
        let specs = specs(&root);
        if specs.is_empty() {
            let message = format!("{} is expected, found {}", format.expected(), objects::describe(&root));
            collected.unexpected(&input.name, node.line, &message, &objects::hint(Some(&root)));
        }
        for spec in specs {
            environment(&spec, namespace, collected);
        }
    }
}

/// The objects with a `dockerImage`, however deep the answer wraps them.
fn specs<'a>(value: &Cursor<'a>) -> Vec<Cursor<'a>> {
    if value.has("dockerImage") {
        return vec![value.clone()];
    }
    let wrapped = ["environmentSpec", "result", "environments"].iter().find_map(|key| value.get(key));
    match wrapped {
        Some(inner) => specs(&inner),
        None => value.items().iter().flat_map(specs).collect(),
    }
}

fn environment(spec: &Cursor<'_>, namespace: &str, collected: &mut Collected) {
    let Some(place) = spec.get("dockerImage") else {
        collected.leave_out(spec, "no image is set here");
        return;
    };
    let Some((reference, mut notes)) = collected.image(&place) else { return };
    objects::rest(spec, &["dockerImage", "dockerAuthSpec", "name", "description", "kernelSpec"], collected);
    let written = spec.text_of("name");
    let name = written.as_deref().and_then(names::slug).unwrap_or_else(|| names::of_file(spec.file()));
    let mut draft = Draft::new(&name, spec, Nodes::new(&BTreeMap::new(), &[], Vec::new()));
    draft.display_name = written.filter(|written| *written != name);
    draft.description = spec.text_of("description");
    let auth = spec.get("dockerAuthSpec");
    let (pull_secret, more) = secret::submarine(auth.as_ref(), &name, &reference, namespace);
    notes.extend(more);
    if spec.get("kernelSpec").is_some() {
        notes.push("its kernel is left out: the image has to hold it".to_owned());
    }
    draft.add(place.place(), DraftImage { name: "notebook".to_owned(), reference, pull_secret, title: None }, notes);
    collected.push(draft);
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn hours() {
        for (hours, expected) in [
            ("2", Some("2h")),
            (" 24 ", Some("24h")),
            ("0.5", Some("30m")),
            ("1.5", Some("90m")),
            ("0", None),
            ("-1", None),
            ("2h", None),
            ("inf", None),
            ("NaN", None),
            ("1e9", None),
            ("", None),
        ] {
            assert_eq!(time(hours).as_deref(), expected, "{hours}");
        }
    }
}
