//! The bytes of lockfiles.

use jiff::civil::date;
use proptest::{collection::vec, option, prelude::*};

use super::{HEADER, parse, write};
use crate::{
    model::{
        lock::{Hold, HoldOrigin, LockedImage, Lockfile, Previous},
        resolution::PlatformManifest,
    },
    stages::lock::testing::{digest, index, name},
};

const PATH: &str = "lock/research/geo.yaml";
const CASE: &str = include_str!("../../../tests/cases/lock/lockfile.yaml");

fn entry(reference: &str, word: &str) -> LockedImage {
    let resolved = index(word, &["linux/amd64"]);
    let evidence = resolved.evidence.unwrap();
    LockedImage {
        reference: reference.parse().unwrap(),
        digest: resolved.digest,
        media_type: evidence.media_type,
        platforms: evidence.platforms,
        previous: vec![],
        hold: None,
    }
}

fn case() -> Lockfile {
    let mut notebook = entry("quay.io/jupyter/scipy-notebook:2026-11-09", "two");
    let former = "quay.io/jupyter/scipy-notebook:2026-11-02".parse().unwrap();
    notebook.previous = vec![Previous { reference: former, digest: digest("one") }];
    let hold = Hold::of_person("reverted by a person: \"2026-11-16\" was broken\u{85}");
    notebook.hold = Some(Hold { until: Some(date(2026, 12, 4)), ..hold });
    let bare = |reference: &str, word: &str, media_type: &str| LockedImage {
        platforms: vec![],
        media_type: media_type.to_owned(),
        ..entry(reference, word)
    };
    let images = [
        (name("notebook"), notebook),
        (name("1.10"), bare("c:0e1234", "three", "application/vnd.oci.image.manifest.v1+json")),
        (name("yes"), bare("127.0.0.1:5000/a:22_22", "one", "no")),
    ];
    Lockfile { images: images.into() }
}

#[test]
fn a_lockfile_is_written_like_this() {
    assert_eq!(String::from_utf8(write(&case())).unwrap(), CASE);
    assert_eq!(parse(PATH, CASE.as_bytes()).unwrap(), case());
    let empty = Lockfile::default();
    assert_eq!(parse(PATH, &write(&empty)).unwrap(), empty);
}

// Line ends and layout are not read as a change.
#[test]
fn another_layout_means_the_same() {
    let crlf = CASE.replace('\n', "\r\n");
    let bom = format!("\u{feff}{CASE}");
    let unquoted = CASE.replace("\"linux/amd64\"", "linux/amd64  # a comment").replace("\nimages:", "\n\nimages:");
    for text in [crlf, bom, unquoted] {
        assert_eq!(parse(PATH, text.as_bytes()).unwrap(), case(), "{text}");
    }
}

/// Whether every scalar that a reader could take for something else than a string is quoted; only sizes are numbers.
fn is_quoted(text: &str) -> bool {
    let mut lines = text.lines();
    let head = [HEADER, "apiVersion: larder.dev/v1alpha1", "kind: Lockfile"];
    head.iter().all(|&line| lines.next() == Some(line))
        && lines.all(|line| {
            let line = line.trim_start().trim_start_matches("- ");
            let (key, value) =
                if let Some(rest) = line.strip_prefix('"') { (rest, "") } else { line.split_once(':').unwrap() };
            let value = value.trim();
            value.is_empty()
                || value == "{}"
                || value.starts_with('"')
                || (key == "size" && value.parse::<u64>().is_ok())
        })
}

// What 1.1 or 1.2 readers would type comes back as the text that it was.
#[test]
fn tags_and_names_stay_texts() {
    let tags = [
        "0e1234",
        "12345e6",
        "29111998",
        "007",
        "0o17",
        "0x1f",
        "1_000",
        "null",
        "2024-01-05",
        "1.10",
        "no",
        "y",
        "on",
        "22_22",
        "01443e5",
        "1e3",
        ".inf",
        "~",
        "true",
    ];
    let mut lockfile = Lockfile::default();
    for tag in tags {
        if let Ok(reference) = format!("quay.io/a/b:{tag}").parse() {
            lockfile.images.insert(name("tag"), LockedImage { reference, ..entry("a", "one") });
        }
        let Ok(image) = tag.parse() else { continue };
        lockfile.images.insert(image, entry("a", "one"));
        let bytes = write(&lockfile);
        assert!(is_quoted(std::str::from_utf8(&bytes).unwrap()));
        assert_eq!(parse(PATH, &bytes).unwrap(), lockfile, "{tag}");
    }
}

#[test]
fn what_is_no_lockfile_is_an_error_with_a_place() {
    let digest = digest("two").to_string();
    let replaced = |from: &str, to: &str| {
        assert!(CASE.contains(from), "{from}");
        CASE.replacen(from, to, 1)
    };
    let cases = [
        (String::new(), "lock/research/geo.yaml", "delete the file: larder writes it again"),
        (replaced("images:", "imags:"), "4:1", "imags"),
        (replaced("  \"notebook\":", "<<<<<<< ours\n  \"notebook\":"), "9", "take either side or delete the file"),
        (replaced("  \"notebook\":", "=======\n  \"notebook\":"), "9", "conflict markers"),
        (replaced("v1alpha1", "v1beta1"), "2", "a newer larder wrote it"),
        (replaced("v1alpha1\n", "v2\nnews: {a: 1}\n"), "2", "\"larder.dev/v2\""),
        (replaced("Lockfile", "Environment"), "3", "has the kind `Lockfile`, not \"Environment\""),
        (replaced(&digest, "sha256:abc"), "11:13", "64 hexadecimal digits, not 3"),
        (replaced("quay.io/jupyter/scipy-notebook:2026-11-09", "quay.io/Jupyter/x"), "10:16", "Jupyter"),
        (replaced("linux/amd64", "linux"), "14:", "`linux` is not a valid platform"),
        (replaced("size: 1003", "size: -1"), "16:15", ""),
        (replaced("\"yes\"", "\"notebook\""), "24:", "notebook"),
        (replaced("\"yes\"", "\"a/b\""), "24:", "not allowed in a name"),
        (replaced("    hold:", "    helt:"), "20:5", "helt"),
        (replaced("\"person\"", "\"larder\""), "22:15", "revert"),
        (replaced("2026-12-04", "2026-12-32"), "23:14", ""),
        (replaced("      reason:", "      reasons:"), "21:7", "reasons"),
        (replaced("    mediaType", "\tmediaType"), "8", ""),
        (format!("{CASE}---\n{CASE}"), "", ""),
        (replaced("    mediaType: \"no\"\n", ""), "", "mediaType"),
        ("- a\n".to_owned(), "", ""),
    ];
    for (text, place, message) in cases {
        let failure = parse(PATH, text.as_bytes()).unwrap_err();
        let shown = failure.to_string();
        let location = failure.problems()[0].location.as_ref().unwrap().to_string();
        assert!(location.starts_with(PATH), "{shown}");
        let place =
            if place.is_empty() || place.starts_with("lock") { String::new() } else { format!("{PATH}:{place}") };
        assert!(location.starts_with(&place), "{location} {place}: {shown}");
        assert!(shown.contains(message), "{message}: {shown}");
        assert!(!shown.contains('\n'), "one line: {shown}");
    }
    let failure = parse(PATH, b"images:\n  \xff: 1\n").unwrap_err();
    assert!(failure.to_string().starts_with("lock/research/geo.yaml:2: the lockfile is no UTF-8"), "{failure}");
}

fn lockfiles() -> impl Strategy<Value = Lockfile> {
    let word = prop_oneof!["[a-z]{1,8}", "[0-9]{1,8}", "[0-9]e[0-9]{1,4}", "[A-Za-z0-9_][A-Za-z0-9_.-]{0,20}"];
    let names = prop_oneof![word.clone(), "\\PC{1,20}"].prop_filter_map("no name", |text| text.parse().ok());
    let references = word.prop_filter_map("no reference", |tag| format!("quay.io/a/b:{tag}").parse().ok());
    let platforms = prop_oneof![Just("linux/amd64"), Just("linux/arm/v7"), Just("windows/amd64")];
    let platform = (platforms, any::<u32>(), any::<Option<u64>>()).prop_map(|(platform, word, size)| {
        PlatformManifest { platform: platform.parse().unwrap(), digest: digest(&word.to_string()), size }
    });
    let previous = (references.clone(), any::<u32>())
        .prop_map(|(reference, word)| Previous { reference, digest: digest(&word.to_string()) });
    let texts = || prop_oneof!["\\PC{0,30}", any::<String>()];
    let origin = prop_oneof![
        Just(HoldOrigin::Person),
        references.clone().prop_map(|instead_of| HoldOrigin::Revert { instead_of }),
    ];
    let until = option::of((1900..2300i16, 1..13i8, 1..29i8).prop_map(|(year, month, day)| date(year, month, day)));
    let hold = (texts(), origin, until).prop_map(|(reason, origin, until)| Hold { reason, origin, until });
    let image = (references, any::<u32>(), texts(), vec(platform, 0..3), vec(previous, 0..3), option::of(hold))
        .prop_map(|(reference, word, media_type, platforms, previous, hold)| LockedImage {
            reference,
            digest: digest(&word.to_string()),
            media_type,
            platforms,
            previous,
            hold,
        });
    proptest::collection::btree_map(names, image, 0..5).prop_map(|images| Lockfile { images })
}

/// A string alone is what larder wrote before holds had an origin.
#[test]
fn a_reason_alone_is_a_persons_hold() {
    let from = CASE.find("    hold:").unwrap();
    let to = CASE.find("  \"yes\"").unwrap();
    let text = format!("{}    hold: \"exam\"\n{}", &CASE[..from], &CASE[to..]);
    let lockfile = parse(PATH, text.as_bytes()).unwrap();
    assert_eq!(lockfile.images[&name("notebook")].hold, Some(Hold::of_person("exam")));
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(lockfile in lockfiles()) {
        let bytes = write(&lockfile);
        let read = parse(PATH, &bytes);
        prop_assert_eq!(read.as_ref(), Ok(&lockfile), "{}", String::from_utf8_lossy(&bytes));
        prop_assert_eq!(write(&read.unwrap()), bytes);
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in vec(any::<u8>(), 0..200), at in any::<prop::sample::Index>()) {
        let mut text = CASE.as_bytes().to_vec();
        let at = at.index(text.len());
        text.splice(at..(at + bytes.len() / 2).min(CASE.len()), bytes.iter().copied());
        let _ = (parse(PATH, &bytes), parse(PATH, &text));
    }
}
