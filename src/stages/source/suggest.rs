//! "Did you mean …?"

/// The candidate that a word was probably meant to be.
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let distance = |candidate: &&str| strsim::osa_distance(&word, &candidate.to_lowercase());
    let limit = word.chars().count() / 3;
    candidates.into_iter().map(|c| (distance(&c), c)).filter(|(d, _)| *d <= limit).min().map(|(_, c)| c)
}

/// A hint that lists what is allowed, with the probable one in front.
pub fn hint<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str> + Clone) -> String {
    let list: Vec<&str> = candidates.clone().into_iter().collect();
    let allowed = format!("allowed here: {}", list.join(", "));
    match closest(word, candidates) {
        Some(candidate) => format!("did you mean `{candidate}`? {allowed}"),
        None => allowed,
    }
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn the_closest_candidate_is_found() {
        let fields = ["image", "name", "pullSecret"];
        for (word, expected) in [
            ("imgae", Some("image")),
            ("Image", Some("image")),
            ("pull_secret", Some("pullSecret")),
            ("pullsecret", Some("pullSecret")),
            ("x", None),
            ("NAME", Some("name")),
            ("", None),
            ("metadata", None),
        ] {
            assert_eq!(closest(word, fields), expected, "{word}");
        }
    }
}
