//! Lockfiles exactly as larder writes them, read line by line: a history holds tens of thousands of them, and a YAML
//! reader needs twenty times as long. Whatever looks different in the least is left to that reader.

use std::{ops::Range, str::FromStr, sync::Arc};

use super::{API_VERSION, HEADER, Images, KIND, images::Image};
use crate::model::{
    lock::{Hold, HoldOrigin, LockedImage, Previous},
    name::Name,
    reference::ImageReference,
    resolution::PlatformManifest,
};

/// The images, if these bytes are a lockfile in the very form of [`super::write`] that needs no
/// escapes. Then they are what [`super::read::parse`] gives too. An image that stands in the same lines in
/// the file `beside` it, whose bytes come first, is not read again.
pub(super) fn read(bytes: &[u8], beside: Option<(&[u8], &Images)>) -> Option<Images> {
    let mut lines = Lines { rest: std::str::from_utf8(bytes).ok()? };
    lines.take(HEADER, "")?;
    (lines.take("apiVersion: ", "")? == API_VERSION && lines.take("kind: ", "")? == KIND).then_some(())?;
    let mut images: Vec<Image> = Vec::new();
    if lines.take("images: {}", "").is_none() {
        lines.take("images:", "").filter(|rest| rest.is_empty())?;
        while !lines.rest.is_empty() {
            let start = bytes.len() - lines.rest.len();
            let (name, entry) = match beside.and_then(|(bytes, images)| lines.known(bytes, images)) {
                Some(known) => known,
                None => (lines.value::<Name>("  \"", "\":")?, Arc::new(lines.image()?)),
            };
            // Twice the same name is an error, and the YAML reader words it.
            images.last().is_none_or(|last| last.name < name).then_some(())?;
            images.push(Image { name, entry, place: start..bytes.len() - lines.rest.len() });
        }
        (!images.is_empty()).then_some(())?;
    }
    lines.rest.is_empty().then_some(Images(images))
}

struct Lines<'a> {
    rest: &'a str,
}

impl<'a> Lines<'a> {
    /// The next image, if the other file has the same lines for it.
    fn known(&mut self, bytes: &[u8], images: &Images) -> Option<(Name, Arc<LockedImage>)> {
        let rest = |place: &Range<usize>| self.rest.as_bytes().strip_prefix(bytes.get(place.clone())?);
        let is_whole = |rest: &[u8]| rest.is_empty() || rest.starts_with(b"  \"");
        let is_here = |image: &&Image| !image.place.is_empty() && rest(&image.place).is_some_and(is_whole);
        let image = images.0.iter().find(is_here)?;
        self.rest = self.rest.get(image.place.len()..)?;
        Some((image.name.clone(), image.entry.clone()))
    }

    /// What the next line has between `start` and `end`; the line is passed only if it has both.
    fn take(&mut self, start: &str, end: &str) -> Option<&'a str> {
        let (line, rest) = self.rest.split_once('\n')?;
        let between = line.strip_prefix(start)?.strip_suffix(end)?;
        self.rest = rest;
        Some(between)
    }

    /// A quoted text without escapes.
    fn text(&mut self, start: &str, end: &str) -> Option<&'a str> {
        self.take(start, end).filter(|text| text.bytes().all(|b| matches!(b, b' '..=b'~') && b != b'"' && b != b'\\'))
    }

    fn value<T: FromStr>(&mut self, start: &str, end: &str) -> Option<T> {
        self.text(start, end)?.parse().ok()
    }

    fn image(&mut self) -> Option<LockedImage> {
        let mut image = LockedImage {
            reference: self.value("    reference: \"", "\"")?,
            digest: self.value("    digest: \"", "\"")?,
            media_type: self.text("    mediaType: \"", "\"")?.to_owned(),
            platforms: Vec::new(),
            previous: Vec::new(),
            hold: None,
        };
        if self.list("    platforms:")? {
            while self.rest.starts_with("      - platform") {
                image.platforms.push(PlatformManifest {
                    platform: self.value("      - platform: \"", "\"")?,
                    digest: self.value("        digest: \"", "\"")?,
                    size: self.size()?,
                });
            }
            (!image.platforms.is_empty()).then_some(())?;
        }
        if self.list("    previous:")? {
            while self.rest.starts_with("      - reference") {
                image.previous.push(Previous {
                    reference: self.value("      - reference: \"", "\"")?,
                    digest: self.value("        digest: \"", "\"")?,
                });
            }
            (!image.previous.is_empty()).then_some(())?;
        }
        if self.rest.starts_with("    hold") {
            image.hold = Some(self.hold(&image.reference)?);
        }
        Some(image)
    }

    fn hold(&mut self, reference: &ImageReference) -> Option<Hold> {
        if let Some(reason) = self.text("    hold: \"", "\"") {
            return Some(Hold::of_person(reason));
        }
        self.take("    hold:", "").filter(|rest| rest.is_empty())?;
        let reason = self.text("      reason: \"", "\"")?.to_owned();
        let origin = match self.text("      origin: \"", "\"")? {
            "person" => HoldOrigin::Person,
            "revert" if self.rest.starts_with("      insteadOf") => {
                HoldOrigin::Revert { instead_of: self.value("      insteadOf: \"", "\"")? }
            }
            "revert" => HoldOrigin::Revert { instead_of: reference.clone() },
            _ => return None,
        };
        let until = match self.rest.starts_with("      until") {
            true => Some(self.value("      until: \"", "\"")?),
            false => None,
        };
        Some(Hold { reason, origin, until })
    }

    /// Whether a list with this head follows; none where something else stands in the head's line.
    fn list(&mut self, head: &str) -> Option<bool> {
        if !self.rest.starts_with(head) {
            return Some(false);
        }
        self.take(head, "").filter(|rest| rest.is_empty()).map(|_| true)
    }

    /// The outer none: something that this reader does not know.
    fn size(&mut self) -> Option<Option<u64>> {
        if !self.rest.starts_with("        size") {
            return Some(None);
        }
        let digits = self.take("        size: ", "")?;
        let plain = digits.bytes().all(|b| b.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
        plain.then(|| digits.parse().ok())?.map(Some)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::{
        model::lock::Lockfile,
        stages::{
            lock::testing::{answers, batch, environment, locked, lockfile},
            lockfile::{read::parse, write},
        },
    };

    fn read(bytes: &[u8]) -> Option<Lockfile> {
        super::read(bytes, None).map(|images| lockfile_of(&images))
    }

    fn lockfile_of(images: &super::Images) -> Lockfile {
        Lockfile { images: images.iter().map(|(name, image)| (name.clone(), image.clone())).collect() }
    }

    fn example() -> Vec<u8> {
        let environments =
            batch([environment("research/b", &["a=quay.io/x/a:1", "b=quay.io/x/b:2@sha256:0"].as_slice()[..1])]);
        let one = locked(&environments, &answers(&["quay.io/x/a:1=one"]));
        let two = crate::stages::lock::testing::change(&environments, &one, &answers(&["quay.io/x/a:1=two"])).lock;
        let mut file = lockfile(&two, "research/b").clone();
        let mut held = file.images.values().next().unwrap().clone();
        held.hold = Some(crate::model::lock::Hold::of_person("reverted by a person"));
        file.images.insert("b".parse().unwrap(), held.clone());
        let instead_of = "quay.io/x/a:2".parse().unwrap();
        let origin = crate::model::lock::HoldOrigin::Revert { instead_of };
        held.hold = Some(crate::model::lock::Hold { reason: "exam".into(), origin, until: "2026-12-04".parse().ok() });
        file.images.insert("c".parse().unwrap(), held);
        write(&file)
    }

    #[test]
    fn what_larder_writes_is_read() {
        let bytes = example();
        assert_eq!(read(&bytes), Some(parse("p", &bytes).unwrap()));
        let empty = write(&crate::model::lock::Lockfile::default());
        assert_eq!(read(&empty), Some(parse("p", &empty).unwrap()));
    }

    #[test]
    fn what_looks_different_is_left_to_the_yaml_reader() {
        let text = String::from_utf8(example()).unwrap();
        for (from, to) in [
            ("reason: \"rev", "reason: \"\\u0072ev"),
            ("until: \"2026-12-04", "until: \"2026-12-4"),
            ("origin: \"person", "origin: \"other"),
            ("size: ", "size: 0"),
            ("  \"b\":", "  \"a\":"),
            ("  \"b\":", "  b:"),
            ("images:", "images: # these"),
            ("platforms:", "platforms: []"),
            ("kind: Lockfile", "kind: Other"),
            ("    hold", "    unknown: 1\n    hold"),
            ("# Generated", "<<<<<<< ours\n# Generated"),
        ] {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text, "{from}");
            assert_eq!(read(changed.as_bytes()), None, "{from} → {to}");
        }
        assert_eq!(read(text.trim_end().as_bytes()), None);
    }

    proptest! {
        /// Whatever is done to a lockfile: what is read fast is what the YAML reader reads.
        #[test]
        fn it_never_differs_from_the_yaml_reader(edits in proptest::collection::vec((0..2000usize, 0..4usize, "[ -~\n]{0,3}"), 1..3)) {
            let mut bytes = example();
            for (at, cut, insert) in edits {
                let at = at % bytes.len();
                let end = (at + cut).min(bytes.len());
                bytes.splice(at..end, insert.bytes());
            }
            let example = example();
            let beside = super::read(&example, None).unwrap();
            let found = [read(&bytes), super::read(&bytes, Some((&example, &beside))).map(|images| lockfile_of(&images))];
            prop_assert_eq!(&found[0], &found[1]);
            if let [Some(fast), _] = found {
                prop_assert_eq!(Ok(fast), parse("p", &bytes));
            }
        }
    }
}
