//! Image references as others write them: whole, or as name and tag; and texts that only stand for one.

use crate::model::reference::ImageReference;

use super::{cursor::Cursor, document::Value};

/// What a place that should hold an image comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// A reference, with what is worth knowing about it.
    Image(ImageReference, Vec<String>),
    /// Nothing to bring over, and why.
    Skipped(String),
}

/// Words that charts and templates put where a value has yet to be filled in.
const PLACEHOLDERS: [&str; 9] =
    ["placeholder", "set-by-", "set_by_", "setby", "changeme", "change-me", "replaceme", "replace-me", "fixme"];

/// Reads an image: a text, or a mapping with `name` (or `repository`) and `tag` (or `digest`).
pub fn read(place: &Cursor<'_>) -> Found {
    if !place.is_map() {
        return match &place.node.value {
            Value::Text(text) => whole(text),
            Value::Null => Found::Skipped("no image is set here".to_owned()),
            _ => Found::Skipped("this is not an image reference: a text is expected".to_owned()),
        };
    }
    let name = place.text_of("name").or_else(|| place.text_of("repository"));
    let name = match (place.text_of("registry"), name) {
        (Some(registry), Some(name)) => Some(format!("{registry}/{name}")),
        (_, name) => name,
    };
    let tag = place.text_of("tag");
    let digest = place.text_of("digest").or_else(|| place.text_of("sha"));
    let Some(name) = name else {
        return Found::Skipped("no image name is set here, so the chart's own image is used".to_owned());
    };
    let complete = name.contains('@') || name.rsplit('/').next().is_some_and(|last| last.contains(':'));
    let text = match (&tag, &digest) {
        (None, None) if complete => name,
        (None, None) => {
            return Found::Skipped(format!("`{name}` has no tag here, so the chart's own tag would be used; add one"));
        }
        (tag, digest) => {
            let (tag, digest) = match tag {
                Some(tag) if tag.starts_with("sha256:") => (None, Some(tag.clone())),
                tag => (tag.clone(), digest.clone()),
            };
            let tag = tag.map(|tag| format!(":{tag}")).unwrap_or_default();
            let digest = digest.map(|digest| format!("@{}", with_algorithm(&digest))).unwrap_or_default();
            format!("{name}{tag}{digest}")
        }
    };
    match (whole(&text), place.get("tag").map(|tag| &tag.node.value)) {
        (Found::Image(reference, mut notes), Some(Value::Number(tag))) if !is_plain(tag) => {
            notes.push(format!("YAML readers may take the tag {tag} for another number: quote it there"));
            Found::Image(reference, notes)
        }
        (found, _) => found,
    }
}

/// Whether each reader of a number writes it back the same.
fn is_plain(number: &str) -> bool {
    let decimal = number.parse::<f64>().is_ok_and(|value| value.to_string() == number);
    decimal && number.len() <= 15
}

fn with_algorithm(digest: &str) -> String {
    if digest.contains(':') { digest.to_owned() } else { format!("sha256:{digest}") }
}

/// Reads a whole reference.
pub fn whole(text: &str) -> Found {
    let text = text.trim();
    if let Some(why) = placeholder(text) {
        return Found::Skipped(why);
    }
    match text.parse::<ImageReference>() {
        Ok(reference) => {
            let mut notes: Vec<String> = reference.lints().iter().map(ToString::to_string).collect();
            if reference.digest().is_none() && reference.tag() == Some("latest") {
                notes.push("follows `latest`, which moves without notice".to_owned());
            }
            Found::Image(reference, notes)
        }
        Err(error) => Found::Skipped(format!("{error}; {}", error.hint())),
    }
}

/// Why a text is not an image yet.
fn placeholder(text: &str) -> Option<String> {
    if text.is_empty() {
        return Some("no image is set here".to_owned());
    }
    let templated = ["{", "}", "$(", "${", "<", ">"].iter().any(|mark| text.contains(mark));
    if templated {
        return Some(format!("`{text}` is a template, filled in elsewhere"));
    }
    let lower = text.to_lowercase();
    let word = PLACEHOLDERS.iter().any(|word| lower.contains(word));
    let bare = lower.split([':', '@']).next().unwrap_or_default();
    let stands_for_one = word || matches!(bare, "todo" | "tbd" | "none" | "null" | "image" | "dummy" | "...");
    stands_for_one.then(|| format!("`{text}` is a placeholder"))
}

#[cfg(test)]
mod tests {
    use super::{Found, read};
    use crate::stages::import::{Input, cursor::Cursor, document};

    fn found(yaml: &str) -> String {
        let input = Input { name: "f".to_owned(), text: format!("image: {yaml}") };
        let nodes = document::parse(&input).unwrap();
        let root = Cursor::root("f", &nodes.trees[0]);
        let (_, image) = &root.entries()[0];
        match read(image) {
            Found::Image(reference, notes) if notes.is_empty() => reference.to_string(),
            Found::Image(reference, notes) => format!("{reference} ({})", notes.join("; ")),
            Found::Skipped(why) => format!("- {why}"),
        }
    }

    #[test]
    fn images_are_read_in_each_form() {
        let digest = format!("sha256:{}", "a".repeat(64));
        for (yaml, expected) in [
            ("pangeo/ml-notebook:1.0", "docker.io/pangeo/ml-notebook:1.0"),
            ("quay.io/a/b", "quay.io/a/b:latest (follows `latest`, which moves without notice)"),
            ("\" quay.io/a/b:1 \"", "quay.io/a/b:1"),
            ("{name: quay.io/a/b, tag: '1'}", "quay.io/a/b:1"),
            ("{name: quay.io/a/b, tag: 2026.01.30}", "quay.io/a/b:2026.01.30"),
            (
                "{name: quay.io/a/b, tag: 1.10}",
                "quay.io/a/b:1.10 (YAML readers may take the tag 1.10 for another number: quote it there)",
            ),
            ("{name: quay.io/a/b, tag: 12}", "quay.io/a/b:12"),
            ("{repository: b, registry: quay.io/a, tag: v1}", "quay.io/a/b:v1"),
            ("{name: 'localhost:5000/a', tag: v1}", "localhost:5000/a:v1"),
            ("{name: 'localhost:5000/a'}", "- `localhost:5000/a` has no tag here"),
            ("{name: 'quay.io/a/b:3'}", "quay.io/a/b:3"),
            ("{name: quay.io/a/b, tag: set-by-chartpress}", "- `quay.io/a/b:set-by-chartpress` is a placeholder"),
            ("{tag: v1}", "- no image name is set here"),
            ("quay.io/placeholder/replace-this:xyz", "- `quay.io/placeholder/replace-this:xyz` is a placeholder"),
            ("dummy", "- `dummy` is a placeholder"),
            ("{name: dummy, tag: latest}", "- `dummy:latest` is a placeholder"),
            ("quay.io/dummy/app:1", "quay.io/dummy/app:1"),
            ("'{value}'", "- `{value}` is a template"),
            ("'{{ .Values.x }}:1'", "- `{{ .Values.x }}:1` is a template"),
            ("''", "- no image is set here"),
            ("null", "- no image is set here"),
            ("[a]", "- this is not an image reference"),
            ("12", "- this is not an image reference"),
            ("Quay.io/A:1", "- `A` must be lowercase"),
            ("user:hunter2@quay.io/a", "- an image reference holds no user or password"),
            ("xxx.harbor.com/5000/a:1", "xxx.harbor.com/5000/a:1 (the path at xxx.harbor.com starts with `5000`"),
        ] {
            let found = found(yaml);
            assert!(found.starts_with(expected), "{yaml}: {found}");
            assert!(!found.contains("hunter2"), "{yaml}: {found}");
        }
        assert_eq!(found(&format!("{{name: quay.io/a, tag: '{digest}'}}")), format!("quay.io/a@{digest}"));
        assert_eq!(found(&format!("{{name: quay.io/a, tag: 'v1@{digest}'}}")), format!("quay.io/a:v1@{digest}"));
        assert_eq!(found(&format!("{{name: 'quay.io/a@{digest}'}}")), format!("quay.io/a@{digest}"));
        assert_eq!(
            found(&format!("{{name: quay.io/a, tag: v1, digest: {}}}", "b".repeat(64)))[..21],
            *"quay.io/a:v1@sha256:b"
        );
    }
}
