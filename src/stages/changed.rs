//! What differs between two snapshots: what a pull request has to answer for.

use std::collections::BTreeSet;

use crate::model::{
    failure::Problem,
    snapshot::{SETTINGS, Snapshot},
};

/// The files that may be valid or not because of what changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Affected {
    /// All of them: `larder.yaml` or a template changed, on which all depend.
    All,
    /// Those at these paths.
    Only(BTreeSet<String>),
}

impl Affected {
    /// Whether a file is one of them.
    pub fn covers(&self, path: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(paths) => paths.contains(path),
        }
    }

    /// Whether a problem is in one of them; one without a place always counts.
    pub fn concerns(&self, problem: &Problem) -> bool {
        problem.location.as_ref().is_none_or(|location| self.covers(&location.path))
    }
}

/// The paths of files that differ.
pub fn paths(before: &Snapshot, after: &Snapshot) -> BTreeSet<String> {
    let all = before.files.keys().chain(after.files.keys());
    all.filter(|path| before.files.get(*path) != after.files.get(*path)).cloned().collect()
}

/// Compares two snapshots of the same repository.
pub fn affected(before: &Snapshot, after: &Snapshot) -> Affected {
    let changed = paths(before, after);
    let is_shared = |path: &String| path == SETTINGS || (path.starts_with("templates/") && path.ends_with(".j2"));
    if changed.iter().any(is_shared) { Affected::All } else { Affected::Only(changed) }
}

#[cfg(test)]
mod tests {
    use super::{Affected, affected};
    use crate::model::snapshot::{Entry, Snapshot};

    fn snapshot(files: &[(&str, &str)]) -> Snapshot {
        let file = |(path, text): &(&str, &str)| ((*path).to_owned(), Entry::File(text.as_bytes().into()));
        Snapshot { files: files.iter().map(file).collect(), ..Snapshot::default() }
    }

    #[test]
    fn what_changed_is_affected() {
        let a = ("environments/t/a.yaml", "1");
        let b = ("environments/t/b.yaml", "1");
        let only = |paths: &[&str]| Affected::Only(paths.iter().map(|path| (*path).to_owned()).collect());
        let settings = ("larder.yaml", "1");
        for (before, after, expected) in [
            (vec![settings, a, b], vec![settings, a, b], only(&[])),
            (vec![settings, a, b], vec![settings, a, (b.0, "2")], only(&[b.0])),
            (vec![settings, a], vec![settings, b], only(&[a.0, b.0])),
            (vec![settings, a], vec![settings, a, ("lock/t/a.yaml", "x")], only(&["lock/t/a.yaml"])),
            (vec![settings, a], vec![("larder.yaml", "2"), a], Affected::All),
            (vec![settings, a], vec![settings, a, ("templates/puller.yaml.j2", "x")], Affected::All),
            (vec![settings, a], vec![settings, a, ("templates/README.md", "x")], only(&["templates/README.md"])),
            (vec![], vec![settings, a], Affected::All),
        ] {
            assert_eq!(affected(&snapshot(&before), &snapshot(&after)), expected);
        }
    }
}
