//! The main job on the real two-node cluster of `tests/cluster/`: from a commit to warm nodes.

mod access;
mod crash;
mod crowd;
mod git;
mod holds;
mod in_cluster;
mod private;
mod signed;
mod sync;
mod tenancy;
pub(crate) mod world;

/// An environment file with these images (name, reference) and more lines under `spec:`.
pub(crate) fn environment(images: &[(&str, &str)], more: &str) -> String {
    let mut text = "apiVersion: larder.dev/v1alpha1\nkind: Environment\nspec:\n  images:\n".to_owned();
    for (name, reference) in images {
        text += &format!("    - name: {name}\n      image: {reference}\n");
    }
    text + more
}

pub(crate) const NODES: [&str; 2] = ["node1", "node2"];
