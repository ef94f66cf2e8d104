//! Text from outside, made fit to be shown. What users, registries, remotes and clusters write must not move a cursor,
//! end a line, hide or reorder anything on a terminal, in a commit message, in Markdown or in a log. This is the only
//! place that decides which characters could.

use std::{borrow::Cow, fmt::Write as _};

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory as _};

/// Whether a character is invisible and yet changes what is shown: the general categories Cc (control), Cf (format:
/// directions, zero widths, byte order marks, tags), Zl and Zp (line and paragraph separators).
///
/// Source: <https://www.unicode.org/reports/tr44/#General_Category_Values>.
pub fn is_unseen(c: char) -> bool {
    use GeneralCategory as Category;
    match c {
        ' '..='~' => false,
        c => matches!(
            c.general_category(),
            Category::Control | Category::Format | Category::LineSeparator | Category::ParagraphSeparator
        ),
    }
}

/// Unseen characters that people need: the joiners and direction marks of scripts and emoji, and the tags of flags.
/// They stay within a word.
pub fn is_mark(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200c}'..='\u{200f}' | '\u{e0020}'..='\u{e007f}')
}

/// The text on one line: a tab is a space and each other unseen character U+FFFD, so that columns stay what they are.
pub fn one_line(text: &str) -> Cow<'_, str> {
    let shown = |c| match c {
        '\t' => ' ',
        c if is_unseen(c) => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    if text.contains(is_unseen) { text.chars().map(shown).collect() } else { text.into() }
}

/// The text with its lines, without a line end after the last. Each is [`one_line`]; a lone CR ends a line, too.
pub fn lines(text: &str) -> String {
    let unix = text.replace("\r\n", "\n").replace('\r', "\n");
    unix.lines().map(one_line).collect::<Vec<_>>().join("\n")
}

/// The words of the text on one line, with one space between them: runs of white space and unseen characters are one
/// space. More than `most` characters end with `…`.
pub fn words(text: &str, most: usize) -> String {
    let is_gap = |c: char| c.is_whitespace() || is_unseen(c) || c == char::REPLACEMENT_CHARACTER;
    let mut out = String::new();
    let mut left = most;
    for word in text.split(is_gap).filter(|word| !word.is_empty()) {
        let space = if out.is_empty() { "" } else { " " };
        for c in space.chars().chain(word.chars()) {
            if left == 0 {
                out.push('…');
                return out;
            }
            out.push(c);
            left -= 1;
        }
    }
    out
}

/// A double-quoted scalar on one line, which readers of YAML 1.1 and 1.2 take for this very string. So do readers of
/// JSON, unless it holds an unseen character beyond U+FFFF.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        // Writing to a String cannot fail. YAML does not take the noncharacters as printable, and U+00A0 looks like a
        // space.
        let _ = match c {
            '"' | '\\' => write!(out, "\\{c}"),
            '\n' => write!(out, "\\n"),
            '\t' => write!(out, "\\t"),
            '\u{10000}'.. if is_unseen(c) => write!(out, "\\U{:08x}", u32::from(c)),
            c if is_unseen(c) || matches!(c, '\u{a0}' | '\u{fffe}' | '\u{ffff}') => {
                write!(out, "\\u{:04x}", u32::from(c))
            }
            c => out.write_char(c),
        };
    }
    out.push('"');
    out
}

/// Bytes for people: `1.5 GiB`.
pub fn size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = "bytes";
    for next in units {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, next);
    }
    if unit == "bytes" { format!("{bytes} bytes") } else { format!("{value:.1} {unit}") }
}

/// `1 image`, `2 images`.
pub fn plural(count: usize, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{is_mark, is_unseen, lines, one_line, quoted, size, words};

    /// By name from the Unicode character database, with their general categories.
    #[test]
    fn what_is_not_seen_goes_by_general_category() {
        let unseen = [
            ('\0', "NULL, Cc"),
            ('\n', "LINE FEED, Cc"),
            ('\u{1b}', "ESCAPE, Cc"),
            ('\u{7f}', "DELETE, Cc"),
            ('\u{9b}', "CONTROL SEQUENCE INTRODUCER, Cc"),
            ('\u{85}', "NEXT LINE, Cc"),
            ('\u{ad}', "SOFT HYPHEN, Cf"),
            ('\u{600}', "ARABIC NUMBER SIGN, Cf"),
            ('\u{61c}', "ARABIC LETTER MARK, Cf"),
            ('\u{180e}', "MONGOLIAN VOWEL SEPARATOR, Cf"),
            ('\u{200b}', "ZERO WIDTH SPACE, Cf"),
            ('\u{200d}', "ZERO WIDTH JOINER, Cf"),
            ('\u{2028}', "LINE SEPARATOR, Zl"),
            ('\u{2029}', "PARAGRAPH SEPARATOR, Zp"),
            ('\u{202e}', "RIGHT-TO-LEFT OVERRIDE, Cf"),
            ('\u{2060}', "WORD JOINER, Cf"),
            ('\u{2066}', "LEFT-TO-RIGHT ISOLATE, Cf"),
            ('\u{206f}', "NOMINAL DIGIT SHAPES, Cf"),
            ('\u{feff}', "ZERO WIDTH NO-BREAK SPACE, Cf"),
            ('\u{fff9}', "INTERLINEAR ANNOTATION ANCHOR, Cf"),
            ('\u{1d173}', "MUSICAL SYMBOL BEGIN BEAM, Cf"),
            ('\u{e0001}', "LANGUAGE TAG, Cf"),
            ('\u{e0041}', "TAG LATIN CAPITAL LETTER A, Cf"),
        ];
        for (c, name) in unseen {
            assert!(is_unseen(c), "{name}");
        }
        for c in [' ', '~', 'é', '\u{a0}', '\u{301}', '日', '👩', '\u{fe0f}', '\u{fffd}'] {
            assert!(!is_unseen(c), "{c:?}");
        }
        assert!(('\u{10000}'..='\u{10ffff}').chain('\0'..='\u{ffff}').filter(|&c| is_mark(c)).all(is_unseen));
    }

    #[test]
    fn words_fit_a_line() {
        for (text, expected) in [
            ("Too Many Requests (HAP429).\r\n", "Too Many Requests (HAP429)."),
            ("a\u{1b}[31mb\0c", "a [31mb c"),
            ("a\nkind: Other\r\n\u{85}b\u{2028}c\u{202e}", "a kind: Other b c"),
            ("", ""),
        ] {
            assert_eq!(words(text, 100), expected);
        }
        assert_eq!(words("ab cd", 5), "ab cd");
        assert_eq!(words("ab cde", 5), "ab cd…");
        assert_eq!(words(&"é".repeat(1 << 20), 200).chars().count(), 201);
    }

    #[test]
    fn lines_end_as_on_any_system() {
        assert_eq!(lines("a\r\nb\rc\n\td\u{1b}[31m\0\n"), "a\nb\nc\n d\u{fffd}[31m\u{fffd}");
    }

    proptest! {
        #[test]
        fn nothing_unseen_is_left(text in "(\\PC|\\pC|[\\r\\n\\t\\u{200b}-\\u{2069}]){0,40}") {
            let line = one_line(&text);
            prop_assert!(!line.contains(is_unseen));
            prop_assert_eq!(line.chars().count(), text.chars().count());
            prop_assert_eq!(&one_line(&line), &line);
            prop_assert!(lines(&text).chars().all(|c| c == '\n' || !is_unseen(c)));
            prop_assert!(words(&text, 10).chars().count() <= 11 && !words(&text, 10).contains(is_unseen));
            let quoted = quoted(&text);
            prop_assert!(!quoted.contains(is_unseen));
            let read: String = serde_saphyr::from_str(&quoted).unwrap();
            prop_assert_eq!(read, text);
        }
    }

    #[test]
    fn sizes_are_readable() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1536, "1.5 KiB"),
            (3 << 30, "3.0 GiB"),
            (1 << 50, "1024.0 TiB"),
            (u64::MAX, "16777216.0 TiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }
}
