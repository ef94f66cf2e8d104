//! A commit's bytes, read as leniently as Git reads them: its tree and its parents have to be there; who made it, when
//! and why may be broken.

use std::borrow::Cow;

use encoding_rs::Encoding;
use gix::{ObjectId, bstr::ByteSlice as _};

use crate::model::history::{CommitInfo, CommitTime};

/// Names of the encoding whose bytes are the first 256 characters.
const LATIN1: [&str; 4] = ["iso-8859-1", "iso8859-1", "latin1", "latin-1"];

/// What a commit says, as bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RawCommit<'a> {
    pub(super) tree: ObjectId,
    pub(super) parents: Vec<ObjectId>,
    /// When it was committed, in seconds since 1970 (UTC), as Git's own walks take it: 0 where the committer does not
    /// directly follow a whole author.
    pub(super) seconds: i64,
    author: &'a [u8],
    committer: &'a [u8],
    encoding: &'a [u8],
    message: &'a [u8],
}

impl<'a> RawCommit<'a> {
    /// Reads a commit; none when it does not begin with a tree.
    /// <https://github.com/git/git/blob/v2.39.5/commit.c#L430>
    pub(super) fn read(data: &'a [u8]) -> Option<Self> {
        let (tree, mut rest) = take_id(data, b"tree ")?;
        let none = &data[..0];
        let (author, committer, encoding, message) = (none, none, none, none);
        let mut commit = Self { tree, parents: Vec::new(), seconds: 0, author, committer, encoding, message };
        while let Some((parent, after)) = take_id(rest, b"parent ") {
            commit.parents.push(parent);
            rest = after;
        }
        let (headers, message) = match rest.find(b"\n\n") {
            Some(end) => (&rest[..=end], &rest[end + 2..]),
            None => (rest, &rest[rest.len()..]),
        };
        commit.message = message.trim_start_with(|c| c == '\n');
        let mut follows_author = false;
        for line in headers.lines() {
            if let Some(author) = line.strip_prefix(b"author ") {
                commit.author = author;
            } else if let Some(committer) = line.strip_prefix(b"committer ") {
                commit.committer = committer;
                commit.seconds = if follows_author { seconds(committer) } else { 0 };
            } else if let Some(encoding) = line.strip_prefix(b"encoding ") {
                commit.encoding = encoding;
            }
            follows_author = line.starts_with(b"author ");
        }
        Some(commit)
    }

    /// As people name it; a person that cannot be read has no name.
    pub(super) fn info(&self, id: ObjectId) -> CommitInfo {
        let text = self.decode(self.message);
        let subject: Vec<&str> = text.lines().map(str::trim_end).take_while(|line| !line.is_empty()).collect();
        CommitInfo {
            id: id.to_string(),
            author: self.person(self.author),
            committer: self.person(self.committer),
            time: CommitTime { seconds: self.seconds, offset: offset(self.committer) },
            subject: subject.join(" "),
        }
    }

    /// All of its message.
    pub(super) fn message(&self) -> Cow<'a, str> {
        self.decode(self.message)
    }

    /// `Name <address>`.
    fn person(&self, line: &[u8]) -> String {
        let Some((name, address, _)) = split(line) else { return String::new() };
        format!("{} <{}>", self.decode(name.trim()), self.decode(address.trim()))
    }

    /// Text in the commit's own encoding, as Git shows it: what does not fit is taken for UTF-8.
    fn decode<'t>(&self, text: &'t [u8]) -> Cow<'t, str> {
        let decoded = || {
            // To the web the name means windows-1252, but not to Git.
            if LATIN1.iter().any(|name| self.encoding.eq_ignore_ascii_case(name.as_bytes())) {
                return Some(encoding_rs::mem::decode_latin1(text));
            }
            Encoding::for_label(self.encoding)?.decode_without_bom_handling_and_without_replacement(text)
        };
        if self.encoding.is_empty() { None } else { decoded() }.unwrap_or_else(|| String::from_utf8_lossy(text))
    }
}

/// The id in a line of the form `<key><40 digits>`, and what follows the line.
fn take_id<'a>(data: &'a [u8], key: &[u8]) -> Option<(ObjectId, &'a [u8])> {
    let rest = data.strip_prefix(key)?;
    let id = ObjectId::from_hex(rest.get(..40)?).ok()?;
    Some((id, rest[40..].strip_prefix(b"\n")?))
}

/// Name, address, and what follows, of `Name <address> 1700000000 +0100`. Git looks for the first `<` and the first `>`
/// after it, and for the time after the last `>`.
fn split(line: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let open = line.find_byte(b'<')?;
    let close = open + line[open..].find_byte(b'>')?;
    let last = line.rfind_byte(b'>')?;
    Some((&line[..open], &line[open + 1..close], line[last + 1..].trim()))
}

fn seconds(line: &[u8]) -> i64 {
    let Some((_, _, rest)) = split(line) else { return 0 };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    rest[..digits].to_str().ok().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// The zone `+0130` in seconds.
fn offset(line: &[u8]) -> i32 {
    let read = || -> Option<i32> {
        let (_, _, rest) = split(line)?;
        let zone = rest.to_str().ok()?.split_whitespace().nth(1)?;
        let (sign, digits) = (if zone.starts_with('-') { -1 } else { 1 }, zone.strip_prefix(['+', '-'])?);
        let number: i32 = digits.parse().ok().filter(|number| (0..=9959).contains(number))?;
        Some(sign * (number / 100 * 3600 + number % 100 * 60))
    };
    read().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use gix::ObjectId;

    use super::RawCommit;

    const TREE: &str =
        "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nparent 1111111111111111111111111111111111111111\n";

    fn info(rest: &[u8]) -> (String, String, i64, String) {
        let data = [TREE.as_bytes(), rest].concat();
        let commit = RawCommit::read(&data).unwrap();
        assert_eq!(commit.parents.len(), 1);
        let info = commit.info(ObjectId::null(gix::hash::Kind::Sha1));
        (info.author, info.committer, info.time.seconds, info.subject)
    }

    #[test]
    fn what_git_can_read_is_read() {
        let whole = b"author A <a@x> 5 +0130\ncommitter B <b@x> 7 -0100\n\n\none\ntwo\n\nbody\n";
        assert_eq!(info(whole), ("A <a@x>".into(), "B <b@x>".into(), 7, "one two".into()));
        let broken = b"author A <a\n@x> 5 +0000\ncommitter B <b@x> 7 +0000\n\none\n";
        assert_eq!(info(broken), (String::new(), "B <b@x>".into(), 0, "one".into()));
        let early = b"author A <a@x> 5 +0000\ncommitter B <b@x> 7 +0000\n";
        assert_eq!(info(early), ("A <a@x>".into(), "B <b@x>".into(), 7, String::new()));
        assert_eq!(info(b"author A <a@x> soon\ncommitter <> \n\n"), ("A <a@x>".into(), " <>".into(), 0, String::new()));
        assert_eq!(info(b""), (String::new(), String::new(), 0, String::new()));
        for data in [&b""[..], b"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904", b"parent x\n"] {
            assert_eq!(RawCommit::read(data), None);
        }
    }

    #[test]
    fn a_commit_is_read_in_its_own_encoding() {
        for (encoding, name, expected) in [
            ("ISO-8859-1", &b"J\xfcrgen"[..], "Jürgen"),
            ("latin-1", b"\x80", "\u{80}"),
            ("windows-1252", b"\x80", "€"),
            ("Shift_JIS", b"\x93\x8c\x8b\x9e", "東京"),
            ("EUC-JP", b"\xc5\xec\xb5\xfe", "東京"),
            ("GBK", b"\xb6\xab", "东"),
            ("KOI8-R", b"\xe1\xce\xce\xc1", "Анна"),
            ("unheard-of", "Jürgen".as_bytes(), "Jürgen"),
            ("UTF-8", b"J\xfcrgen", "J\u{fffd}rgen"),
        ] {
            let person = [name, b" <j@x> 7 +0000\n"].concat();
            let encoding = format!("encoding {encoding}\n\n");
            let data = [&b"author "[..], &person, b"committer ", &person, encoding.as_bytes(), name, b"\n"].concat();
            assert_eq!(info(&data), (format!("{expected} <j@x>"), format!("{expected} <j@x>"), 7, expected.into()));
        }
    }
}
