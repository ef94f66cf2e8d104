//! tljh-repo2docker: what `GET api/environments` answers.
//!
//! Source: <https://github.com/plasmabio/tljh-repo2docker>.

use std::collections::BTreeMap;

use super::{
    Format, Input,
    cursor::Cursor,
    document,
    draft::{Collected, Draft, DraftImage},
    names,
    nodes::{self, Nodes},
    objects,
    z2jh::resources::{self, Field},
};

/// The fields of an environment that are read, or say how it was built.
const FIELDS: [&str; 12] = [
    "image_name",
    "status",
    "display_name",
    "repo",
    "ref",
    "mem_limit",
    "cpu_limit",
    "buildargs",
    "node_selector",
    "uid",
    "creation_date",
    "id",
];

/// Imports the environments that are built: one each.
pub fn environments(input: &Input, collected: &mut Collected) {
    let format = Format::TljhRepo2docker;
    let documents = objects::documents(input, format, collected);
    for node in &documents {
        let root = Cursor::root(&input.name, node);
        let rows = root.get("images").unwrap_or_else(|| root.clone()).items();
        let rows: Vec<_> = rows.into_iter().filter(|row| row.has("image_name")).collect();
        if rows.is_empty() && root.get("images").is_none_or(|images| !images.items().is_empty()) {
            let message = format!("{} is expected, found {}", format.expected(), objects::describe(&root));
            collected.unexpected(&input.name, node.line, &message, &objects::hint(Some(&root)));
        }
        for row in rows {
            environment(&row, collected);
        }
    }
}

fn environment(row: &Cursor<'_>, collected: &mut Collected) {
    let Some(place) = row.get("image_name") else {
        collected.leave_out(row, "no image is set here");
        return;
    };
    let status = row.text_of("status").unwrap_or_else(|| "built".to_owned());
    if status != "built" {
        collected.leave_out(&place, format!("it is not built: {status}"));
        return;
    }
    let text = place.text().unwrap_or_default();
    let has_registry = text.split_once('/').is_some_and(|(host, _)| host.contains(['.', ':']) || host == "localhost");
    if !has_registry {
        let why = format!(
            "`{text}` was built on that machine and is in no registry: push it to one, and write its reference there"
        );
        collected.leave_out(&place, why);
        return;
    }
    let Some((reference, notes)) = collected.image(&place) else { return };
    objects::rest(row, &FIELDS, collected);
    let title = row.text_of("display_name");
    let name = title.as_deref().and_then(names::slug).unwrap_or_else(|| super::draft::image_name(&reference));
    let mut draft = Draft::new(&name, row, Nodes::new(&selector(row), &[], Vec::new()));
    draft.description = row.text_of("repo").map(|repository| match row.text_of("ref") {
        Some(at) => format!("Built from {} at {at}", without_user(&repository)),
        None => format!("Built from {}", without_user(&repository)),
    });
    draft.display_name = title.filter(|title| *title != name);
    let mut found = resources::Found::default();
    found.set(Field::MemoryLimit, row.get("mem_limit").as_ref());
    found.set(Field::CpuLimit, row.get("cpu_limit").as_ref());
    draft.resources = found.resources(row, collected);
    draft.add(
        place.place(),
        DraftImage { name: "notebook".to_owned(), reference, pull_secret: None, title: None },
        notes,
    );
    if row.get("buildargs").is_some_and(|arguments| arguments.text().is_none_or(|text| !text.is_empty())) {
        draft.note(row, "build arguments are left out: the image is built already");
    }
    collected.push(draft);
}

/// A mapping, or a text that holds one: the image's label is JSON, of older images Python.
fn selector(row: &Cursor<'_>) -> BTreeMap<String, String> {
    let Some(place) = row.get("node_selector") else { return BTreeMap::new() };
    let Some(text) = place.text() else { return nodes::selector(Some(&place)) };
    let documents = document::parse(&Input { name: place.file().to_owned(), text }).unwrap_or_default();
    documents.trees.first().map(|node| nodes::selector(Some(&Cursor::root(place.file(), node)))).unwrap_or_default()
}

/// An address without the user and password that it may hold.
fn without_user(address: &str) -> String {
    match address.split_once("://") {
        Some((scheme, rest)) => {
            let host = rest.split('/').next().unwrap_or_default();
            let user = host.rfind('@').map_or(0, |at| at + 1);
            format!("{scheme}://{}", &rest[user..])
        }
        None => address.to_owned(),
    }
}
