//! Comments: what users write is never markup, and every forge's limit holds.

use super::{block, code, fit, html, markdown, marker};
use crate::{
    model::failure::{Category, Problem},
    stages::review::Review,
};

#[test]
fn users_texts_are_no_markup() {
    for (text, expected) in [
        ("plain", "`plain`"),
        ("@everyone <img src=x>", "`@everyone <img src=x>`"),
        ("a`b", "``a`b``"),
        ("`x`", "`` `x` ``"),
        ("a\n# b", "`a�# b`"),
        ("a\u{202e}b", "`a�b`"),
        ("", "` `"),
    ] {
        assert_eq!(code(text), expected);
    }
    assert_eq!(html("<b>@x *y*"), "&lt;b&gt;@\u{2060}x &#42;y&#42;");
    // A fence in the text does not end the block, and nothing starts with a command of GitLab.
    assert_eq!(block("diff", "-a\n````\n/close\n"), "`````diff\n-a\n````\n /close\n`````\n");
}

#[test]
fn a_marker_holds_nothing_that_ends_it() {
    assert_eq!(marker("default"), "<!-- larder:plan:default -->");
    assert_eq!(marker("a --> <b>"), "<!-- larder:plan:ab -->");
}

#[test]
fn sections_that_do_not_fit_are_left_out_whole() {
    let sections = vec!["a".repeat(100), "b".repeat(1000), "c".repeat(100)];
    let text = fit("title\n", &sections, 400);
    assert!(text.len() <= 400, "{}", text.len());
    assert!(text.contains("aaa") && !text.contains('b') || text.contains("because"), "{text}");
    assert!(text.contains(&"c".repeat(100)), "a shorter one after it still comes: {text}");
    assert!(text.contains("1 section is left out"), "{text}");
    assert_eq!(fit("title\n", &sections[..1], 1000), format!("title\n\n{}", "a".repeat(100)));
}

#[test]
fn a_comment_with_hostile_problems_stays_within_its_limit() {
    let problem =
        |index: usize| Problem::new(Category::Schema, format!("`@admin` </details> ``` {} {index}", "x".repeat(5000)));
    let review =
        Review { problems: (0..500).map(problem).collect(), from: "a".into(), to: "b".into(), ..Review::default() };
    let text = markdown(&review, &marker("default"), 65_000);
    assert!(text.len() <= 65_000);
    assert!(text.starts_with("<!-- larder:plan:default -->\n"));
    let few = Review { problems: vec![problem(0)], ..review };
    let text = markdown(&few, &marker("default"), 65_000);
    let body = text.split("````text\n").nth(1).unwrap();
    assert!(body.contains("</details>") && body.trim_end().ends_with("````"), "it stays inside its block: {text}");
}
