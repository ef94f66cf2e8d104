//! Version policies: checked in full, and then refused until versions are followed.

use regex::RegexBuilder;
use semver::VersionReq;

use crate::model::failure::{Category, Problem};

use super::{
    check::Check,
    file::environment::{Order, Policy},
    located::{Located, Place},
};

/// The largest program that a pattern may come to, in bytes.
const MAX_PATTERN: usize = 1 << 20;

/// Checks a policy. A correct one is refused as well.
pub fn policy(check: &mut Check<'_>, policy: &Located<Policy>) {
    let Located { value: Policy { semver, pattern, order }, place } = policy;
    let sound = match (semver, pattern) {
        (Some(_), Some(pattern)) => {
            let problem = schema("there are both `semver` and `pattern`", "keep one of them");
            check.report(pattern.place, problem);
            false
        }
        (None, None) => {
            let problem = schema(
                "the policy says nothing",
                "write `semver: \"~2026.11\"`, or `pattern` and `order`, or remove the policy to follow this very tag",
            );
            check.report(*place, problem);
            false
        }
        (Some(range), None) => {
            let range = check.read(Some(range), semver_range);
            range.is_some() & without_order(check, order.as_ref())
        }
        (None, Some(pattern)) => {
            check.read(Some(pattern), self::pattern).is_some() & with_order(check, order.as_ref(), pattern.place)
        }
    };
    if sound {
        check.report(
            *place,
            Problem::new(
                Category::Policy,
                "this version policy is right, but following versions comes with a later release",
            )
            .hint("remove it: the image then follows the tag of its reference, so choose the tag that you want"),
        );
    }
}

fn schema(message: impl Into<String>, hint: &str) -> Problem {
    Problem::new(Category::Schema, message).hint(hint)
}

fn semver_range(text: &str) -> Result<VersionReq, Problem> {
    text.parse().map_err(|error| {
        schema(
            format!("`{text}` is no range of versions: {error}"),
            "write for example \"~2026.11\", \"^1.2\" or \">=1.2, <2\"",
        )
    })
}

fn pattern(text: &str) -> Result<(), Problem> {
    let regex = RegexBuilder::new(text).size_limit(MAX_PATTERN).build().map_err(|error| {
        let message = match error {
            regex::Error::CompiledTooBig(_) => "the pattern is too large".to_owned(),
            // Its last line says what is wrong; the lines before it draw the place.
            error => {
                let error = error.to_string();
                let reason = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
                format!("`{text}` is no pattern: {reason}")
            }
        };
        schema(message, "write a regular expression with named groups, as in '^cuda12-(?<n>\\d+)$'; the syntax is that of https://docs.rs/regex")
    })?;
    if regex.capture_names().flatten().next().is_none() {
        return Err(schema(
            "the pattern has no named group, so nothing tells which tag is the newest",
            "name the part that is compared, as in '^cuda12-(?<n>\\d+)$'",
        ));
    }
    Ok(())
}

fn without_order(check: &mut Check<'_>, order: Option<&Located<Order>>) -> bool {
    if let Some(order) = order {
        check.report(
            order.place,
            schema("`order` belongs to `pattern`", "remove it: ranges of versions have an order of their own"),
        );
    }
    order.is_none()
}

fn with_order(check: &mut Check<'_>, order: Option<&Located<Order>>, place: Place) -> bool {
    if order.is_none() {
        check.report(place, schema("the pattern has no order", "add `order: numeric`, `alphabetical` or `semver`"));
    }
    order.is_some()
}

#[cfg(test)]
mod tests {
    use super::{pattern, semver_range};

    #[test]
    fn ranges_and_patterns() {
        for (text, good) in [
            ("~2026.11", true),
            ("^1.2", true),
            (">=1.2, <2", true),
            ("*", true),
            ("1.2.3", true),
            ("", false),
            ("latest", false),
            ("2026-11-02", false),
            ("01.2", false),
        ] {
            assert_eq!(semver_range(text).is_ok(), good, "{text}");
        }
        for (text, good) in [
            (r"^cuda12-(?<n>\d+)$", true),
            (r"^(?P<year>\d{4})-(?<month>\d\d)$", true),
            (r"^cuda12-(\d+)$", false),
            (r"^cuda12-(?<n>\d+$", false),
            (r"(?<n>a)(?<n>b)", false),
            (r"(?<n>(((a{99}){99}){99}){99})", false),
            (r"(?<n>a)(?=b)", false),
            ("", false),
        ] {
            assert_eq!(pattern(text).is_ok(), good, "{text}");
        }
    }
}
