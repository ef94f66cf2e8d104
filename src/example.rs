//! The example environment repository, inside the binary: what `larder init` writes and `larder demo` plays with.

use include_dir::{Dir, include_dir};

static EXAMPLE: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/example-repo");

/// Its files, each a path from the root of the environment repository and its bytes.
pub fn files() -> impl Iterator<Item = (&'static str, &'static [u8])> {
    let mut files = Vec::new();
    collect(&EXAMPLE, &mut files);
    files.into_iter()
}

/// The files of a repository without environments: settings for these tenants, each with a namespace of its own name, and
/// the schemas that editors check files by.
pub fn empty(tenants: &[&str]) -> Vec<(&'static str, Vec<u8>)> {
    let mut text = "# yaml-language-server: $schema=.larder/schema/settings.json\n\
                    # Settings for all environments of this repository.\n\
                    apiVersion: larder.dev/v1alpha1\nkind: Settings\nspec:\n  tenants:"
        .to_owned();
    for tenant in tenants {
        let namespace = tenant.to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        // A JSON string is a YAML string, whatever a name holds.
        let key = serde_json::Value::from(*tenant);
        text += &format!("\n    {key}: {{namespace: {namespace}, createNamespace: true}}");
    }
    text += if tenants.is_empty() { " {}\n" } else { "\n" };
    let others = files().filter(|(path, _)| path.starts_with('.')).map(|(path, bytes)| (path, bytes.to_vec()));
    others.chain([("larder.yaml", text.into_bytes())]).collect()
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
