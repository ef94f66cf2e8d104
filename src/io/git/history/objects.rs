//! Many objects at once, in the order in which packs hold them: what an object is a difference of comes before it there,
//! so that nothing is unpacked twice.

mod known;

use std::{fs, path::Path, sync::Arc};

use gix::{
    ObjectId,
    hashtable::HashMap,
    objs::{Find as _, Kind},
};
use gix_pack::data::decode::entry::ResolvedBase;

use super::super::{local, tree::TreeError};
use crate::io::walk::MAX_FILE;
use known::Known;

/// The most memory that unpacking one object may take, in bytes.
const UNPACKING: usize = 16 * 1024 * 1024;

/// What was read: the bytes of each object, or why there are none.
pub(super) type Found = HashMap<ObjectId, Result<Arc<[u8]>, String>>;

/// A reader of a repository's objects. It looks into the packs itself; what is not there (loose objects, packs of other
/// repositories) is asked of gix one by one.
pub(super) struct Objects {
    repository: gix::Repository,
    packs: Arc<Vec<Pack>>,
    known: Known,
    inflate: gix_zlib::Inflate,
    buffer: Vec<u8>,
}

struct Pack {
    index: gix_pack::index::File,
    data: gix_pack::data::File,
}

/// Where an object is: the number of its pack and the offset there; none for one that is in no pack.
type Place = Option<(usize, u64)>;

impl Objects {
    pub(super) fn new(repository: gix::Repository) -> Self {
        let packs = Arc::new(packs(&repository.objects.store_ref().path().join("pack")));
        Self::of(repository, packs)
    }

    /// Another one of the same objects, for another thread.
    pub(super) fn fork(&self) -> Self {
        Self::of(self.repository.clone(), self.packs.clone())
    }

    fn of(repository: gix::Repository, packs: Arc<Vec<Pack>>) -> Self {
        Self { repository, packs, known: Known::default(), inflate: gix_zlib::Inflate::default(), buffer: Vec::new() }
    }

    /// Reads objects that are all of one kind. A file that is too large to be a lockfile reads as an empty one, which is
    /// none either.
    pub(super) fn read(&mut self, ids: impl IntoIterator<Item = ObjectId>, kind: Kind) -> Found {
        let mut found = Found::default();
        let mut places: Vec<(Place, ObjectId)> = Vec::new();
        for id in ids {
            if found.insert(id, Err(String::new())).is_none() {
                places.push((self.place(&id), id));
            }
        }
        places.sort_unstable_by_key(|(place, _)| *place);
        for (place, id) in places {
            found.insert(id, self.object(place, id, kind));
        }
        found
    }

    /// Reads one object; none when it is not here.
    pub(super) fn read_one(&mut self, id: ObjectId, kind: Kind) -> Result<Option<Arc<[u8]>>, String> {
        let place = self.place(&id);
        if place.is_none() && !self.repository.has_object(id) {
            return Ok(None);
        }
        self.object(place, id, kind).map(Some)
    }

    fn place(&self, id: &ObjectId) -> Place {
        self.packs.iter().enumerate().find_map(|(number, pack)| {
            let entry = pack.index.lookup(id)?;
            Some((number, pack.index.pack_offset_at_index(entry)))
        })
    }

    fn object(&mut self, place: Place, id: ObjectId, kind: Kind) -> Result<Arc<[u8]>, String> {
        // What gix says of a broken pack is as good as what it says of a broken object.
        let unpacked = place.and_then(|place| self.unpack(place).ok());
        let (found, data) = match unpacked {
            Some(found) => found,
            None => self.ask(id, kind)?,
        };
        if found != kind {
            return Err(format!("{id} is a {found}, where a {kind} is expected"));
        }
        let too_large = kind == Kind::Blob && data.len() as u64 > MAX_FILE;
        Ok(if too_large { Arc::default() } else { data })
    }

    fn unpack(&mut self, (number, offset): (usize, u64)) -> Result<(Kind, Arc<[u8]>), gix::Error> {
        let pack = &self.packs[number];
        let entry = pack.data.entry(offset)?;
        let place = (pack.data.id, entry.data_offset);
        if let Some(found) = self.known.find(place) {
            return Ok(found);
        }
        let base = |id: &gix::oid, _: &mut Vec<u8>| {
            let entry = pack.index.lookup(id).map(|entry| pack.data.entry(pack.index.pack_offset_at_index(entry)));
            Ok(entry.transpose()?.map(ResolvedBase::InPack))
        };
        let kind = pack.data.decode_entry(entry, &mut self.buffer, &mut self.inflate, &base, &mut self.known)?.kind;
        // What was no difference has not been taken up yet.
        let found = self.known.find(place).unwrap_or_else(|| (kind, Arc::from(self.buffer.as_slice())));
        self.known.keep(place, &found);
        Ok(found)
    }

    fn ask(&mut self, id: ObjectId, kind: Kind) -> Result<(Kind, Arc<[u8]>), String> {
        let wrong = |error| local::text(&error);
        if kind == Kind::Blob && self.repository.find_header(id).map_err(wrong)?.size() > MAX_FILE {
            return Ok((kind, Arc::default()));
        }
        let found = self.repository.objects.try_find(&id, &mut self.buffer).map_err(wrong)?;
        found.map(|found| (found.kind, Arc::from(found.data))).ok_or_else(|| format!("the {kind} {id} is missing"))
    }
}

/// The bytes of an object that [`Objects::read`] was asked for.
pub(super) fn get(found: &Found, id: ObjectId) -> Result<Arc<[u8]>, TreeError> {
    match found.get(&id) {
        Some(Ok(data)) => Ok(data.clone()),
        Some(Err(detail)) => Err(TreeError::Object(detail.clone())),
        None => Err(TreeError::Object(format!("{id} is missing"))),
    }
}

/// The packs of a directory, without those that cannot be opened.
fn packs(folder: &Path) -> Vec<Pack> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|file| file.path());
    let indices = files.filter(|path| path.extension().is_some_and(|extension| extension == "idx"));
    let open = |path: std::path::PathBuf| -> Result<Pack, gix::Error> {
        let index = gix_pack::index::File::at(&path, gix::hash::Kind::Sha1)?;
        let data = gix_pack::data::File::at(path.with_extension("pack"), gix::hash::Kind::Sha1)?;
        Ok(Pack { index, data: data.with_alloc_limit_bytes(Some(UNPACKING)) })
    };
    indices.filter_map(|path| open(path).ok()).collect()
}
