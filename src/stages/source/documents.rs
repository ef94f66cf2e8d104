//! Empty YAML documents: a file with `---` at its end, or twice at its start, still holds one document.

/// The text with the marks of empty documents blanked, so that each line keeps its number. What is not empty stays, two
/// documents included.
pub fn without_empty(text: &str) -> String {
    let mut out: Vec<&str> = Vec::new();
    // The line of the last mark, while nothing but comments has followed it.
    let mut open: Option<usize> = None;
    for line in text.split('\n') {
        let content = line.split(" #").next().unwrap_or_default().trim_end();
        if content == "---" {
            if let Some(mark) = open.replace(out.len()) {
                out[mark] = "";
            }
        } else if content != "..." && !content.trim_start().is_empty() && !content.starts_with('#') {
            open = None;
        }
        let is_end_of_empty = content == "..." && open.is_some();
        out.push(if is_end_of_empty { "" } else { line });
    }
    if let Some(mark) = open {
        out[mark] = "";
    }
    out.join("\n")
}

#[cfg(test)]
mod tests {
    use super::without_empty;

    #[test]
    fn only_marks_of_empty_documents_go() {
        for (text, expected) in [
            ("a: 1\n", "a: 1\n"),
            ("---\na: 1\n", "---\na: 1\n"),
            ("a: 1\n---\n", "a: 1\n\n"),
            ("a: 1\n---", "a: 1\n"),
            ("---\n---\na: 1\n", "\n---\na: 1\n"),
            ("---\n# c\n\n--- # d\na: 1\n---\r\n# e\n", "\n# c\n\n--- # d\na: 1\n\n# e\n"),
            ("a: 1\n...\n---\n...\n", "a: 1\n...\n\n\n"),
            ("a: 1\n---\nb: 1\n", "a: 1\n---\nb: 1\n"),
            ("a: 1\n---\n---\nb: 1\n", "a: 1\n\n---\nb: 1\n"),
            ("--- {a: 1}\n---\n", "--- {a: 1}\n\n"),
            ("%YAML 1.2\n---\na: 1\n", "%YAML 1.2\n---\na: 1\n"),
            ("a: |\n  ---\n  b\n", "a: |\n  ---\n  b\n"),
            ("---\n  # c\n---\n~\n", "\n  # c\n---\n~\n"),
            ("---\n", "\n"),
            ("", ""),
        ] {
            assert_eq!(without_empty(text), expected, "{text:?}");
        }
    }
}
