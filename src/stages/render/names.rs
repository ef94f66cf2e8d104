//! Names of objects and containers: a readable slug, and a hash wherever the slug is not the identity.

use sha2::{Digest as _, Sha256};

use crate::model::{
    digest::Digest,
    name::{EnvironmentId, Name},
};

/// The instance that a cluster with one larder has; its names need no hash.
pub const DEFAULT_INSTANCE: &str = "default";

/// The longest name of an object, in bytes.
///
/// Kubernetes derives longer ones from a DaemonSet's: its pods' (`-` and 5 characters), whose name is also their host
/// name of at most 63, and its controller revisions' (`-` and up to 10).
pub const MAX_OBJECT: usize = 63 - 11;

/// The longest slug of an image, in bytes: a container's or volume's name is `image-pull-` and this, of at most 63.
pub const MAX_IMAGE: usize = 63 - 11;

/// The name of an environment's ServiceAccount.
pub fn service_account(instance: &str, id: &EnvironmentId) -> String {
    daemon_set(instance, id, 0)
}

/// The name of an environment's puller; the first shard is named as a puller that is not split.
pub fn daemon_set(instance: &str, id: &EnvironmentId, shard: usize) -> String {
    let (tenant, name, number) = (id.tenant.as_str(), id.name.as_str(), shard.to_string());
    if instance == DEFAULT_INSTANCE && shard == 0 {
        return named("larder-", name, &[instance, tenant, name], MAX_OBJECT);
    }
    let (slug, hash) = (slug(name), short_hash(&[instance, tenant, name, &number]));
    let suffix = if shard == 0 { hash } else { format!("{number}-{hash}") };
    format!("larder-{}", joined(&slug, &suffix, MAX_OBJECT - "larder-".len()))
}

/// The value of the one label of a puller's selector: 16 hexadecimal digits of what can never change.
pub fn selector(instance: &str, id: &EnvironmentId, shard: usize) -> String {
    hash(&[instance, id.tenant.as_str(), id.name.as_str(), &shard.to_string()])[..16].to_owned()
}

/// The slug of an image for containers and volumes, unique in its environment.
pub fn image(name: &Name) -> String {
    named("", name.as_str(), &[name.as_str()], MAX_IMAGE)
}

/// The slug of a previous digest of an image.
pub fn former_image(name: &Name, digest: &Digest) -> String {
    joined(&slug(name.as_str()), &short_hash(&[name.as_str(), digest.as_str()]), MAX_IMAGE)
}

/// Whether the text can be the value of a label, as an instance must.
///
/// Source: <https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set>.
pub fn is_label_value(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let ends =
        text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.ends_with(|c: char| c.is_ascii_alphanumeric());
    text.len() <= 63 && ends && text.chars().all(inner)
}

/// The text itself where it is a fitting slug, else its slug and a hash of `identity`.
///
/// A text that ends like a hash gets one as well, so that no name can be made to look like another's.
fn named(prefix: &str, text: &str, identity: &[&str], max: usize) -> String {
    let (slug, room) = (slug(text), max - prefix.len());
    if slug == text && text.len() <= room && !ends_like_a_hash(text) {
        return format!("{prefix}{text}");
    }
    format!("{prefix}{}", joined(&slug, &short_hash(identity), room))
}

/// `slug-suffix`, the slug cut to fit and to end with a letter or digit.
fn joined(slug: &str, suffix: &str, max: usize) -> String {
    let room = max.saturating_sub(suffix.len() + 1).min(slug.len());
    // A slug is ASCII, so any index is a boundary.
    match slug[..room].trim_end_matches('-') {
        "" => suffix.to_owned(),
        kept => format!("{kept}-{suffix}"),
    }
}

/// Lower-case ASCII letters and digits; everything between them is one dash.
fn slug(text: &str) -> String {
    let mut slug = String::with_capacity(text.len());
    for c in text.chars() {
        match c.to_ascii_lowercase() {
            c if c.is_ascii_alphanumeric() => slug.push(c),
            _ if slug.is_empty() || slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    slug.truncate(slug.trim_end_matches('-').len());
    slug
}

fn ends_like_a_hash(text: &str) -> bool {
    let end = text.rsplit('-').next().unwrap_or_default();
    end.len() == 8 && end.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn short_hash(identity: &[&str]) -> String {
    hash(identity)[..8].to_owned()
}

/// 64 hexadecimal digits. Parts are told apart by a byte that no name holds.
fn hash(identity: &[&str]) -> String {
    Sha256::digest(identity.join("\0")).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn id(text: &str) -> EnvironmentId {
        text.parse().unwrap()
    }

    /// The rules of a DNS-1123 label, which fits every place where these names go.
    fn is_dns_label(text: &str) -> bool {
        let ok = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !text.is_empty() && text.len() <= 63 && text.chars().all(ok) && !text.starts_with('-') && !text.ends_with('-')
    }

    // valid, unique, stable.
    #[test]
    fn environment_names_become_valid_unique_object_names() {
        let long = "a".repeat(63);
        let names = [
            long.clone(),
            format!("{long}a"),
            format!("{}-x", "a".repeat(62)),
            format!("{}b", "a".repeat(50)),
            format!("{}c", "a".repeat(50)),
            format!("{}-{}", "a".repeat(35), "b".repeat(40)),
            "-a-".into(),
            "a".into(),
            "A_x".into(),
            "a_x".into(),
            "a-x".into(),
            "a.x".into(),
            "ünï".into(),
            "ser--73506260".into(),
            "ser-73506260".into(),
            "üser".into(),
            "ser".into(),
            "123".into(),
            "con".into(),
            "日本".into(),
            "--".into(),
        ];
        let mut seen = BTreeSet::new();
        for name in &names {
            for instance in ["default", "staging"] {
                for shard in 0..3 {
                    let object = daemon_set(instance, &id(name), shard);
                    assert!(is_dns_label(&object) && object.len() <= MAX_OBJECT, "{name}: {object}");
                    // A pod's name is its host name as well.
                    assert!(is_dns_label(&format!("{object}-abcde")) && format!("{object}-0123456789").len() <= 63);
                    assert!(seen.insert(object.clone()), "{name} is named {object} as another is");
                    let label = selector(instance, &id(name), shard);
                    assert!(is_label_value(&label) && seen.insert(label));
                }
            }
            let image = image(&name.parse().unwrap());
            assert!(is_dns_label(&format!("image-pull-{image}")), "{image}");
        }
    }

    #[test]
    fn plain_names_stay_as_they_are() {
        for (name, object) in [("geospatial", "larder-geospatial"), ("123", "larder-123"), ("a-x", "larder-a-x")] {
            assert_eq!(daemon_set(DEFAULT_INSTANCE, &id(name), 0), object);
        }
        assert_eq!(image(&"notebook".parse().unwrap()), "notebook");
        // Stable forever: these are names of live objects.
        assert_eq!(daemon_set(DEFAULT_INSTANCE, &id("research/A_x"), 0), "larder-a-x-016314f7");
        assert_eq!(daemon_set("staging", &id("research/geo"), 0), "larder-geo-170beaec");
        assert_eq!(daemon_set(DEFAULT_INSTANCE, &id("research/geo"), 2), "larder-geo-2-c7796827");
        assert_eq!(selector(DEFAULT_INSTANCE, &id("research/geo"), 0), "d7f06c3c3891cf91");
    }

    // "Py_R Geo.v2", 60 × "a"; another instance has other names.
    #[test]
    fn image_names_become_container_names() {
        for (name, start) in [("Py_R Geo.v2", "py-r-geo-v2-"), ("-a-", "a-"), ("ML", "ml-")] {
            let slug = image(&name.parse().unwrap());
            assert!(slug.starts_with(start) && slug.len() == start.len() + 8, "{slug}");
        }
        assert_eq!(image(&"a".repeat(60).parse().unwrap()).len(), MAX_IMAGE);
        let name: Name = "notebook".parse().unwrap();
        let (one, two) = (Digest::sha256(b"1"), Digest::sha256(b"2"));
        assert_ne!(former_image(&name, &one), former_image(&name, &two));
        // Looks like a previous digest's name, and gets a hash of its own.
        let imitation: Name = former_image(&name, &one).parse().unwrap();
        assert_ne!(image(&imitation), former_image(&name, &one));
    }

    // labels: "1", "no", 64 characters, trailing "-".
    #[test]
    fn label_values_are_recognised() {
        for good in ["1", "no", "a", "a-b_c.d"] {
            assert!(is_label_value(good), "{good}");
        }
        for bad in ["", "a-", "-a", "a b", "ü", &"a".repeat(64)] {
            assert!(!is_label_value(bad), "{bad}");
        }
    }

    // "" and ".." never get here.
    #[test]
    fn names_that_are_none_do_not_parse() {
        for bad in ["", "..", ".", "a/b/c"] {
            assert!(bad.parse::<EnvironmentId>().is_err(), "{bad}");
        }
    }
}
