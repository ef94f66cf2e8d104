//! From an entry of a snapshot to text, with every encoding and encryption that is not read named in its error.

use super::documents::without_empty;
use crate::model::{
    failure::{Category, Problem, Source},
    snapshot::Entry,
};

/// The most bytes of a file that a person writes.
const MAX_BYTES: usize = 4 << 20;

/// The start of a file that git-crypt has encrypted.
const GIT_CRYPT: &[u8] = b"\0GITCRYPT\0";

/// The start of a Git LFS pointer. Source: <https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md>.
const LFS: &[u8] = b"version https://git-lfs.github.com/spec/";

/// Reads an entry as UTF-8 text, without a byte order mark at its start.
///
/// # Errors
/// When it is not a regular file, too large, or something else than UTF-8 text.
pub fn read(path: &str, entry: &Entry) -> Result<Source, Problem> {
    let Entry::File(bytes) = entry else {
        return Err(not_a_file(path, entry));
    };
    let syntax = |message: &str, hint: &str| Problem::new(Category::Syntax, message).in_file(path).hint(hint);
    if bytes.len() > MAX_BYTES {
        return Err(not_a_file(path, &Entry::TooLarge(bytes.len() as u64)));
    }
    if bytes.starts_with(GIT_CRYPT) {
        return Err(syntax(
            "the file is encrypted by git-crypt",
            "take it out of .gitattributes and commit it in the clear: it needs no secret, since `pullSecret` names one by name",
        ));
    }
    if bytes.starts_with(LFS) {
        return Err(syntax(
            "the file is a Git LFS pointer, not the file itself",
            "take it out of .gitattributes and commit the file itself",
        ));
    }
    if looks_like_utf16(bytes) {
        return Err(syntax("the file is UTF-16 text", "save it as UTF-8"));
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let (line, column) = position(&String::from_utf8_lossy(&bytes[..error.valid_up_to()]));
            let source = Source { path: path.to_owned(), text: String::from_utf8_lossy(bytes).into() };
            return Err(Problem::new(Category::Syntax, "the file is not UTF-8 text")
                .at(&source, line, column, 1)
                .hint("save it as UTF-8; a binary or encrypted file does not belong here"));
        }
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let source = Source { path: path.to_owned(), text: text.into() };
    match forbidden(text) {
        Some((offset, problem)) => {
            let (line, column) = position(&text[..offset]);
            Err(problem.at(&source, line, column, 1))
        }
        None => Ok(source),
    }
}

/// Reads an entry as a file of YAML, without empty documents.
///
/// # Errors
/// As [`read`].
pub fn read_yaml(path: &str, entry: &Entry) -> Result<Source, Problem> {
    let Source { path, text } = read(path, entry)?;
    let text = if text.contains("---") { without_empty(&text).into() } else { text };
    Ok(Source { path, text })
}

/// The first character that text does not hold, with its offset in bytes.
fn forbidden(text: &str) -> Option<(usize, Problem)> {
    let syntax = |message: String, hint: &str| Problem::new(Category::Syntax, message).hint(hint);
    let mut characters = text.char_indices().peekable();
    while let Some((offset, c)) = characters.next() {
        match c {
            '\n' | '\t' => {}
            '\r' if characters.peek().is_some_and(|(_, next)| *next == '\n') => {}
            '\r' => {
                let message = "the file contains a carriage return without a line feed".to_owned();
                return Some((offset, syntax(message, "save the file with LF (or CRLF) line ends")));
            }
            '\u{feff}' => {
                let message = "the file contains an invisible byte order mark (U+FEFF)".to_owned();
                return Some((offset, syntax(message, "remove it; two files that were joined often leave one")));
            }
            c if c.is_control() => {
                let message = format!("the file contains a control character (U+{:04X})", u32::from(c));
                return Some((offset, syntax(message, "remove it")));
            }
            _ => {}
        }
    }
    None
}

/// The problem of an entry that is not a file to be read.
pub fn not_a_file(path: &str, entry: &Entry) -> Problem {
    let (message, hint) = match entry {
        Entry::Link(target) => (
            format!("the symbolic link to `{target}` is not followed"),
            "only links to files of the environment repository are; put the file itself here",
        ),
        Entry::Submodule => {
            ("this is a Git submodule, which is not followed".to_owned(), "put the files themselves here")
        }
        Entry::TooLarge(size) => (
            format!("the file is too large to be read: at least {size} bytes"),
            "split it; an environment's file has a few kilobytes",
        ),
        Entry::Unread(why) => (
            format!("this directory is not read: {why}"),
            "keep only environments in it; its tenant's environments stay as they are until then",
        ),
        Entry::File(_) => ("the file cannot be read".to_owned(), "commit it again"),
    };
    Problem::new(Category::Syntax, message).in_file(path).hint(hint)
}

/// With a byte order mark, or with ASCII characters of two bytes at the start.
fn looks_like_utf16(bytes: &[u8]) -> bool {
    match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => true,
        [0, b, 0, c, ..] | [b, 0, c, 0, ..] => *b != 0 && *c != 0,
        _ => false,
    }
}

/// Line and column after a text, both counted from 1.
fn position(before: &str) -> (usize, usize) {
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::model::snapshot::Entry;

    fn message(entry: &Entry) -> String {
        read("f.yaml", entry).map_or_else(|problem| problem.to_string(), |source| format!("ok {:?}", source.text))
    }

    #[test]
    fn what_is_no_text_is_named() {
        let utf16le: Vec<u8> = "\u{feff}a: 1\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let utf16be: Vec<u8> = "\u{feff}a: 1\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
        let bare: Vec<u8> = "a: 1\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let cases: [(&[u8], &str); 14] = [
            (b"\xef\xbb\xbf---\na: 1", "ok \"---\\na: 1\""),
            (b"---\n\xef\xbb\xbf# c", "f.yaml:2:1: the file contains an invisible byte order mark"),
            ("é: a\u{feff}b".as_bytes(), "f.yaml:1:5: the file contains an invisible byte order mark"),
            (&utf16le, "f.yaml: the file is UTF-16 text"),
            (&utf16be, "f.yaml: the file is UTF-16 text"),
            (&bare, "f.yaml: the file is UTF-16 text"),
            (b"\0GITCRYPT\0\x9f\x12", "f.yaml: the file is encrypted by git-crypt"),
            (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "f.yaml: the file is a Git LFS pointer"),
            (b"a: 1\nb: \xff\xfe", "f.yaml:2:4: the file is not UTF-8 text"),
            (b"a: 1\rb: 2\n", "f.yaml:1:5: the file contains a carriage return without a line feed"),
            (b"a: \x07\n", "f.yaml:1:4: the file contains a control character (U+0007)"),
            (b"a: 1\n\0\n", "f.yaml:2:1: the file contains a control character (U+0000)"),
            (b"a: 1\r\n", "ok \"a: 1\\r\\n\""),
            (b"", "ok \"\""),
        ];
        for (bytes, expected) in cases {
            let found = message(&Entry::File(bytes.into()));
            assert!(found.starts_with(expected), "{bytes:?}: {found}");
        }
    }

    #[test]
    fn what_is_no_file_is_named() {
        let link = message(&Entry::Link("../../../var/run/secrets/token".to_owned()));
        assert!(link.starts_with("f.yaml: the symbolic link to `../../../var/run/secrets/token` is not followed"));
        assert!(message(&Entry::Submodule).starts_with("f.yaml: this is a Git submodule"));
        assert!(message(&Entry::TooLarge(5_000_000)).contains("5000000 bytes"));
        assert!(message(&Entry::File(vec![b'x'; 5_000_000].into())).contains("5000000 bytes"));
    }
}
