//! A commit's bytes without its signature, which is what was signed, and the signature.

use super::Untrusted;

/// A commit in two.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) struct Split {
    /// All but the headers of signatures, byte by byte.
    pub(in super::super) payload: Vec<u8>,
    /// The signature, armored; none where there is none.
    pub(in super::super) signature: Option<Vec<u8>>,
}

/// What a line of a commit's head belongs to.
#[derive(Clone, Copy)]
enum Part {
    Content,
    Signature,
    /// The signature of the same commit under its SHA-256 name, which Git takes off as well.
    OtherName,
}

/// Splits a commit as Git does (`parse_buffer_signed_by_header`), only stricter: what could be read in two ways is
/// refused.
///
/// # Errors
/// [`Untrusted::Several`], and [`Untrusted::Malformed`] for headers of signatures that nobody knows.
pub(in super::super) fn split(commit: &[u8]) -> Result<Split, Untrusted> {
    let mut split = Split { payload: Vec::with_capacity(commit.len()), signature: None };
    let (mut part, mut other) = (Part::Content, false);
    let mut rest = commit;
    while !rest.is_empty() {
        let end = rest.iter().position(|&byte| byte == b'\n').map_or(rest.len(), |at| at + 1);
        let (line, after) = rest.split_at(end);
        if line == b"\n" {
            // The head ends; the message may look like anything.
            split.payload.extend_from_slice(rest);
            return Ok(split);
        }
        let value = if let Some(value) = line.strip_prefix(b" ") {
            value
        } else if let Some(value) = line.strip_prefix(b"gpgsig ") {
            part = Part::Signature;
            if split.signature.replace(Vec::new()).is_some() {
                return Err(Untrusted::Several);
            }
            value
        } else if let Some(value) = line.strip_prefix(b"gpgsig-sha256 ") {
            part = Part::OtherName;
            if std::mem::replace(&mut other, true) {
                return Err(Untrusted::Several);
            }
            value
        } else if line.starts_with(b"gpgsig") {
            // Git leaves it out of what is signed, so anybody could have added it.
            return Err(Untrusted::Malformed("a header begins with `gpgsig` and is none that is known".into()));
        } else {
            part = Part::Content;
            line
        };
        match (part, &mut split.signature) {
            (Part::Content, _) => split.payload.extend_from_slice(line),
            (Part::Signature, Some(signature)) => signature.extend_from_slice(value),
            (Part::Signature | Part::OtherName, _) => {}
        }
        rest = after;
    }
    Ok(split)
}

/// When a commit says that it was committed, in seconds since 1970; 0 where it does not.
pub(in super::super) fn time(commit: &[u8]) -> i64 {
    let refs = gix::objs::CommitRefIter::from_bytes(commit, gix::hash::Kind::Sha1);
    refs.committer().map_or(0, |committer| committer.seconds())
}

#[cfg(test)]
mod tests {
    use super::{Untrusted, split};

    const HEAD: &str = "tree t\nparent p\nauthor a\ncommitter c\n";

    #[test]
    fn what_is_signed_is_all_but_the_signature() {
        let sig = "gpgsig -----BEGIN\n line\n \n -----END\n";
        for (commit, payload, signature) in [
            (format!("{HEAD}{sig}\nmessage\n"), format!("{HEAD}\nmessage\n"), Some("-----BEGIN\nline\n\n-----END\n")),
            // Headers around it, of several lines too.
            (
                format!("{HEAD}encoding ISO-8859-1\n{sig}mergetag object x\n type commit\nx y\n\nm"),
                format!("{HEAD}encoding ISO-8859-1\nmergetag object x\n type commit\nx y\n\nm"),
                Some("-----BEGIN\nline\n\n-----END\n"),
            ),
            // The other name's signature is no content, wherever it is.
            (
                format!("{HEAD}gpgsig-sha256 one\n two\n{sig}x y\n\nm"),
                format!("{HEAD}x y\n\nm"),
                Some("-----BEGIN\nline\n\n-----END\n"),
            ),
            (format!("{HEAD}gpgsig-sha256 one\n two\nx y\n\nm"), format!("{HEAD}x y\n\nm"), None),
            // A message is not a header, and neither is a header's further line.
            (format!("{HEAD}\n{sig}"), format!("{HEAD}\n{sig}"), None),
            (format!("{HEAD}x y\n gpgsig z\n\nm"), format!("{HEAD}x y\n gpgsig z\n\nm"), None),
            (format!("{HEAD}{sig}"), HEAD.to_owned(), Some("-----BEGIN\nline\n\n-----END\n")),
            (format!("{HEAD}gpgsig one"), HEAD.to_owned(), Some("one")),
        ] {
            let found = split(commit.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(found.payload).unwrap(), payload, "{commit}");
            assert_eq!(found.signature.as_deref(), signature.map(str::as_bytes), "{commit}");
        }
        // Bytes that are no text are kept as they are.
        let odd = b"tree t\nauthor \xff\xfe\r\nencoding x\0\ngpgsig s\n\n\xe9\n\0";
        assert_eq!(split(odd).unwrap().payload, b"tree t\nauthor \xff\xfe\r\nencoding x\0\n\n\xe9\n\0");
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_refused() {
        for (more, expected) in [
            ("gpgsig one\ngpgsig two\n", Untrusted::Several),
            ("gpgsig one\nx y\ngpgsig one\n", Untrusted::Several),
            ("gpgsig-sha256 one\ngpgsig-sha256 two\n", Untrusted::Several),
        ] {
            assert_eq!(split(format!("{HEAD}{more}\nm").as_bytes()), Err(expected), "{more}");
        }
        for more in ["gpgsigx one\n", "gpgsig\n", "gpgsig-sha512 one\n"] {
            assert!(matches!(split(format!("{HEAD}{more}\nm").as_bytes()), Err(Untrusted::Malformed(_))), "{more}");
        }
    }
}
