//! Objects of the walk's present commit: each is read once, although two neighbours need it.

use std::{collections::HashMap, sync::Arc};

use gix::{ObjectId, objs::Kind};

use super::super::tree::{MAX_FILE, TreeError};

/// How many bytes of objects are kept.
const LIMIT: usize = 32 * 1024 * 1024;

/// The trees and files that the next older change will be compared with: of each path the latest that was seen.
#[derive(Default)]
pub(super) struct Frontier {
    objects: HashMap<ObjectId, Arc<[u8]>>,
    bytes: usize,
    buffer: Vec<u8>,
}

impl Frontier {
    /// What an object holds that will not be needed again on the way to older commits.
    ///
    /// # Errors
    /// [`TreeError::Object`] when it is missing, broken or of another kind.
    pub(super) fn last(
        &mut self,
        repository: &gix::Repository,
        id: ObjectId,
        kind: Kind,
    ) -> Result<Arc<[u8]>, TreeError> {
        match self.objects.remove(&id) {
            Some(data) => {
                self.bytes -= data.len();
                Ok(data)
            }
            None => self.read(repository, id, kind),
        }
    }

    /// What an object holds that will be needed once more.
    ///
    /// # Errors
    /// As [`Self::last`].
    pub(super) fn first(
        &mut self,
        repository: &gix::Repository,
        id: ObjectId,
        kind: Kind,
    ) -> Result<Arc<[u8]>, TreeError> {
        if let Some(data) = self.objects.get(&id) {
            return Ok(data.clone());
        }
        let data = self.read(repository, id, kind)?;
        if self.bytes + data.len() > LIMIT {
            self.objects.clear();
            self.bytes = 0;
        }
        self.bytes += data.len();
        self.objects.insert(id, data.clone());
        Ok(data)
    }

    fn read(&mut self, repository: &gix::Repository, id: ObjectId, kind: Kind) -> Result<Arc<[u8]>, TreeError> {
        // A lockfile that is too large to be one reads as an empty file, which is none either.
        if kind == Kind::Blob && repository.find_header(id)?.size() > MAX_FILE {
            return Ok(Arc::default());
        }
        let found = gix::objs::Find::try_find(&repository.objects, &id, &mut self.buffer)?;
        match found {
            Some(found) if found.kind == kind => Ok(Arc::from(found.data)),
            Some(found) => Err(TreeError::Object(format!("{id} is a {}, where a {kind} is expected", found.kind))),
            None => Err(TreeError::Object(format!("the {kind} {id} is missing"))),
        }
    }
}
