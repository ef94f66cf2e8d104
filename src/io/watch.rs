//! Tells when files on this machine change, by the system's own means (inotify, FSEvents).
//!
//! What is watched may be replaced at any time: someone clones again, a link is switched. Then the system continues watching
//! what nobody sees any more, so places are compared with what they were, and watched again.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use notify::{ErrorKind, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::model::failure::{Category, Problem};

/// A directory that is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The directory.
    pub folder: PathBuf,
    /// How much of it counts.
    pub depth: Depth,
}

/// How much of a directory counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Only what has one of these names in the directory itself.
    Names(&'static [&'static str]),
    /// All that is below.
    All,
}

impl Place {
    /// The same with a path that does not depend on the directory that larder was started in. Links stay, since they may be
    /// switched.
    fn absolute(self) -> Self {
        Self { folder: std::path::absolute(&self.folder).unwrap_or(self.folder), depth: self.depth }
    }
}

/// Watches places.
pub struct Watch {
    changed: Arc<dyn Fn() + Send + Sync>,
    /// Ends when it is dropped.
    watcher: Option<RecommendedWatcher>,
    watched: Vec<(Place, Identity)>,
}

/// What a directory is, whatever its name: none when it is not there.
type Identity = Option<(u64, u64)>;

impl Watch {
    /// Watches nothing yet. `changed` is called for each change, from another thread, and must not take long.
    pub fn new(changed: impl Fn() + Send + Sync + 'static) -> Self {
        Self { changed: Arc::new(changed), watcher: None, watched: Vec::new() }
    }

    /// Whether each place is still what it was when it began to be watched.
    pub fn is_current(&self) -> bool {
        self.watcher.is_some()
            && self.watched.iter().all(|(place, identity)| identity.is_some() && *identity == identify(&place.folder))
    }

    /// Watches these places, and no others any more. Places that are not there are left out.
    ///
    /// # Errors
    /// When the system does not watch for us: its limits are reached.
    pub fn set(&mut self, places: Vec<Place>) -> Result<(), Problem> {
        self.watcher = None;
        self.watched.clear();
        let places: Vec<Place> = places.into_iter().map(Place::absolute).collect();
        // Some systems tell of the directory that a link leads to.
        let real = |place: &Place| Some(Place { folder: place.folder.canonicalize().ok()?, depth: place.depth });
        let rules: Vec<Place> = places.iter().cloned().chain(places.iter().filter_map(real)).collect();
        let changed = self.changed.clone();
        let handler = move |event: notify::Result<Event>| {
            // An error tells that events may be missing: that is a change as well.
            if event.map_or(true, |event| counts(&event, &rules)) {
                changed();
            }
        };
        let mut watcher = notify::recommended_watcher(handler).map_err(|error| problem(&error))?;
        for place in places {
            let mode = if place.depth == Depth::All { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive };
            // Before it is watched: what is replaced in between is seen as replaced.
            let identity = identify(&place.folder);
            match watcher.watch(&place.folder, mode) {
                Err(error) if !matches!(error.kind, ErrorKind::PathNotFound) && identity.is_some() => {
                    return Err(problem(&error));
                }
                Err(_) => {}
                Ok(()) => self.watched.push((place, identity)),
            }
        }
        self.watcher = Some(watcher);
        Ok(())
    }
}

fn problem(error: &notify::Error) -> Problem {
    // The path in notify's own text may be long, and is known.
    let reason = match &error.kind {
        ErrorKind::Io(error) => error.to_string(),
        ErrorKind::MaxFilesWatch => "the limit of watched files is reached".to_owned(),
        kind => format!("{kind:?}"),
    };
    Problem::new(Category::Io, format!("the directory cannot be watched: {reason}"))
        .hint("raise fs.inotify.max_user_watches and fs.inotify.max_user_instances; until then changes are seen at the next poll")
}

/// Whether an event is of something that counts. Reading is not a change, nor are the lock files that Git writes beside.
fn counts(event: &Event, places: &[Place]) -> bool {
    if matches!(event.kind, EventKind::Access(_)) {
        return false;
    }
    if event.need_rescan() || event.paths.is_empty() {
        return true;
    }
    let counts = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default();
        if Path::new(name).extension() == Some(OsStr::new("lock")) {
            return false;
        }
        places.iter().any(|place| match place.depth {
            Depth::All => path.starts_with(&place.folder),
            Depth::Names(names) => {
                *path == place.folder
                    || (path.parent() == Some(&place.folder) && names.iter().any(|known| name == OsStr::new(known)))
            }
        })
    };
    event.paths.iter().any(counts)
}

#[cfg(unix)]
fn identify(folder: &Path) -> Identity {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(folder).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identify(folder: &Path) -> Identity {
    fs::metadata(folder).ok().map(|_| (0, 0))
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        path::Path,
        sync::mpsc::{Receiver, channel},
        time::Duration,
    };

    use notify::{
        Event,
        event::{AccessKind, AccessMode, CreateKind, EventKind, ModifyKind, RenameMode},
    };

    use super::{Depth, Place, Watch, counts};

    fn place(folder: &Path, depth: Depth) -> Place {
        Place { folder: folder.to_owned(), depth }
    }

    #[test]
    fn only_changes_of_what_is_meant_count() {
        let places = [
            place(Path::new("/r/refs/heads"), Depth::All),
            place(Path::new("/r"), Depth::Names(&["HEAD", "packed-refs"])),
        ];
        let create = EventKind::Create(CreateKind::File);
        let read = EventKind::Access(AccessKind::Close(AccessMode::Read));
        let rename = EventKind::Modify(ModifyKind::Name(RenameMode::Both));
        for (kind, paths, expected) in [
            (create, vec!["/r/refs/heads/main"], true),
            (create, vec!["/r/refs/heads/team/x"], true),
            (create, vec!["/r/refs/heads/main.lock"], false),
            (rename, vec!["/r/refs/heads/main.lock", "/r/refs/heads/main"], true),
            (read, vec!["/r/refs/heads/main"], false),
            (create, vec!["/r/HEAD"], true),
            (create, vec!["/r/packed-refs"], true),
            (create, vec!["/r/packed-refs.lock"], false),
            (create, vec!["/r/index"], false),
            (create, vec!["/r/logs/HEAD"], false),
            (create, vec!["/r/refs/tags/v1"], false),
            (create, vec!["/r"], true),
            (create, vec![], true),
        ] {
            let mut event = Event::new(kind);
            event.paths = paths.iter().map(Into::into).collect();
            assert_eq!(counts(&event, &places), expected, "{kind:?} {paths:?}");
        }
    }

    /// Waits for a change, and for the end of it.
    fn changed(changes: &Receiver<()>) -> bool {
        let came = changes.recv_timeout(Duration::from_secs(20)).is_ok();
        while changes.recv_timeout(Duration::from_millis(50)).is_ok() {}
        came
    }

    #[test]
    fn files_as_editors_write_them_and_folders_that_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("environments");
        fs::create_dir_all(root.join("a")).unwrap();
        let (sender, changes) = channel();
        let mut watch = Watch::new(move || sender.send(()).unwrap_or_default());
        assert!(!watch.is_current());
        let places = || vec![place(&root, Depth::All), place(&folder.path().join("absent"), Depth::All)];
        watch.set(places()).unwrap();
        assert!(watch.is_current());

        fs::write(root.join("a/x.yaml"), "1").unwrap();
        assert!(changed(&changes), "written in place");
        fs::write(root.join("a/x.yaml~"), "2").unwrap();
        fs::rename(root.join("a/x.yaml~"), root.join("a/x.yaml")).unwrap();
        assert!(changed(&changes), "written beside and renamed");
        fs::create_dir(root.join("b")).unwrap();
        assert!(changed(&changes));
        fs::write(root.join("b/y.yaml"), "1").unwrap();
        assert!(changed(&changes), "in a new directory");
        fs::read(root.join("b/y.yaml")).unwrap();
        assert!(changes.try_recv().is_err(), "reading is not a change");

        fs::rename(&root, folder.path().join("old")).unwrap();
        fs::create_dir(&root).unwrap();
        assert!(!watch.is_current(), "another directory has its name");
        watch.set(places()).unwrap();
        assert!(watch.is_current());
        while changes.try_recv().is_ok() {}
        fs::write(root.join("z.yaml"), "1").unwrap();
        assert!(changed(&changes));
    }
}
