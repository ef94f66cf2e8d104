//! The files of an environment repository, read from Git objects and from disk alike.
//!
//! A tenant may write anything below its directories of `environments/` and `lock/`, so bounds are per tenant: a directory
//! that exceeds one becomes [`Entry::Unread`], which fails that tenant alone. `larder.yaml` and `templates/` are everyone's.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

use crate::{
    io::links::{Node, is_followed, resolve},
    model::{
        name::DEFAULT_TENANT,
        snapshot::{Entry, is_read},
    },
};

/// What of an environment repository is read.
pub(crate) const ROOTS: [&str; 4] = ["larder.yaml", "environments", "templates", "lock"];

/// The largest file that is read, in bytes. A larger one is [`Entry::TooLarge`].
pub(crate) const MAX_FILE: u64 = 1024 * 1024;

/// Bounds of one tenant's directory: entries (directories included), bytes (equal files count each time, as each is parsed),
/// levels, and steps on the way from symbolic links to files.
const TENANT: Bounds = Bounds { entries: 50_000, bytes: 32 << 20 };
pub(crate) const MAX_DEPTH: usize = 32;
const MAX_STEPS: usize = 10_000;

/// Bounds of all together. The largest directory gives way until the others fit.
const ALL: Bounds = Bounds { entries: 200_000, bytes: 128 << 20 };

/// How many directories are remembered, so that equal ones are listed once.
const REMEMBERED: usize = 1_024;

#[derive(Clone, Copy)]
struct Bounds {
    entries: usize,
    bytes: u64,
}

/// What a directory holds under a name.
#[derive(Clone)]
pub(crate) struct Child<I> {
    pub(crate) name: String,
    pub(crate) kind: ChildKind,
    /// What it holds, wherever it is: equal identities are equal contents.
    pub(crate) id: I,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChildKind {
    File,
    Directory,
    Link,
    Submodule,
}

/// Where directories and files come from.
pub(crate) trait Source {
    type Id: Clone + Ord;
    type Error;
    fn children(&self, directory: &Self::Id) -> Result<Vec<Child<Self::Id>>, Self::Error>;
    fn size(&self, file: &Self::Id) -> Result<u64, Self::Error>;
    /// The content of a file, of [`MAX_FILE`] bytes at most.
    fn read(&self, file: &Self::Id) -> Result<Entry, Self::Error>;
    fn target(&self, link: &Self::Id) -> Result<String, Self::Error>;
}

/// Why nothing of a repository is read.
pub(crate) enum WalkError<E> {
    Source(E),
    /// What all tenants share exceeds a bound: where, and which.
    Limit(String, String),
    /// A name in this directory that no path can have.
    Name(String, String),
}

/// Why one directory is not read, for its readers.
type Refused = String;

/// What is to be read of a tenant's directory, or of what all share.
struct Listing<I> {
    files: Vec<(String, I)>,
    others: Vec<(String, Entry)>,
    used: Bounds,
    steps: usize,
}

/// Reads the files below `root`.
pub(crate) fn files<S: Source>(source: &S, root: &S::Id) -> Result<BTreeMap<String, Entry>, WalkError<S::Error>> {
    let walk = Walk { source, root, listed: RefCell::default() };
    let mut listings = BTreeMap::new();
    for (directory, starts) in walk.directories()? {
        let listing = match walk.list(starts)? {
            Err(limit) if directory.is_empty() => return Err(WalkError::Limit("templates".into(), limit)),
            listing => listing,
        };
        listings.insert(directory, listing);
        make_room(&mut listings)?;
    }
    let mut files = BTreeMap::new();
    let mut contents: BTreeMap<S::Id, Entry> = BTreeMap::new();
    for (directory, listing) in listings {
        match listing {
            Err(limit) => {
                files.insert(directory, Entry::Unread(limit));
            }
            Ok(listing) => {
                for (path, id) in listing.files {
                    if !contents.contains_key(&id) {
                        contents.insert(id.clone(), source.read(&id).map_err(WalkError::Source)?);
                    }
                    files.extend(contents.get(&id).map(|entry| (path, entry.clone())));
                }
                files.extend(listing.others);
            }
        }
    }
    Ok(files)
}

/// Lets the largest directories go until all others are within the bounds together.
fn make_room<I, E>(listings: &mut BTreeMap<String, Result<Listing<I>, Refused>>) -> Result<(), WalkError<E>> {
    loop {
        let used = || listings.iter().filter_map(|(at, listing)| Some((at, listing.as_ref().ok()?.used)));
        let entries: usize = used().map(|(_, used)| used.entries).sum();
        let bytes: u64 = used().map(|(_, used)| used.bytes).sum();
        let (limit, largest) = if entries > ALL.entries {
            (format!("{} files and directories", ALL.entries), used().max_by_key(|(_, used)| used.entries))
        } else if bytes > ALL.bytes {
            (format!("{} MiB", ALL.bytes >> 20), used().max_by_key(|(_, used)| used.bytes))
        } else {
            return Ok(());
        };
        let Some(largest) = largest.map(|(at, _)| at.clone()).filter(|at| !at.is_empty()) else {
            return Err(WalkError::Limit("templates".into(), limit));
        };
        listings
            .insert(largest, Err(format!("the repository holds more than {limit}, and this directory is the largest")));
    }
}

struct Walk<'a, S: Source> {
    source: &'a S,
    root: &'a S::Id,
    listed: RefCell<BTreeMap<S::Id, Children<S::Id>>>,
}

/// What a directory holds, sorted by name.
type Children<I> = Rc<Vec<Child<I>>>;

type Starts<I> = Vec<(String, Child<I>)>;

/// The result of a walk over a [`Source`].
type Walked<T, S> = Result<T, WalkError<<S as Source>::Error>>;

impl<S: Source> Walk<'_, S> {
    /// The directories that have bounds of their own, with what is in them; `""` for what all share.
    fn directories(&self) -> Walked<BTreeMap<String, Starts<S::Id>>, S> {
        let mut directories: BTreeMap<String, Starts<S::Id>> = BTreeMap::new();
        for top in self.children(self.root)?.iter().filter(|child| ROOTS.contains(&child.name.as_str())) {
            if top.kind != ChildKind::Directory || top.name == "templates" {
                directories.entry(String::new()).or_default().push((top.name.clone(), top.clone()));
                continue;
            }
            let children = self.children(&top.id)?;
            if children.len() > ALL.entries {
                return Err(WalkError::Limit(top.name.clone(), format!("{} files and directories", ALL.entries)));
            }
            for child in children.iter() {
                if !is_name(&child.name) {
                    return Err(WalkError::Name(top.name.clone(), child.name.clone()));
                }
                // A file that is in no tenant's directory is the default tenant's.
                let tenant = if child.kind == ChildKind::File { DEFAULT_TENANT } else { child.name.as_str() };
                let path = format!("{}/{}", top.name, child.name);
                directories.entry(format!("{}/{tenant}", top.name)).or_default().push((path, child.clone()));
            }
        }
        Ok(directories)
    }

    /// What is to be read of a directory, unless it exceeds a bound.
    fn list(&self, starts: Starts<S::Id>) -> Walked<Result<Listing<S::Id>, Refused>, S> {
        let used = Bounds { entries: 0, bytes: 0 };
        let mut listing = Listing { files: Vec::new(), others: Vec::new(), used, steps: 0 };
        let mut links = Vec::new();
        let mut rest: Vec<_> = starts.into_iter().map(|(path, child)| (path, child, 1)).collect();
        while let Some((path, child, depth)) = rest.pop() {
            listing.used.entries += 1;
            match child.kind {
                ChildKind::Directory if depth > MAX_DEPTH => {
                    return Ok(Err(format!("it holds more than {MAX_DEPTH} levels of directories")));
                }
                ChildKind::Directory => {
                    let children = self.children(&child.id)?;
                    if listing.used.entries + rest.len() + children.len() > TENANT.entries {
                        return Ok(Err(format!("it holds more than {} files and directories", TENANT.entries)));
                    }
                    if let Some(odd) = children.iter().find(|child| !is_name(&child.name)) {
                        return Ok(Err(format!("it holds an entry with the name {:?}", odd.name)));
                    }
                    let below = |child: &Child<S::Id>| (format!("{path}/{}", child.name), child.clone(), depth + 1);
                    rest.extend(children.iter().map(below));
                }
                ChildKind::Submodule => listing.others.push((path, Entry::Submodule)),
                ChildKind::Link => links.push((path, child.id)),
                ChildKind::File => self.add(&mut listing, path, child.id)?,
            }
        }
        for (path, id) in links {
            self.follow(&mut listing, path, &id)?;
        }
        if listing.steps >= MAX_STEPS {
            return Ok(Err("it holds too many symbolic links".to_owned()));
        }
        if listing.used.bytes > TENANT.bytes {
            return Ok(Err(format!("it holds more than {} MiB", TENANT.bytes >> 20)));
        }
        Ok(Ok(listing))
    }

    /// Adds a file, if it is one that is read.
    fn add(&self, listing: &mut Listing<S::Id>, path: String, id: S::Id) -> Walked<(), S> {
        if !is_read(&path) {
            return Ok(());
        }
        let size = self.source.size(&id).map_err(WalkError::Source)?;
        if size > MAX_FILE {
            listing.others.push((path, Entry::TooLarge(size)));
            return Ok(());
        }
        listing.used.bytes += size;
        listing.files.push((path, id));
        Ok(())
    }

    /// Puts the file that a link leads to in the link's place.
    fn follow(&self, listing: &mut Listing<S::Id>, path: String, link: &S::Id) -> Walked<(), S> {
        let target = self.source.target(link).map_err(WalkError::Source)?;
        let mut failure = None;
        let steps = &mut listing.steps;
        let look = |path: &str| {
            *steps += 1;
            if *steps >= MAX_STEPS {
                return None;
            }
            self.node(path).unwrap_or_else(|error| {
                failure = Some(error);
                None
            })
        };
        let file = if is_followed(&path) { resolve(&path, &target, look) } else { None };
        if let Some(error) = failure {
            return Err(error);
        }
        match file.map(|file| self.find(&file)).transpose()?.flatten() {
            Some(found) => self.add(listing, path, found.id),
            None => {
                listing.others.push((path, Entry::Link(target)));
                Ok(())
            }
        }
    }

    fn node(&self, path: &str) -> Walked<Option<Node>, S> {
        let Some(found) = self.find(path)? else { return Ok(None) };
        Ok(match found.kind {
            ChildKind::Directory => Some(Node::Folder),
            ChildKind::File => Some(Node::File),
            ChildKind::Link => Some(Node::Link(self.source.target(&found.id).map_err(WalkError::Source)?)),
            ChildKind::Submodule => None,
        })
    }

    /// What is at a path from the root. Nothing is in Git's own directory.
    fn find(&self, path: &str) -> Walked<Option<Child<S::Id>>, S> {
        let mut found: Option<Child<S::Id>> = None;
        for name in path.split('/') {
            let directory = match &found {
                None => self.root.clone(),
                Some(child) if child.kind == ChildKind::Directory => child.id.clone(),
                Some(_) => return Ok(None),
            };
            if name.eq_ignore_ascii_case(".git") {
                return Ok(None);
            }
            let children = self.children(&directory)?;
            match children.binary_search_by(|child| child.name.as_str().cmp(name)) {
                Ok(at) => found = Some(children[at].clone()),
                Err(_) => return Ok(None),
            }
        }
        Ok(found)
    }

    fn children(&self, directory: &S::Id) -> Walked<Children<S::Id>, S> {
        if let Some(children) = self.listed.borrow().get(directory) {
            return Ok(children.clone());
        }
        let mut children = self.source.children(directory).map_err(WalkError::Source)?;
        children.sort_by(|one, other| one.name.cmp(&other.name));
        let children = Rc::new(children);
        let mut listed = self.listed.borrow_mut();
        if listed.len() >= REMEMBERED {
            listed.clear();
        }
        listed.insert(directory.clone(), children.clone());
        Ok(children)
    }
}

/// Whether a name can be one component of a path. Git refuses others too, where it checks.
fn is_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\0'])
}
