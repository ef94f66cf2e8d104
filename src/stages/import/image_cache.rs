//! kube-fledged's `ImageCache` objects.
//!
//! Source: the custom resource's definition in <https://github.com/senthilrch/kube-fledged>.

use std::collections::BTreeMap;

use super::{
    Format, Input,
    cursor::Cursor,
    draft::{Collected, Draft, DraftImage, image_name},
    names,
    nodes::{self, Nodes},
    objects, secret,
};

/// Imports `ImageCache` objects: one environment for each node selector.
pub fn caches(input: &Input, collected: &mut Collected) {
    let format = Format::ImageCache;
    let documents = objects::documents(input, format, collected);
    let kinds = objects::Kinds { group: "kubefledged.io", kinds: &["ImageCache"] };
    for object in objects::of_kind(input, &documents, &kinds, format, collected) {
        cache(&object, collected);
    }
}

fn cache(object: &Cursor<'_>, collected: &mut Collected) {
    let name = objects::name(object);
    let Some(entries) = object.at(&["spec", "cacheSpec"]) else {
        collected.leave_out(object, "there is no `spec.cacheSpec`");
        return;
    };
    if let Some(spec) = object.get("spec") {
        objects::rest(&spec, &["cacheSpec", "imagePullSecrets"], collected);
    }
    let secrets = secret::secrets(object.at(&["spec", "imagePullSecrets"]).as_ref());
    let (pull_secret, secret_notes) = secret::first(&secrets);
    let mut drafts: Vec<(Vec<String>, Draft)> = Vec::new();
    for entry in entries.items() {
        let place = entry.get("nodeSelector");
        let Some(selector) = place.as_ref().map_or_else(|| Some(BTreeMap::new()), nodes::selector_or_text) else {
            collected.leave_out(&entry, "its nodeSelector is neither a mapping nor `label=value`");
            continue;
        };
        objects::rest(&entry, &["images", "nodeSelector"], collected);
        let nodes = Nodes::new(&selector, &[], Vec::new());
        let labels: Vec<String> = selector.into_values().collect();
        let index = drafts.iter().position(|(_, draft)| draft.nodes == nodes).unwrap_or_else(|| {
            drafts.push((labels, Draft::new(&name, &entry, nodes)));
            drafts.len() - 1
        });
        let images = entry.get("images").map(|images| images.items()).unwrap_or_default();
        if images.is_empty() {
            collected.leave_out(&entry, "there are no images here");
        }
        for item in images {
            // A text at first, a mapping since v1alpha3.
            objects::rest(&item, &["name"], collected);
            let place = item.get("name").unwrap_or(item);
            let Some((reference, mut notes)) = collected.image(&place) else { continue };
            notes.extend(secret_notes.clone());
            let image =
                DraftImage { name: image_name(&reference), reference, pull_secret: pull_secret.clone(), title: None };
            drafts[index].1.add(place.place(), image, notes);
        }
    }
    drafts.retain(|(_, draft)| !draft.images.is_empty());
    let several = drafts.len() > 1;
    for (labels, mut draft) in drafts {
        if several && let Some(suffix) = names::slug(&labels.join("-")) {
            draft.name = format!("{name}-{suffix}");
        }
        collected.push(draft);
    }
}
