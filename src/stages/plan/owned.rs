//! Which objects of an inventory are larder's, whatever their labels and annotations say.

use std::collections::BTreeSet;

use crate::model::{
    manifest::{Inventory, InventoryEntry, Kind, ObjectId, Owner},
    settings::{Confirmed, Settings},
};

/// An inventory without objects that only claim to be larder's.
#[derive(Debug, Default, PartialEq)]
pub struct Owned {
    /// The objects that are where `larder.yaml` puts their tenant.
    pub inventory: Inventory,
    /// All others. Nothing is read from them, and they are never changed or deleted.
    pub foreign: BTreeSet<ObjectId>,
}

/// Separates larder's objects from those that others have written to look like them: anyone with write access to some
/// namespace can copy labels and annotations, but not write into the tenant's namespace.
pub fn owned(inventory: Inventory, settings: &Settings) -> Owned {
    let mut owned = Owned::default();
    for (id, entry) in inventory {
        if is_owned(&id, &entry, settings) {
            owned.inventory.insert(id, entry);
        } else {
            owned.foreign.insert(id);
        }
    }
    owned
}

/// An object of a tenant that `larder.yaml` no longer declares counts while its removal is confirmed there: without that
/// it could not be removed anyway, and its tenant's name may be made up.
fn is_owned(id: &ObjectId, entry: &InventoryEntry, settings: &Settings) -> bool {
    let namespace = if id.kind == Kind::Namespace { &id.name } else { &id.namespace };
    match settings.tenants.get(entry.owner.tenant()) {
        Some(tenant) => *namespace == tenant.namespace,
        None => !entry.terminating && settings.prune.confirmed.iter().any(|confirmed| covers(confirmed, &entry.owner)),
    }
}

fn covers(confirmed: &Confirmed, owner: &Owner) -> bool {
    match owner {
        Owner::Environment(id) => confirmed.covers(id),
        Owner::Tenant(tenant) => confirmed.tenant() == tenant,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::snapshot::{Entry, Snapshot},
        stages::load,
    };

    fn settings() -> Settings {
        let text = "apiVersion: larder.dev/v1alpha1\nkind: Settings\nspec:\n  tenants:\n    a: {namespace: ns-a}\n    \
                    b: {namespace: ns-b}\n  prune: {confirmed: [\"gone/*\", old/one]}\n";
        let files = [("larder.yaml".to_owned(), Entry::File(text.as_bytes().into()))];
        let snapshot = Snapshot { files: files.into(), ..Snapshot::default() };
        load::load(&snapshot).unwrap().settings
    }

    #[test]
    fn an_object_counts_only_where_larder_yaml_puts_its_tenant() {
        let settings = settings();
        // namespace, owner, terminating, counts
        let cases = [
            ("ns-a", "a/e", false, true),
            ("ns-a", "a", false, true),
            ("ns-a", "a/e", true, true),
            ("ns-b", "a/e", false, false),
            ("ns-b", "a", false, false),
            ("elsewhere", "a/e", true, false),
            ("elsewhere", "unknown/e", false, false),
            ("ns-a", "unknown", false, false),
            ("elsewhere", "gone/e", false, true),
            ("elsewhere", "gone", false, true),
            ("elsewhere", "gone/e", true, false),
            ("elsewhere", "old/one", false, true),
            ("elsewhere", "old/two", false, false),
        ];
        for (namespace, owner, terminating, counts) in cases {
            let id = ObjectId { kind: Kind::ConfigMap, namespace: namespace.to_owned(), name: "x".to_owned() };
            let owner = Owner::parse(owner).unwrap();
            let entry =
                InventoryEntry { owner, uid: String::new(), manifest: String::new(), fields: None, terminating };
            assert_eq!(is_owned(&id, &entry, &settings), counts, "{} in {namespace}", entry.owner);
        }
    }
}
