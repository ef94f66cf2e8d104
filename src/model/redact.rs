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

/// A text without the logins of its addresses: `https://user:password@host` becomes `https://…@host`.
pub fn without_logins(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let authority = after.find(|c: char| c.is_whitespace() || "/?#\"'<>".contains(c)).unwrap_or(after.len());
        rest = match after[..authority].rfind('@') {
            Some(login) => {
                out.push('…');
                &after[login..]
            }
            None => after,
        };
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::{shows_secret, without_logins};

    #[test]
    fn addresses_lose_their_logins() {
        for (text, expected) in [
            ("go to https://user:canary@host/x?a=1", "go to https://…@host/x?a=1"),
            ("http://canary@h \"https://u:can@ary@h/\"", "http://…@h \"https://…@h/\""),
            ("https://host/a@b and c@d", "https://host/a@b and c@d"),
            ("://", "://"),
            ("", ""),
        ] {
            assert_eq!(without_logins(text), expected, "{text}");
        }
    }

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
