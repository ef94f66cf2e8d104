//! Objects as YAML for people: `larder render`, diffs and target directories.

use serde::Serialize;
use serde_json::Value;

/// The value as block YAML with a final line break, keys sorted. Equal values give equal bytes.
///
/// Strings are quoted only where a YAML 1.1 or 1.2 reader would take them for something else, texts of several lines
/// are literal blocks, and no line is folded: an image reference stays on one line however long it is.
pub fn to_yaml(value: &Value) -> String {
    // JSON is YAML; nothing that a JSON value can hold is known to get here.
    write(&sorted(value)).unwrap_or_else(|| format!("{value:#}\n"))
}

/// The same with the fields in the value's own order; nothing for what YAML cannot hold.
pub fn to_ordered_yaml(value: &impl Serialize) -> String {
    write(value).unwrap_or_default()
}

fn write(value: &impl Serialize) -> Option<String> {
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    let mut text = String::new();
    serde_saphyr::to_fmt_writer_with_options(&mut text, value, options).ok()?;
    Some(text)
}

/// The value as JSON without white space, keys sorted: what digests are taken of.
pub fn to_canonical_json(value: &Value) -> String {
    sorted(value).to_string()
}

/// Keys in order, whatever map `serde_json` was built with: its feature `preserve_order` may be turned on by any crate.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            entries.sort_by(|(a, _), (b, _)| a.cmp(b));
            Value::Object(entries.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        scalar => scalar.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_read_like_kubernetes_manifests() {
        let image = format!("quay.io/jupyter/scipy-notebook:2026-11-02@sha256:{}", "0".repeat(64));
        let object = json!({
            "kind": "DaemonSet", "apiVersion": "apps/v1",
            "spec": {"containers": [{"image": image, "args": [], "name": "a"}], "empty": {}},
            "data": {"images.list": "a\nb"},
        });
        let expected = format!(
            "apiVersion: apps/v1\ndata:\n  images.list: |-\n    a\n    b\nkind: DaemonSet\nspec:\n  containers:\n  \
             - args: []\n    image: {image}\n    name: a\n  empty: {{}}\n"
        );
        assert_eq!(to_yaml(&object), expected);
    }

    #[test]
    fn strings_that_look_like_something_else_are_quoted() {
        let texts = [
            "yes",
            "no",
            "on",
            "y",
            "1.10",
            "0e1234",
            "1e5",
            "22:22",
            "2026-11-02",
            "~",
            "null",
            "",
            " x ",
            "- x",
            "a: b",
            "#c",
            "&a",
            "*a",
            "!!int 1",
            "%T",
            "'\"",
            "{{ 7*7 }}",
            "[x",
            "x\n",
            "\n",
            "x\ty",
            "\u{85}",
            "\u{2028}",
            "\u{feff}",
            "\u{7f}",
            "=",
            "<<",
            "0x1f",
            "1_000",
            "---",
            "...",
            "a\r\nb",
            "\u{0}",
            "ü",
        ];
        for text in texts {
            let value = json!({ "k": [text], text: 1 });
            let yaml = to_yaml(&value);
            let read: Value = serde_saphyr::from_str(&yaml).unwrap_or_else(|e| panic!("{text:?}: {yaml}: {e}"));
            assert_eq!(read, value, "{yaml}");
        }
        let plain = json!({"image": "docker.io/library/debian:13@sha256:00", "name": "image-pull-x", "percent": "10%"});
        assert!(!to_yaml(&plain).contains(['"', '\'']), "{}", to_yaml(&plain));
    }

    #[test]
    fn canonical_json_is_sorted_at_every_depth() {
        assert_eq!(
            to_canonical_json(&json!({"b": [{"d": 1, "c": 2}], "a": null})),
            r#"{"a":null,"b":[{"c":2,"d":1}]}"#
        );
    }
}
