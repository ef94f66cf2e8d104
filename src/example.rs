//! The example environment repository, inside the binary: what `larder init` writes and `larder demo` plays with.

use include_dir::{Dir, include_dir};

static EXAMPLE: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/example-repo");

/// Its files, each a path from the root of the environment repository and its bytes.
pub fn files() -> impl Iterator<Item = (&'static str, &'static [u8])> {
    let mut files = Vec::new();
    collect(&EXAMPLE, &mut files);
    files.into_iter()
}

fn collect(folder: &'static Dir<'static>, files: &mut Vec<(&'static str, &'static [u8])>) {
    for file in folder.files() {
        if let Some(path) = file.path().to_str() {
            files.push((path, file.contents()));
        }
    }
    for folder in folder.dirs() {
        collect(folder, files);
    }
}
