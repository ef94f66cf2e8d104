//! From drafts to files: final names, pools, and the check that each file is valid.

use crate::model::{
    batch::failed,
    environment::Placement,
    failure::Failure,
    name::{EnvironmentId, Name},
    settings::Settings,
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
    let invalid = check(&named, tenant);
    let mut refused = Vec::new();
    for (name, draft) in &named {
        let path = format!("environments/{tenant}/{name}.yaml");
        match invalid.iter().find(|(id, _)| id.name.as_str() == name) {
            None => {
                imported.files.insert(path, write::file(draft, &pool(draft, settings)));
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

/// What other tools let pass, such as a label's value that no node can have, must not end up in a file. Nodes are written
/// inline here, so that this needs no settings of anyone's.
fn check(named: &[(String, Draft)], tenant: &Name) -> Vec<(EnvironmentId, Failure)> {
    // JSON's quotes are YAML's.
    let key = serde_json::Value::String(tenant.to_string());
    let settings = format!(
        "apiVersion: larder.dev/v1alpha1\nkind: Settings\nspec: {{tenants: {{{key}: {{namespace: checked}}}}}}\n"
    );
    let mut snapshot = Snapshot::default();
    let mut add = |path: String, text: String| snapshot.files.insert(path, Entry::File(text.into_bytes().into()));
    add("larder.yaml".to_owned(), settings);
    for (name, draft) in named {
        let text = write::file(draft, &Pool::Inline(draft.nodes.placement()));
        add(format!("environments/{tenant}/{name}.yaml"), text);
    }
    let everything = |failure: Failure| {
        let ids = named.iter().filter_map(|(name, _)| Some(EnvironmentId::new(tenant.clone(), name.parse().ok()?)));
        ids.map(|id| (id, failure.clone())).collect()
    };
    match load::load(&snapshot) {
        Ok(environments) => {
            failed(&environments.environments).map(|(id, failure)| (id.clone(), failure.clone())).collect()
        }
        Err(failure) => everything(failure),
    }
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
