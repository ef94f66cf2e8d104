//! Names for environments and images, from texts that people wrote.

use std::collections::{BTreeMap, BTreeSet};

/// The longest name in bytes; the object names that derive from it have 63.
const MAX: usize = 50;

/// A text as a name: lower case, words joined by dashes; none when nothing of it is left.
pub fn slug(text: &str) -> Option<String> {
    let mut slug = String::new();
    for c in text.chars() {
        match c.to_ascii_lowercase() {
            c if c.is_ascii_alphanumeric() => slug.push(c),
            _ if slug.ends_with('-') || slug.is_empty() => {}
            _ => slug.push('-'),
        }
    }
    if slug.len() > MAX {
        let end = slug[..MAX].rfind('-').filter(|end| *end > MAX / 2).unwrap_or(MAX);
        slug.truncate(end);
    }
    let slug = slug.trim_end_matches('-');
    (!slug.is_empty()).then(|| slug.to_owned())
}

/// Makes a name distinct from those taken, by a number behind it.
pub fn distinct(name: &str, taken: &mut BTreeSet<String>) -> String {
    let mut candidate = name.to_owned();
    let mut number = 2_usize;
    while !taken.insert(candidate.clone()) {
        candidate = format!("{name}-{number}");
        number += 1;
    }
    candidate
}

/// Distinct names for environments: where several want the same, each gets what it comes from in front, so that no name
/// depends on the order of the files.
pub fn qualify(wanted: &[(String, String)]) -> Vec<String> {
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, _) in wanted {
        *count.entry(name).or_default() += 1;
    }
    let sources: BTreeSet<&str> = wanted.iter().map(|(_, source)| source.as_str()).collect();
    let mut taken: BTreeSet<String> =
        wanted.iter().map(|(name, _)| name.clone()).filter(|name| count.get(name.as_str()) == Some(&1)).collect();
    wanted
        .iter()
        .map(|(name, source)| match count.get(name.as_str()) {
            Some(1) => name.clone(),
            _ if sources.len() > 1 => distinct(&format!("{source}-{name}"), &mut taken),
            _ => distinct(name, &mut taken),
        })
        .collect()
}

/// The name of what a file holds, from its own: `hub-a` of `config/hub-a.values.yaml`.
pub fn of_file(path: &str) -> String {
    let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let mut stem = file;
    for extension in [".yaml", ".yml", ".json", ".env", ".values", ".txt"] {
        stem = stem.strip_suffix(extension).unwrap_or(stem);
    }
    slug(stem).unwrap_or_else(|| "imported".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{of_file, qualify, slug};

    #[test]
    fn slugs() {
        let long = "a".repeat(80);
        for (text, expected) in [
            ("Small: 4 CPU, 32 GB", Some("small-4-cpu-32-gb")),
            ("ml_py", Some("ml-py")),
            ("00-base", Some("00-base")),
            ("NVIDIA Tesla T4, ~16 GB, ~4 CPUs", Some("nvidia-tesla-t4-16-gb-4-cpus")),
            ("--x--", Some("x")),
            ("Größe", Some("gr-e")),
            ("深い", None),
            ("", None),
            (long.as_str(), Some(&long[..50])),
            (
                "0.5 NVIDIA Tesla T4, about 1.5 CPU (about 8 GB CPU RAM) and more",
                Some("0-5-nvidia-tesla-t4-about-1-5-cpu-about-8-gb-cpu"),
            ),
        ] {
            assert_eq!(slug(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn names_do_not_depend_on_the_order() {
        let wanted = |list: &[(&str, &str)]| -> Vec<String> {
            qualify(&list.iter().map(|(name, source)| ((*name).to_owned(), (*source).to_owned())).collect::<Vec<_>>())
        };
        assert_eq!(wanted(&[("gpu", "a"), ("cpu", "a")]), ["gpu", "cpu"]);
        assert_eq!(wanted(&[("gpu", "a"), ("gpu", "b"), ("cpu", "b")]), ["a-gpu", "b-gpu", "cpu"]);
        assert_eq!(wanted(&[("gpu", "b"), ("gpu", "a")]), ["b-gpu", "a-gpu"]);
        assert_eq!(wanted(&[("gpu", "a"), ("gpu", "a"), ("gpu-2", "a")]), ["gpu", "gpu-3", "gpu-2"]);
    }

    #[test]
    fn files() {
        for (path, expected) in [
            ("config/hub-a.values.yaml", "hub-a"),
            ("-", "imported"),
            ("C:\\x\\Env.JSON", "env-json"),
            ("images.env", "images"),
        ] {
            assert_eq!(of_file(path), expected, "{path}");
        }
    }
}
