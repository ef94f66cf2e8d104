//! The file of an environment, as a person would write it.

use std::fmt::Write as _;

use crate::model::{
    environment::{Placement, Range, Toleration},
    text::{quoted, words},
};

use super::draft::Draft;

/// The longest comment, in characters.
const MAX_COMMENT: usize = 200;

/// Where a draft's nodes are named.
pub enum Pool {
    /// A pool of larder.yaml.
    Named(String),
    /// In the file itself.
    Inline(Placement),
}

/// Writes a draft's file.
pub fn file(draft: &Draft, pool: &Pool) -> String {
    let mut text = format!("# Imported from {}\n", words(&draft.origin, MAX_COMMENT));
    text += "apiVersion: larder.dev/v1alpha1\nkind: Environment\nspec:\n";
    let mut field = |key: &str, value: &Option<String>| {
        if let Some(value) = value {
            _ = writeln!(text, "  {key}: {}", scalar(value));
        }
    };
    field("displayName", &draft.display_name);
    field("description", &draft.description);
    text += "  images:\n";
    for image in &draft.images {
        if let Some(title) = &image.title {
            _ = writeln!(text, "    # {}", words(title, MAX_COMMENT));
        }
        _ = writeln!(text, "    - name: {}", scalar(&image.name));
        _ = writeln!(text, "      image: {}", scalar(&image.reference.to_string()));
        if let Some(secret) = &image.pull_secret {
            _ = writeln!(text, "      pullSecret: {}", scalar(secret));
        }
    }
    match pool {
        Pool::Named(name) => _ = writeln!(text, "  pool: {}", scalar(name)),
        Pool::Inline(placement) => placement_lines(&mut text, placement),
    }
    if let Some(refresh) = &draft.refresh {
        _ = writeln!(text, "  refresh: {}", scalar(refresh));
    }
    let puller = [("maxUnavailable", draft.max_unavailable.as_ref()), ("deadline", draft.deadline.as_ref())];
    flow(&mut text, "  puller", &puller);
    let ranges = [("memory", &draft.resources.memory), ("cpu", &draft.resources.cpu)];
    if ranges.iter().any(|(_, range)| range.is_some()) {
        text += "  resources:\n";
        for (key, range) in ranges {
            let Range { guarantee, limit } = range.clone().unwrap_or_default();
            flow(&mut text, &format!("    {key}"), &[("guarantee", guarantee.as_ref()), ("limit", limit.as_ref())]);
        }
    }
    text
}

fn flow(text: &mut String, key: &str, entries: &[(&str, Option<&String>)]) {
    let filled: Vec<String> =
        entries.iter().filter_map(|(key, value)| Some(format!("{key}: {}", scalar((*value)?)))).collect();
    if !filled.is_empty() {
        _ = writeln!(text, "{key}: {{{}}}", filled.join(", "));
    }
}

fn placement_lines(text: &mut String, placement: &Placement) {
    if !placement.node_selector.is_empty() {
        *text += "  nodeSelector:\n";
        for (key, value) in &placement.node_selector {
            _ = writeln!(text, "    {}: {}", scalar(key), scalar(value));
        }
    }
    if !placement.tolerations.is_empty() {
        *text += "  tolerations:\n";
        for toleration in &placement.tolerations {
            _ = writeln!(text, "    - {{{}}}", toleration_entries(toleration));
        }
    }
    if let Some(affinity) = &placement.affinity {
        // JSON is YAML too; its quotes keep each value the text that it is.
        _ = writeln!(text, "  affinity: {affinity}");
    }
}

fn toleration_entries(toleration: &Toleration) -> String {
    let texts = [
        ("key", &toleration.key),
        ("operator", &toleration.operator),
        ("value", &toleration.value),
        ("effect", &toleration.effect),
    ];
    let mut entries: Vec<String> =
        texts.iter().filter_map(|(key, value)| Some(format!("{key}: {}", scalar(value.as_ref()?)))).collect();
    entries.extend(toleration.toleration_seconds.map(|seconds| format!("tolerationSeconds: {seconds}")));
    entries.join(", ")
}

/// A text as a YAML scalar that each reader of YAML 1.1 and 1.2 takes for this very text, inside `{…}` too.
fn scalar(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { quoted(text) }
}

fn is_plain(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || "-_./@ %~+()=!?".contains(c);
    let colons = text
        .match_indices(':')
        .all(|(index, _)| text[index + 1..].chars().next().is_some_and(|next| next.is_ascii_alphanumeric()));
    let words = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic());
    let number_with_unit = {
        let digits = text.trim_start_matches(|c: char| c.is_ascii_digit());
        digits.len() < text.len() && matches!(digits, "h" | "m" | "s" | "%" | "M" | "G" | "Mi" | "Gi")
    };
    number_with_unit
        || (starts
            && text.chars().all(|c| inner(c) || c == ':')
            && !text.ends_with(' ')
            && colons
            && !words.iter().any(|word| word.eq_ignore_ascii_case(text)))
}

#[cfg(test)]
mod tests {
    use super::scalar;

    #[test]
    fn scalars_are_read_back_as_they_were() {
        let texts = [
            "Small",
            "Small: 4 CPU, 32 GB",
            "yes",
            "No",
            "1.10",
            "0x1f",
            "1e3",
            "12",
            "2h",
            "10%",
            "~",
            "",
            " a",
            "a ",
            "a # b",
            "a: b",
            "a:",
            "{a}",
            "- a",
            "quay.io/a/b:1.0",
            "localhost:5000/a:1",
            "sha256:00",
            "é",
            "\"quoted\"",
            "a\nb",
            "a\tb\u{7}",
            "\u{85}\u{2028}\u{feff}x",
            "1:30",
            "1_000",
            "!!str a",
            "&a",
            "*a",
            "NaN",
            ".inf",
            "2026-01-01",
            "<<",
            "=",
            "null",
            "Null",
            "it's",
            "a, b",
            "[a",
            "7.222G",
            "O'Reilly & co",
            "@x",
            "`x`",
            "?",
            "y",
            "back\\slash",
        ];
        for text in texts {
            for yaml in [format!("a: {}\n", scalar(text)), format!("{{a: {}, b: c}}\n", scalar(text))] {
                let read: std::collections::BTreeMap<String, serde_json::Value> =
                    serde_saphyr::from_str(&yaml).unwrap();
                assert_eq!(read["a"], serde_json::Value::String(text.to_owned()), "{yaml}");
            }
        }
    }
}
