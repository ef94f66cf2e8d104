//! Addresses as they may be shown. Where it is not sure what is a user, a password or a query, only scheme and host are.

/// What replaces a secret.
pub(super) const MASK: &str = "***";

/// A whole address, however it is written.
pub(super) fn address(text: &str) -> String {
    if text.split_once("://").is_some_and(|(scheme, _)| is_scheme(scheme)) {
        return url(text);
    }
    if let Some(scheme) = slashless_scheme(text) {
        return format!("{scheme}:{MASK}");
    }
    let (before, query) = cut(text, &['?']);
    match text.rsplit_once('@') {
        Some(_) if query => MASK.to_owned(),
        Some((user, host)) if user.contains([':', '%']) => format!("{MASK}@{}", cut(host, &['/', ':']).0),
        _ if query => format!("{before}?{MASK}"),
        _ => text.to_owned(),
    }
}

/// A URL: a user is masked, but for a bare one of ssh, which is not a secret (tokens are given in that place for http).
pub(super) fn url(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let (address, query) = cut(rest, &['?', '#']);
    let (authority, path) = address.split_at(cut(address, &['/', '\\']).0.len());
    match rest.rsplit_once('@') {
        Some(_) if query => format!("{scheme}://{MASK}"),
        // A password with an unencoded slash in it looks like a path.
        Some((_, host)) if path.contains('@') => format!("{scheme}://{MASK}@{}/{MASK}", cut(host, &['/', ':']).0),
        Some((user, host)) if user.contains([':', '%']) || scheme != "ssh" => format!("{scheme}://{MASK}@{host}"),
        Some(_) => text.to_owned(),
        // `user:password` whose `@` is missing or encoded.
        None if !port_is_number(authority) => format!("{scheme}://{}:{MASK}", cut(authority, &[':']).0),
        None if query => format!("{scheme}://{address}?{MASK}"),
        None => text.to_owned(),
    }
}

/// The scheme of an address that lacks the slashes after it, as in `https:/host/path`.
pub(super) fn slashless_scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once(':')?;
    let known = ["http", "https", "ssh", "file", "ftp", "ftps", "git"];
    let is_known = known.iter().any(|known| scheme.eq_ignore_ascii_case(known));
    // `git` alone may well be the name of an ssh host.
    let is_alias = scheme == "git" && !rest.starts_with('/');
    (is_known && !is_alias && !rest.starts_with("//") && !rest.starts_with(':')).then_some(scheme)
}

fn is_scheme(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
}

fn port_is_number(authority: &str) -> bool {
    let after_name = authority.rsplit_once(']').map_or(authority, |(_, rest)| rest);
    after_name.split_once(':').is_none_or(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()))
}

/// What stands before the first of these characters, and whether there is one.
fn cut<'a>(text: &'a str, at: &[char]) -> (&'a str, bool) {
    text.find(at).map_or((text, false), |at| (&text[..at], true))
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn addresses_are_shown_without_what_may_be_secret() {
        for (text, expected) in [
            ("https://h/x.git", "https://h/x.git"),
            ("https://h:8443/x.git", "https://h:8443/x.git"),
            ("http://[::1]:8080/x.git", "http://[::1]:8080/x.git"),
            ("ssh://git@h:22/x.git", "ssh://git@h:22/x.git"),
            ("git@h:team/x.git", "git@h:team/x.git"),
            ("./a@b", "./a@b"),
            ("/srv/x.git", "/srv/x.git"),
            ("https://canary@h/x.git", "https://***@h/x.git"),
            ("https://bob:canary@h/x.git", "https://***@h/x.git"),
            ("https://bob:canary/x@h/x.git", "https://***@h/***"),
            ("https://bob:can/ary@h:1/x", "https://***@h/***"),
            ("https://bob:can?ary@h/x", "https://***"),
            ("https://h/x.git?private_token=canary", "https://h/x.git?***"),
            ("https://h/x.git#canary", "https://h/x.git?***"),
            ("https://h/x?token=can@ary", "https://***"),
            ("https://bob:canary", "https://bob:***"),
            ("https://bob:canary%40h/x.git", "https://bob:***"),
            ("https:/bob:canary@h/x.git", "https:***"),
            ("HTTPS:bob:canary@h/x.git", "HTTPS:***"),
            ("ssh://git%3Acanary@h/x", "ssh://***@h/x"),
            ("bob:canary@h:x", "***@h"),
            ("bob:canary@h/x", "***@h"),
            ("bob:canary@h://x", "***@h"),
            ("git@h:x?token=canary", "***"),
            ("h:x?token=canary", "h:x?***"),
            ("foo::https://bob:canary@h/x", "***@h"),
            ("//bob:canary@h/x.git", "***@h"),
        ] {
            assert_eq!(address(text), expected, "{text}");
        }
    }
}
