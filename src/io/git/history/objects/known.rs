//! Objects of packs that were unpacked lately.

use std::{collections::HashMap, sync::Arc};

use gix::objs::Kind;
use gix_pack::cache::DecodeEntry;

/// How many bytes of objects are kept before the older half is dropped.
const HALF: usize = 4 * 1024 * 1024;

/// An object's place: its pack's own number, and where its data begins there.
type Place = (u32, u64);

type Object = (Kind, Arc<[u8]>);

/// Two halves: what is looked up in the old one moves to the young one, so that what is used stays.
#[derive(Default)]
pub(super) struct Known {
    young: HashMap<Place, Object>,
    old: HashMap<Place, Object>,
    bytes: usize,
}

impl Known {
    pub(super) fn find(&mut self, place: Place) -> Option<Object> {
        if let Some(found) = self.young.get(&place) {
            return Some(found.clone());
        }
        let found = self.old.remove(&place)?;
        self.keep(place, &found);
        Some(found)
    }

    pub(super) fn keep(&mut self, place: Place, object: &Object) {
        if self.young.contains_key(&place) {
            return;
        }
        if self.bytes + object.1.len() > HALF {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        self.bytes += object.1.len();
        self.young.insert(place, object.clone());
    }
}

impl DecodeEntry for Known {
    fn put(&mut self, pack: u32, offset: u64, data: &[u8], kind: Kind, _packed: usize) {
        if data.len() <= HALF {
            self.keep((pack, offset), &(kind, Arc::from(data)));
        }
    }

    fn get(&mut self, pack: u32, offset: u64, out: &mut Vec<u8>) -> Option<(Kind, usize)> {
        let (kind, data) = self.find((pack, offset))?;
        out.clear();
        out.extend_from_slice(&data);
        // How large it was in the pack matters to nobody here.
        Some((kind, 0))
    }
}
