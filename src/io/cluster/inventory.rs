//! Which objects are ours, read from metadata alone.

use std::{collections::HashSet, sync::Arc};

use kube::core::ObjectMeta;

use crate::model::{
    fields::Fields,
    manifest::{
        INSTANCE_LABEL, InventoryEntry, Kind, MANIFEST_ANNOTATION, OBJECT_ANNOTATION, OWNER_ANNOTATION, ObjectId, Owner,
    },
};

/// Texts of `managedFields`, each kept once: objects of one shape have the same.
#[derive(Debug, Default)]
pub(super) struct Shapes(HashSet<Arc<str>>);

impl Shapes {
    fn intern(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        // Shapes that no object has any more go before new ones take their place.
        if self.0.len() == self.0.capacity() {
            self.0.retain(|shape| Arc::strong_count(shape) > 1);
        }
        let shape: Arc<str> = text.into();
        self.0.insert(shape.clone());
        shape
    }
}

/// Whose objects are looked for.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    /// The value of [`INSTANCE_LABEL`].
    pub(super) instance: String,
    /// The field manager.
    pub(super) manager: String,
}

impl Identity {
    /// The selector of our objects.
    pub(super) fn selector(&self) -> String {
        format!("{INSTANCE_LABEL}={}", self.instance)
    }

    /// Whether an object has our label and its own identity. A copy under another name has only the label.
    pub(super) fn is_ours(&self, id: &ObjectId, metadata: &ObjectMeta) -> bool {
        label(metadata) == Some(self.instance.as_str())
            && annotation(metadata, OBJECT_ANNOTATION) == Some(id.to_string().as_str())
    }

    /// The entry of an object, or none when it is not ours.
    pub(super) fn entry(
        &self,
        kind: Kind,
        metadata: &ObjectMeta,
        shapes: &mut Shapes,
    ) -> Option<(ObjectId, InventoryEntry)> {
        let id = ObjectId {
            kind,
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
        };
        if !self.is_ours(&id, metadata) {
            return None;
        }
        let owner = annotation(metadata, OWNER_ANNOTATION).and_then(Owner::parse)?;
        let entry = InventoryEntry {
            owner,
            uid: metadata.uid.clone().unwrap_or_default(),
            manifest: annotation(metadata, MANIFEST_ANNOTATION).unwrap_or_default().to_owned(),
            fields: self.fields(metadata, shapes),
            terminating: metadata.deletion_timestamp.is_some(),
        };
        Some((id, entry))
    }

    fn fields(&self, metadata: &ObjectMeta, shapes: &mut Shapes) -> Option<Fields> {
        let mut entries = metadata.managed_fields.iter().flatten();
        let ours = entries.find(|entry| {
            entry.manager.as_deref() == Some(&self.manager)
                && entry.operation.as_deref() == Some("Apply")
                && entry.subresource.as_deref().unwrap_or_default().is_empty()
        })?;
        Some(Fields::new(shapes.intern(&ours.fields_v1.as_ref()?.0.to_string())))
    }
}

/// The instance that an object's label names.
pub(super) fn label(metadata: &ObjectMeta) -> Option<&str> {
    metadata.labels.as_ref()?.get(INSTANCE_LABEL).map(String::as_str)
}

fn annotation<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    metadata.annotations.as_ref()?.get(key).map(String::as_str)
}
