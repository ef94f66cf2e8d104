//! Texts of users inside Markdown: shown as they are, never as markup, mention, link or command.

use crate::model::text::{is_unseen, one_line};

/// The text as a code span, on one line. A longer run of backticks around it keeps those in it harmless.
///
/// Source: <https://spec.commonmark.org/0.31.2/#code-spans>.
pub fn code(text: &str) -> String {
    let text = one_line(text);
    if text.trim().is_empty() {
        return "` `".to_owned();
    }
    let fence = "`".repeat(longest_run(&text) + 1);
    if text.starts_with('`') || text.ends_with('`') {
        return format!("{fence} {text} {fence}");
    }
    format!("{fence}{text}{fence}")
}

/// The text as a fenced code block. Each line that starts with `/` is moved in by a space: GitLab takes such a line for
/// a command wherever it stands.
pub fn block(language: &str, text: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    let mut block = format!("{fence}{language}\n");
    for line in text.lines() {
        if line.starts_with('/') {
            block.push(' ');
        }
        block.push_str(&one_line(line));
        block.push('\n');
    }
    block.push_str(&fence);
    block.push('\n');
    block
}

/// The text inside HTML.
pub fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // Markdown is still read inside a summary; an entity is never markup. A mention needs its letter next to it.
            '*' | '_' | '`' | '[' | ']' | '\\' | '~' | '|' | '#' | '!' => out.push_str(&format!("&#{};", c as u32)),
            '@' => out.push_str("@\u{2060}"),
            c if is_unseen(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The text as code inside HTML.
pub fn summary_code(text: &str) -> String {
    format!("<code>{}</code>", html(text))
}

fn longest_run(text: &str) -> usize {
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}
