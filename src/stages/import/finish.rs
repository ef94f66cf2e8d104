//! From drafts to files: final names, pools, and the check that each file is valid.

use std::collections::BTreeMap;

use crate::model::{
    batch::{Batch, failed},
    environment::{Environment, Placement},
    name::Name,
    settings::{Settings, Tenant},
    snapshot::{Entry, Snapshot},
};

use super::{
    super::load,
    Imported, Line,
    draft::{Collected, Draft},
    names,
    write::{self, Pool},
};

/// Names the drafts and writes their files.
pub fn finish(collected: Collected, tenant: &Name, settings: Option<&Settings>) -> Imported {
    let Collected { drafts, left_out, problems } = collected;
    let wanted: Vec<_> = drafts.iter().map(|draft| (draft.name.clone(), draft.source.clone())).collect();
    let named: Vec<(String, Draft)> = names::qualify(&wanted).into_iter().zip(drafts).collect();
    let mut imported = Imported { problems, ..Imported::default() };
    let files: BTreeMap<String, String> = named
        .iter()
        .map(|(name, draft)| (format!("environments/{tenant}/{name}.yaml"), write::file(draft, &pool(draft, settings))))
        .collect();
    let invalid = check(&files, tenant, settings);
    let mut refused = Vec::new();
    for (name, draft) in &named {
        let path = format!("environments/{tenant}/{name}.yaml");
        match failed(&invalid).find(|(id, _)| id.name.as_str() == name) {
            None => {
                imported.files.extend(files.get_key_value(&path).map(|(path, text)| (path.clone(), text.clone())));
                imported.report.extend(lines(draft, &format!("{tenant}/{name}")));
            }
            Some((_, failure)) => {
                imported.problems.extend(failure.problems().iter().cloned());
                let note = format!("{path} would not be valid, see the error");
                refused.extend(draft.notes.iter().map(|found| Line {
                    from: found.from.clone(),
                    to: None,
                    note: note.clone(),
                }));
            }
        }
    }
    imported.report.extend(refused);
    imported.report.extend(left_out);
    imported
}

/// What other tools let pass, such as a label's value that no node can have, must not end up in a file; nor what
/// `larder.yaml` does not allow the tenant.
fn check(files: &BTreeMap<String, String>, tenant: &Name, settings: Option<&Settings>) -> Batch<Environment> {
    let bare = || {
        let text = "apiVersion: larder.dev/v1alpha1\nkind: Settings\n";
        let files = [("larder.yaml".to_owned(), Entry::File(text.as_bytes().into()))].into();
        load::load(&Snapshot { files, ..Snapshot::default() }).ok().map(|environments| environments.settings)
    };
    let Some(mut known) = settings.cloned().or_else(bare) else { return Batch::new() };
    known
        .tenants
        .entry(tenant.clone())
        .or_insert_with(|| Tenant { namespace: "checked".to_owned(), ..Tenant::default() });
    let file = |(path, text): (&String, &String)| (path.clone(), Entry::File(text.as_bytes().into()));
    let snapshot = Snapshot { files: files.iter().map(file).collect(), ..Snapshot::default() };
    // Without templates nothing else can fail.
    load::load_with(&snapshot, known).map(|environments| environments.environments).unwrap_or_default()
}

fn lines(draft: &Draft, id: &str) -> impl Iterator<Item = Line> {
    draft.notes.iter().map(move |note| {
        let to = match &note.image {
            Some(image) => format!("{id} {image}"),
            None => id.to_owned(),
        };
        Line { from: note.from.clone(), to: Some(to), note: note.note.clone() }
    })
}

/// A pool that has the very same nodes, or these nodes.
fn pool(draft: &Draft, settings: Option<&Settings>) -> Pool {
    let mut placement = draft.nodes.placement();
    let named = settings.and_then(|settings| settings.pools.iter().find(|(_, pool)| **pool == placement));
    if let Some((name, _)) = named {
        return Pool::Named(name.clone());
    }
    let default = settings.is_some_and(|settings| settings.defaults.pool.is_some());
    if default && placement == Placement::default() {
        // Saying nothing would mean the default pool.
        placement.node_selector.insert("kubernetes.io/os".to_owned(), "linux".to_owned());
    }
    Pool::Inline(placement)
}
