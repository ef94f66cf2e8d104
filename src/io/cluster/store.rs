//! What is known of our objects without asking, kept up to date by watches and by our own writes.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use kube::core::ObjectMeta;
use serde_json::Value;
use tokio::sync::Notify;

use super::inventory::{Identity, Shapes};
use crate::model::manifest::{Inventory, InventoryEntry, Kind, ObjectId};

/// Our objects in the cluster.
pub(super) struct Store {
    identity: Arc<Identity>,
    state: Mutex<State>,
    drift: AtomicBool,
    drifted: Notify,
}

#[derive(Default)]
struct State {
    kinds: BTreeMap<Kind, Known>,
    shapes: Shapes,
    /// Objects that are being written now, and uids of those that we have deleted: their events are no drift.
    writing: HashSet<ObjectId>,
    deleting: HashSet<String>,
}

/// What is known of one kind.
#[derive(Default)]
struct Known {
    objects: BTreeMap<ObjectId, Held>,
    /// A list that is being read.
    filling: Option<BTreeMap<ObjectId, Held>>,
    /// Whether `objects` is complete and its watch is in order. While it is not, the API server is asked instead.
    reliable: bool,
}

#[derive(Clone, PartialEq, Eq)]
struct Held {
    entry: InventoryEntry,
    version: Version,
}

/// A resource version. Of one object a larger one is later:
/// <https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions>. One that is not a number is later
/// than any other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Version(u64);

impl Version {
    fn of(metadata: &ObjectMeta) -> Self {
        let number = metadata.resource_version.as_deref().and_then(|version| version.parse().ok());
        Self(number.unwrap_or(u64::MAX))
    }
}

impl Store {
    pub(super) fn new(identity: Arc<Identity>) -> Self {
        Self { identity, state: Mutex::default(), drift: AtomicBool::new(false), drifted: Notify::new() }
    }

    /// All that is known, or none while some kind is not watched reliably. What drifted before this counts as seen.
    pub(super) fn inventory(&self) -> Option<Inventory> {
        // Cleared first: a change that is not in the answer says so again.
        self.drift.store(false, Ordering::SeqCst);
        let state = self.lock();
        let reliable = Kind::ALL.iter().all(|kind| state.kinds.get(kind).is_some_and(|known| known.reliable));
        reliable.then(|| {
            let held = state.kinds.values().flat_map(|known| &known.objects);
            held.map(|(id, held)| (id.clone(), held.entry.clone())).collect()
        })
    }

    pub(super) fn has_drifted(&self) -> bool {
        self.drift.load(Ordering::SeqCst)
    }

    pub(super) async fn drifted(&self) {
        while !self.has_drifted() {
            self.drifted.notified().await;
        }
    }

    /// A list begins.
    pub(super) fn begin(&self, kind: Kind) {
        self.lock().kinds.entry(kind).or_default().filling = Some(BTreeMap::new());
    }

    /// An object of a list that has begun.
    pub(super) fn listed(&self, kind: Kind, metadata: &ObjectMeta) {
        let mut state = self.lock();
        let State { kinds, shapes, .. } = &mut *state;
        if let Some((id, entry)) = self.identity.entry(kind, metadata, shapes) {
            let filling = kinds.entry(kind).or_default().filling.get_or_insert_default();
            filling.insert(id, Held { entry, version: Version::of(metadata) });
        }
    }

    /// A list has ended; it replaces what was known.
    pub(super) fn complete(&self, kind: Kind) {
        let mut state = self.lock();
        let known = state.kinds.entry(kind).or_default();
        let mut list = known.filling.take().unwrap_or_default();
        for (id, old) in &known.objects {
            // Our own write may have been answered after the list was read.
            if let Some(new) = list.get_mut(id).filter(|new| new.version < old.version) {
                *new = old.clone();
            }
        }
        let entries = |objects: &BTreeMap<ObjectId, Held>| -> Inventory {
            objects.iter().map(|(id, held)| (id.clone(), held.entry.clone())).collect()
        };
        let differs = known.reliable && entries(&known.objects) != entries(&list);
        known.objects = list;
        known.reliable = true;
        drop(state);
        if differs {
            self.notify();
        }
    }

    /// A watch tells of an object that was made or changed.
    pub(super) fn changed(&self, kind: Kind, metadata: &ObjectMeta) {
        let mut state = self.lock();
        let State { kinds, shapes, writing, deleting } = &mut *state;
        let objects = &mut kinds.entry(kind).or_default().objects;
        let Some((id, entry)) = self.identity.entry(kind, metadata, shapes) else {
            // It has our label, but not (any more) its own identity.
            let gone = objects.remove(&id_of(kind, metadata)).is_some();
            drop(state);
            if gone {
                self.notify();
            }
            return;
        };
        let held = Held { entry, version: Version::of(metadata) };
        let old = objects.get(&id);
        if old.is_some_and(|old| old.version >= held.version && old.version.0 != u64::MAX) {
            return;
        }
        // A status that changed leaves the entry as it was.
        let differs = old.is_none_or(|old| old.entry != held.entry);
        let by_us = writing.contains(&id) || deleting.contains(&held.entry.uid);
        objects.insert(id, held);
        drop(state);
        if differs && !by_us {
            self.notify();
        }
    }

    /// A watch tells of an object that is gone.
    pub(super) fn gone(&self, kind: Kind, metadata: &ObjectMeta) {
        let mut state = self.lock();
        let id = id_of(kind, metadata);
        let uid = metadata.uid.as_deref().unwrap_or_default();
        let by_us = state.deleting.remove(uid);
        let objects = &mut state.kinds.entry(kind).or_default().objects;
        // Another object may have taken the name since.
        let known = objects.get(&id).is_some_and(|held| held.entry.uid == uid) && objects.remove(&id).is_some();
        drop(state);
        if known && !by_us {
            self.notify();
        }
    }

    /// A watch has failed: what is known of this kind may be old.
    pub(super) fn doubt(&self, kind: Kind) {
        self.lock().kinds.entry(kind).or_default().reliable = false;
    }

    /// Announces a write.
    pub(super) fn writing(&self, id: &ObjectId) -> Writing<'_> {
        self.lock().writing.insert(id.clone());
        Writing { store: self, id: id.clone() }
    }

    /// Announces a delete.
    pub(super) fn deleting(&self, id: &ObjectId, uid: &str) -> Deleting<'_> {
        self.lock().deleting.insert(uid.to_owned());
        Deleting { store: self, id: id.clone(), uid: uid.to_owned(), done: false }
    }

    fn notify(&self) {
        self.drift.store(true, Ordering::SeqCst);
        self.drifted.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A write that is under way.
pub(super) struct Writing<'a> {
    store: &'a Store,
    id: ObjectId,
}

impl Writing<'_> {
    /// The write was answered with this object.
    pub(super) fn wrote(self, object: &Value) {
        let Ok(metadata) = serde_json::from_value::<ObjectMeta>(object["metadata"].clone()) else { return };
        let mut state = self.store.lock();
        let State { kinds, shapes, .. } = &mut *state;
        let Some(known) = kinds.get_mut(&self.id.kind) else { return };
        let Some((id, entry)) = self.store.identity.entry(self.id.kind, &metadata, shapes) else { return };
        let held = Held { entry, version: Version::of(&metadata) };
        match known.objects.get(&id) {
            // Someone has written after us, and the watch was quicker than our answer.
            Some(later) if later.version > held.version => {
                let differs = later.entry != held.entry;
                drop(state);
                if differs {
                    self.store.notify();
                }
            }
            _ => {
                known.objects.insert(id, held);
            }
        }
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.store.lock().writing.remove(&self.id);
    }
}

/// A delete that is under way.
pub(super) struct Deleting<'a> {
    store: &'a Store,
    id: ObjectId,
    uid: String,
    done: bool,
}

impl Deleting<'_> {
    /// The delete was accepted, or there was nothing to delete.
    pub(super) fn done(mut self) {
        self.done = true;
    }
}

impl Drop for Deleting<'_> {
    fn drop(&mut self) {
        let mut state = self.store.lock();
        let known = state.kinds.get_mut(&self.id.kind).and_then(|known| known.objects.get_mut(&self.id));
        match known.filter(|held| held.entry.uid == self.uid) {
            // Until it is gone; the watch tells when.
            Some(held) if self.done => held.entry.terminating = true,
            _ => {
                state.deleting.remove(&self.uid);
            }
        }
    }
}

fn id_of(kind: Kind, metadata: &ObjectMeta) -> ObjectId {
    let (namespace, name) = (metadata.namespace.clone(), metadata.name.clone());
    ObjectId { kind, namespace: namespace.unwrap_or_default(), name: name.unwrap_or_default() }
}
