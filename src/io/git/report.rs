//! What a remote reports about a push, reference by reference (`report-status`).
//!
//! Source: <https://git-scm.com/docs/gitprotocol-pack#_report_status>.

/// What became of the one reference of a push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was moved.
    Moved,
    /// It was not, for this reason.
    Rejected(String),
    /// The report does not speak of it.
    Unknown,
}

/// Reads a report: `unpack …`, then `ok <ref>` or `ng <ref> <reason>`.
pub(super) fn parse(lines: &[String], reference: &str) -> Outcome {
    for line in lines {
        let line = line.trim_end();
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "unpack" if rest != "ok" => return Outcome::Rejected(format!("unpack failed: {rest}")),
            "ok" if rest.split(' ').next() == Some(reference) => return Outcome::Moved,
            "ng" => match rest.split_once(' ') {
                Some((name, reason)) if name == reference => return Outcome::Rejected(reason.to_owned()),
                None if rest == reference => return Outcome::Rejected("no reason given".into()),
                _ => {}
            },
            _ => {}
        }
    }
    Outcome::Unknown
}

/// Splits bytes into packet lines, up to a flush; what is not a packet line ends it.
pub(super) fn lines(mut bytes: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some((head, _)) = bytes.split_first_chunk::<4>() {
        let length = std::str::from_utf8(head).ok().and_then(|hex| usize::from_str_radix(hex, 16).ok());
        match length {
            Some(length) if length >= 4 && length <= bytes.len() => {
                lines.push(String::from_utf8_lossy(&bytes[4..length]).into_owned());
                bytes = &bytes[length..];
            }
            _ => break,
        }
    }
    lines
}

/// Whether a rejection means that someone else was faster. `text` is the reason with the remote's other words.
pub(super) fn is_race(text: &str) -> bool {
    const WORDS: [&str; 10] = [
        "non-fast-forward",
        "fetch first",
        "stale info",
        "cannot lock ref",
        "failed to lock",
        "unable to lock",
        "but expected",
        "reference already exists",
        "incorrect old value",
        "remote ref updated",
    ];
    let text = text.to_ascii_lowercase();
    !is_declined(&text) && WORDS.iter().any(|words| text.contains(words))
}

/// Whether a rejection is someone's will: a hook's or a rule's.
pub(super) fn is_declined(text: &str) -> bool {
    const WORDS: [&str; 6] =
        ["declined", "protected branch", "prohibited", "deny updating", "denied", "currently checked out"];
    let text = text.to_ascii_lowercase();
    WORDS.iter().any(|words| text.contains(words))
}

#[cfg(test)]
mod tests {
    use super::{Outcome, is_race, lines, parse};

    #[test]
    fn reports_are_read_by_reference() {
        let main = "refs/heads/main";
        let rejected = |reason: &str| Outcome::Rejected(reason.into());
        for (report, expected) in [
            (&["unpack ok\n", "ok refs/heads/main\n"][..], Outcome::Moved),
            (&["unpack ok", "ng refs/heads/main pre-receive hook declined\n"], rejected("pre-receive hook declined")),
            (
                &["unpack index-pack abnormal exit", "ng refs/heads/main x"],
                rejected("unpack failed: index-pack abnormal exit"),
            ),
            (&["unpack ok", "ok refs/heads/main2"], Outcome::Unknown),
            (&["unpack ok", "ng refs/heads/main"], rejected("no reason given")),
            (&["unpack ok", "ok refs/heads/main", "option refname refs/x"], Outcome::Moved),
            (&[], Outcome::Unknown),
        ] {
            let report: Vec<String> = report.iter().map(|&line| line.into()).collect();
            assert_eq!(parse(&report, main), expected, "{report:?}");
        }
    }

    #[test]
    fn packet_lines_end_at_a_flush_or_at_nonsense() {
        assert_eq!(lines(b"000eunpack ok\n0009ok x\n0000rest"), ["unpack ok\n", "ok x\n"]);
        for bytes in [&b""[..], b"000", b"zzzz", b"0003", b"fffffff", b"0001", b"00ffshort"] {
            assert!(lines(bytes).is_empty());
        }
    }

    #[test]
    fn a_race_is_no_refusal() {
        for text in [
            "non-fast-forward",
            "fetch first",
            "failed to update ref\nerror: cannot lock ref 'refs/heads/main': is at 1 but expected 2",
            "stale info",
        ] {
            assert!(is_race(text), "{text}");
        }
        for text in [
            "pre-receive hook declined",
            "protected branch hook declined",
            "pre-receive hook declined\nfetch first, then ask",
            "deny updating a hidden ref",
            "branch is currently checked out",
            "permission denied",
        ] {
            assert!(!is_race(text), "{text}");
        }
    }
}
