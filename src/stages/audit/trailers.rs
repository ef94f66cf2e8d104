//! What a lock commit says of itself.

/// Trailers of a commit's message that can be checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trailers {
    /// `Larder-Manifests`: the digest of all manifests that the commit leads to.
    pub manifests: Option<String>,
    /// `Larder-Version`: the larder that made it.
    pub version: Option<String>,
}

impl Trailers {
    /// Reads the last paragraph of a message, where it is none but the subject; of several trailers with one name the
    /// last one counts, as for `git interpret-trailers`.
    pub fn of(message: &str) -> Self {
        let mut found = Self::default();
        let Some((_, last)) = message.trim_end().rsplit_once("\n\n") else { return found };
        for line in last.lines() {
            match line.split_once(": ") {
                Some(("Larder-Manifests", value)) => found.manifests = Some(value.trim().to_owned()),
                Some(("Larder-Version", value)) => found.version = Some(value.trim().to_owned()),
                _ => {}
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::Trailers;
    use crate::{
        model::{digest::Digest, lock::Lock},
        stages::lock::{
            message,
            testing::{answers, batch, change, environment},
            with_manifests,
        },
    };

    #[test]
    fn what_is_written_is_read() {
        let environments = batch([environment("research/geo", &["notebook=quay.io/a/b:1"])]);
        let change = change(&environments, &Lock::new(), &answers(&["quay.io/a/b:1=one"]));
        let digest = Digest::sha256(b"x");
        let text = with_manifests(&message(&change, "0.1.0"), &digest);
        assert!(text.ends_with(&format!("Larder-Version: 0.1.0\nLarder-Manifests: {digest}\n")), "{text}");
        let expected = Trailers { manifests: Some(digest.to_string()), version: Some("0.1.0".into()) };
        assert_eq!(Trailers::of(&text), expected);
        for text in ["", "Larder-Manifests: x", "a\n\nLarder-Manifests: x\n\nbody\n", "a\n\n Larder-Manifests: x"] {
            assert_eq!(Trailers::of(text), Trailers::default(), "{text}");
        }
    }
}
