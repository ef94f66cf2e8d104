//! Symbolic links of an environment repository, followed without ever leaving it.

use std::path::{Path, PathBuf};

/// The most links that are followed on the way to one file; as Linux has it.
const MAX_HOPS: usize = 40;

/// What a path holds, links not followed.
pub(crate) enum Node {
    /// A regular file.
    File,
    /// A directory.
    Folder,
    /// A symbolic link, with its target.
    Link(String),
}

/// Whether a link at `path` (from the root of the environment repository) is followed at all. Not in place of a lockfile:
/// its changes would be changes of another file, which no history of the lock shows and nobody verifies.
pub(crate) fn is_followed(path: &str) -> bool {
    !path.starts_with("lock/")
}

/// Follows the link at `path`, whose target is `target`, to a file of the same tree, and gives that file's path.
///
/// `look` tells what a path from the root holds, or `None` where there is nothing (or something else). The result is
/// `None` when the link leaves the tree (also if it would come back), loops, dangles or names a directory.
pub(crate) fn resolve(path: &str, target: &str, mut look: impl FnMut(&str) -> Option<Node>) -> Option<String> {
    let mut hops = 1;
    let mut done: Vec<String> = path.split('/').map(str::to_owned).collect();
    done.pop();
    let mut rest = components(target)?;
    let mut file = false;
    while let Some(component) = rest.pop() {
        match component.as_str() {
            _ if file => return None,
            "" | "." => continue,
            ".." => {
                done.pop()?;
                continue;
            }
            _ => done.push(component),
        }
        match look(&done.join("/"))? {
            Node::File => file = true,
            Node::Folder => {}
            Node::Link(next) => {
                hops += 1;
                if hops > MAX_HOPS {
                    return None;
                }
                done.pop();
                rest.extend(components(&next)?);
            }
        }
    }
    file.then(|| done.join("/"))
}

/// The first symbolic link on the way from `root` down to `path`, `path` included and `root` not: writing there would
/// change what is elsewhere.
pub(crate) fn link_below(root: &Path, path: &Path) -> Option<PathBuf> {
    let mut way: Vec<&Path> = path.ancestors().take_while(|part| *part != root).collect();
    way.reverse();
    way.into_iter().find(|part| part.is_symlink()).map(Path::to_owned)
}

/// The components of a relative target, last first; `None` for an absolute one.
fn components(target: &str) -> Option<Vec<String>> {
    (!target.starts_with('/')).then(|| target.split('/').rev().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::{Node, resolve};

    #[test]
    fn links_are_followed_inside_the_tree_only() {
        let look = |path: &str| match path {
            "a" | "a/b" | "c" => Some(Node::Folder),
            "a/b/file.yaml" | "c/file.yaml" | "top.yaml" => Some(Node::File),
            "a/loop1" => Some(Node::Link("loop2".into())),
            "a/loop2" => Some(Node::Link("loop1".into())),
            "a/self" => Some(Node::Link("self".into())),
            "a/again" => Some(Node::Link("b/file.yaml".into())),
            "a/folder" => Some(Node::Link("../c".into())),
            "a/out" => Some(Node::Link("../../etc".into())),
            _ => None,
        };
        for (path, target, expected) in [
            ("a/x", "b/file.yaml", Some("a/b/file.yaml")),
            ("a/x", "./b//../b/file.yaml", Some("a/b/file.yaml")),
            ("a/b/x", "../../c/file.yaml", Some("c/file.yaml")),
            ("a/x", "../top.yaml", Some("top.yaml")),
            ("x", "top.yaml", Some("top.yaml")),
            ("a/x", "again", Some("a/b/file.yaml")),
            ("a/x", "folder/file.yaml", Some("c/file.yaml")),
            ("a/x", "b", None),
            ("a/x", "missing", None),
            ("a/x", "../../top.yaml", None),
            ("a/x", "../../a/b/file.yaml", None),
            ("a/x", "/a/b/file.yaml", None),
            ("a/x", "/etc/passwd", None),
            ("a/x", "out/passwd", None),
            ("a/x", "loop1", None),
            ("a/self", "self", None),
            ("a/x", "b/file.yaml/more", None),
            ("a/x", "b/file.yaml/..", None),
            ("a/x", "", None),
        ] {
            assert_eq!(resolve(path, target, look).as_deref(), expected, "{path} -> {target}");
        }
    }
}
