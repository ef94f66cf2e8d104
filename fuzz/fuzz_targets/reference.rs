//! Any text as an image reference: what parses is written in one canonical way, which parses to the same.

#![no_main]

use larder::model::{digest::Digest, reference::ImageReference, text::is_unseen};
use libfuzzer_sys::fuzz_target;

const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fuzz_target!(|text: &str| {
    let reference = match text.parse::<ImageReference>() {
        Ok(reference) => reference,
        Err(error) => {
            assert!(!error.hint().is_empty() && !error.to_string().is_empty());
            return;
        }
    };
    let written = reference.to_string();
    assert!(!written.contains(|c: char| c.is_whitespace() || is_unseen(c)), "{written:?}");
    assert_eq!(written.parse::<ImageReference>().as_ref(), Ok(&reference), "{written:?}");
    for lint in reference.lints() {
        assert!(!lint.to_string().is_empty());
    }
    let digest: Digest = DIGEST.parse().expect("a digest");
    let pinned = reference.pinned(&digest);
    let again: ImageReference = pinned.parse().unwrap_or_else(|error| panic!("{pinned:?}: {error}"));
    assert_eq!(again.digest(), Some(&digest));
    assert_eq!(again.repository(), reference.repository());
});
