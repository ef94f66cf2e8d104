//! Any text from outside: nothing unseen is left of it wherever it is shown, and quoted it is read back as it was.

#![no_main]

use larder::model::text::{is_unseen, lines, one_line, quoted, words};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let line = one_line(&text);
    assert!(!line.contains(is_unseen), "{line:?}");
    assert_eq!(line.chars().count(), text.chars().count());
    assert!(lines(&text).split('\n').all(|line| !line.contains(is_unseen)));
    let words = words(&text, 200);
    assert!(!words.contains(is_unseen) && words.chars().count() <= 201, "{words:?}");
    let quoted = quoted(&text);
    assert!(!quoted.contains(is_unseen), "{quoted:?}");
    let read: String = serde_saphyr::from_str(&quoted).unwrap_or_else(|error| panic!("{quoted:?}: {error}"));
    assert_eq!(read, text);
});
