//! A directory that holds manifests as a cluster would: for those who let another tool apply them, or who want a look first.

#[cfg(test)]
mod tests;

use std::{
    ffi::OsStr,
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{cluster::Cluster, links::link_below};
use crate::model::{
    failure::{Category, Problem},
    manifest::{
        Comparison, INSTANCE_LABEL, Inventory, InventoryEntry, Kind, MANIFEST_ANNOTATION, Manifest, OBJECT_ANNOTATION,
        OWNER_ANNOTATION, ObjectId, Owner,
    },
    status::Status,
    yaml::to_yaml,
};

/// Bytes of a file above which it cannot be one of ours: etcd takes no larger object.
const MAX_FILE: u64 = 4 << 20;

/// `root/<namespace>/<kind>-<name>.yaml`, one object a file; an object without a namespace is in `root` itself.
///
/// Files that do not hold an object of ours are neither read as ours nor written to nor deleted.
#[derive(Clone, Debug)]
pub struct Directory {
    root: PathBuf,
    instance: String,
}

/// Where the status is. The leading dot keeps it from tools that apply the directory.
const STATUS: &str = ".larder-status.json";

/// Where the last accepted commit is.
const ACCEPTED: &str = ".larder-accepted";

impl Directory {
    /// The directory, which need not exist, as one instance of larder sees it.
    pub fn new(root: impl Into<PathBuf>, instance: impl Into<String>) -> Self {
        Self { root: root.into(), instance: instance.into() }
    }

    /// Where it is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn path(&self, id: &ObjectId) -> PathBuf {
        self.root.join(&id.namespace).join(file_name(id))
    }

    /// What the file of an object holds, if it is there.
    fn read(&self, id: &ObjectId) -> Result<Option<Value>, Problem> {
        let path = self.path(id);
        self.must_not_lead_elsewhere(&path)?;
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(parse(&text).unwrap_or(Value::Null))),
            // Not even text, so nobody's object.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(Some(Value::Null)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(at(&path, &error)),
        }
    }

    /// That the way to a file is neither a link, which leads where we were not told to write, nor something special.
    fn must_not_lead_elsewhere(&self, path: &Path) -> Result<(), Problem> {
        let conflict = |path: &Path, what| {
            Problem::new(Category::Conflict, format!("{} is {what}; nothing is read or written there", path.display()))
                .hint("move it away, or choose another directory")
        };
        if let Some(link) = link_below(&self.root, path) {
            return Err(conflict(&link, "a symbolic link"));
        }
        match fs::symlink_metadata(path) {
            Ok(metadata) if !metadata.is_file() => Err(conflict(path, "no regular file")),
            _ => Ok(()),
        }
    }

    fn must_be_ours(&self, id: &ObjectId, object: &Value) -> Result<(), Problem> {
        if self.is_ours(id, object) {
            return Ok(());
        }
        let path = self.path(id);
        Err(Problem::new(
            Category::Conflict,
            format!("{} exists and was not made by larder; it is left alone", path.display()),
        )
        .hint("move it away, or choose another directory"))
    }

    fn is_ours(&self, id: &ObjectId, object: &Value) -> bool {
        let metadata = &object["metadata"];
        metadata["labels"][INSTANCE_LABEL] == *self.instance
            && metadata["annotations"][OBJECT_ANNOTATION] == *id.to_string()
    }

    /// The entry of a file, or none when it is not ours. We write regular files that everybody may read, so one that is
    /// something else or cannot be read is someone else's, and no reason to stop.
    fn entry(&self, path: &Path) -> Option<(ObjectId, InventoryEntry)> {
        let read = || -> io::Result<Option<String>> {
            let metadata = fs::symlink_metadata(path)?;
            if !metadata.is_file() || metadata.len() > MAX_FILE {
                return Ok(None);
            }
            Ok(String::from_utf8(fs::read(path)?).ok())
        };
        let text = read().unwrap_or_else(|error| {
            tracing::debug!(path = %path.display(), "a file cannot be read, so it is not ours: {error}");
            None
        })?;
        let object = parse(&text)?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let id = ObjectId {
            kind: Kind::of(object["apiVersion"].as_str()?, object["kind"].as_str()?)?,
            namespace: text(&object["metadata"]["namespace"]).unwrap_or_default(),
            name: text(&object["metadata"]["name"])?,
        };
        if !self.is_ours(&id, &object) || self.path(&id) != path {
            return None;
        }
        let annotations = &object["metadata"]["annotations"];
        let entry = InventoryEntry {
            owner: Owner::parse(annotations[OWNER_ANNOTATION].as_str()?)?,
            uid: String::new(),
            manifest: text(&annotations[MANIFEST_ANNOTATION]).unwrap_or_default(),
            fields: None,
            terminating: false,
        };
        Some((id, entry))
    }
}

impl Cluster for Directory {
    async fn inventory(&self) -> Result<Inventory, Problem> {
        let mut inventory = Inventory::new();
        for path in list(&self.root)? {
            // A link is not followed: what it leads to is none of ours.
            if fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_dir()) {
                let files = list(&path).unwrap_or_else(|problem| {
                    tracing::debug!("a directory cannot be read, so nothing in it is known: {problem}");
                    Vec::new()
                });
                inventory.extend(files.iter().filter(|path| is_object_file(path)).filter_map(|path| self.entry(path)));
            } else if is_object_file(&path) {
                inventory.extend(self.entry(&path));
            }
        }
        Ok(inventory)
    }

    async fn compare(&self, manifest: &Manifest) -> Result<Comparison, Problem> {
        check(&manifest.id)?;
        let live = self.read(&manifest.id)?;
        if let Some(live) = &live {
            self.must_be_ours(&manifest.id, live)?;
        }
        Ok(Comparison { live, applied: Value::clone(&manifest.object) })
    }

    async fn apply(&self, manifest: &Manifest) -> Result<(), Problem> {
        self.compare(manifest).await?;
        let path = self.path(&manifest.id);
        let folder = path.parent().unwrap_or(&self.root);
        write(folder, &path, &to_yaml(&manifest.object)).map_err(|error| at(&path, &error))
    }

    fn has_nodes(&self) -> bool {
        false
    }

    async fn publish(&self, status: &Status) -> Result<(), Problem> {
        let path = self.root.join(STATUS);
        let text = status.published(usize::MAX) + "\n";
        if fs::read_to_string(&path).is_ok_and(|former| former == text) {
            return Ok(());
        }
        write(&self.root, &path, &text).map_err(|error| at(&path, &error))
    }

    async fn accepted(&self) -> Result<Option<String>, Problem> {
        let path = self.root.join(ACCEPTED);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(at(&path, &error)),
        }
    }

    async fn accept(&self, commit: &str) -> Result<(), Problem> {
        let path = self.root.join(ACCEPTED);
        write(&self.root, &path, &format!("{commit}\n")).map_err(|error| at(&path, &error))
    }

    fn how_to_accept(&self, commit: &str) -> String {
        format!("echo {commit} >{}", self.root.join(ACCEPTED).display())
    }

    async fn delete(&self, id: &ObjectId, _uid: &str) -> Result<(), Problem> {
        check(id)?;
        let Some(object) = self.read(id)? else { return Ok(()) };
        self.must_be_ours(id, &object)?;
        let path = self.path(id);
        fs::remove_file(&path).map_err(|error| at(&path, &error))?;
        if let (false, Some(folder)) = (id.namespace.is_empty(), path.parent()) {
            // Only an empty directory goes; anything else in it is none of ours.
            let _ = fs::remove_dir(folder);
        }
        Ok(())
    }

    async fn server_version(&self) -> Option<(u32, u32)> {
        None
    }
}

fn file_name(id: &ObjectId) -> String {
    format!("{}-{}.yaml", id.kind.as_str().to_lowercase(), id.name)
}

/// Whether the name of a file is one that [`file_name`] makes.
fn is_object_file(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    name.ends_with(".yaml")
        && Kind::ALL.iter().any(|kind| name.starts_with(&format!("{}-", kind.as_str().to_lowercase())))
}

/// That neither namespace nor name leads out of the directory.
fn check(id: &ObjectId) -> Result<(), Problem> {
    let leads_out = |part: &str| part.contains(['/', '\\', '\0']) || part == "." || part == "..";
    if leads_out(&id.namespace) || leads_out(&id.name) || id.name.is_empty() {
        return Err(Problem::new(Category::Name, format!("{id} cannot be a file's name"))
            .hint("use names that Kubernetes allows"));
    }
    Ok(())
}

fn list(folder: &Path) -> Result<Vec<PathBuf>, Problem> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        // A directory that is not there yet holds nothing.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(at(folder, &error)),
    };
    entries.map(|entry| entry.map(|entry| entry.path()).map_err(|error| at(folder, &error))).collect()
}

/// Writes a file as a whole or not at all.
fn write(folder: &Path, path: &Path, text: &str) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut file = tempfile::Builder::new().prefix(".larder-").suffix(".tmp").tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    readable(file.as_file())?;
    file.persist(path)?;
    Ok(())
}

/// Temporary files are made for their owner alone; manifests are for everyone.
#[cfg(unix)]
fn readable(file: &fs::File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn readable(_: &fs::File) -> io::Result<()> {
    Ok(())
}

fn parse(text: &str) -> Option<Value> {
    serde_saphyr::from_str(text).ok()
}

fn at(path: &Path, error: &io::Error) -> Problem {
    Problem::new(Category::Io, format!("{}: {error}", path.display())).hint("see that larder may read and write there")
}
