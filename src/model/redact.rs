//! Whether a text shows a secret, so that nothing repeats it.

/// The words in a line that announce a secret, in lower case.
const ANNOUNCEMENTS: [&str; 6] = ["password", "passwd", "token", "auth:", "auth\"", "authspec"];

/// Whether a text holds a user with a password, as addresses do: `user:password@host`. A digest behind a tag,
/// `app:1@sha256:…`, is none.
pub fn holds_user(text: &str) -> bool {
    text.split('@').zip(text.split('@').skip(1)).any(|(before, after)| {
        let user = before.rsplit(['/', ' ', '"', '\'']).next().unwrap_or_default();
        user.contains(':') && !after.starts_with("sha256:") && !after.starts_with("sha512:")
    })
}

/// Whether a line of a file names a password, or holds one in an address.
pub fn shows_secret(line: &str) -> bool {
    let lower = line.to_lowercase();
    holds_user(line) || ANNOUNCEMENTS.iter().any(|word| lower.contains(word))
}

#[cfg(test)]
mod tests {
    use super::shows_secret;

    #[test]
    fn secrets_are_seen() {
        for (line, expected) in [
            ("image: user:canary@example.com/app", true),
            ("image: \"user:canary@example.com/app:1@sha256:00\"", true),
            ("mirrors: [https://user:canary@example.com]", true),
            ("password: canary", true),
            ("{auth: {Token: canary}}", true),
            ("image: app:1", false),
            ("image: example.com:5000/app:1@sha256:00", false),
            ("image: app@sha512:00", false),
            ("pullSecret: quay-pull", false),
            ("description: ask a@b.example", false),
        ] {
            assert_eq!(shows_secret(line), expected, "{line}");
        }
    }
}
