//! Single values: durations, shares, quantities, and the names that Kubernetes allows.

use std::time::Duration;

use jiff::{SpanRelativeTo, Unit};

use crate::model::failure::{Category, Problem};

/// The shortest time that may be asked for: registries and nodes are not polled faster.
const SHORTEST: Duration = Duration::from_secs(10);

/// The longest time that may be asked for.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

fn schema(message: String, hint: &str) -> Problem {
    Problem::new(Category::Schema, message).hint(hint)
}

/// A time such as `90m`, `2h` or `1h 30m`; a day has 24 hours.
pub fn duration(text: &str) -> Result<Duration, Problem> {
    let hint = "write a number with its unit, as in 90s, 30m, 2h or 1d";
    let span: jiff::Span = text.trim().parse().map_err(|_| schema(format!("invalid duration `{text}`"), hint))?;
    let seconds = span
        .total((Unit::Second, SpanRelativeTo::days_are_24_hours()))
        .map_err(|_| schema(format!("`{text}` has no fixed length"), hint))?;
    let duration = Duration::try_from_secs_f64(seconds)
        .map_err(|_| schema(format!("`{text}` is not a time that can pass"), hint))?;
    if duration < SHORTEST || duration > LONGEST {
        return Err(schema(format!("`{text}` is out of range"), "write a time from 10s to 366d"));
    }
    Ok(duration)
}

/// A share such as `30%`; the sign may be left out.
pub fn percent(text: &str) -> Result<u8, Problem> {
    digits(text.trim().trim_end_matches('%'))
        .and_then(|number| u8::try_from(number).ok())
        .filter(|percent| *percent <= 100)
        .ok_or_else(|| schema(format!("`{text}` is not a percentage"), "write 0% to 100%"))
}

/// A number of pods, or a percentage. Kubernetes refuses 0, since a rollout would never begin.
pub fn max_unavailable(text: &str) -> Result<String, Problem> {
    let (number, most) = match text.strip_suffix('%') {
        Some(number) => (number, 100),
        None => (text, i32::MAX.unsigned_abs()),
    };
    match digits(number) {
        Some(value) if (1..=most).contains(&value) => Ok(text.to_owned()),
        _ => Err(schema(
            format!("`{text}` must be an integer or a percentage"),
            "write a number of at least 1, or 1% to 100%",
        )),
    }
}

/// A number without sign, point and leading zero.
fn digits(text: &str) -> Option<u32> {
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    plain.then(|| text.parse().ok()).flatten()
}

/// A quantity of bytes or CPUs, as Kubernetes writes it. Source:
/// <https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/>.
pub fn quantity(text: &str) -> Result<f64, Problem> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    // `1e2` and `1E2`; `1E` alone would be a unit.
    if let Some(exponent) = suffix.strip_prefix(['e', 'E']).and_then(|exponent| exponent.parse::<i16>().ok()) {
        return positive(text, number.parse().unwrap_or(f64::NAN) * 10_f64.powi(exponent.into()));
    }
    let factor = match suffix {
        "" => 1.0,
        "m" => 1e-3,
        "k" | "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "Ki" => 1024.0,
        "Mi" => 1024.0 * 1024.0,
        "Gi" => 1024.0 * 1024.0 * 1024.0,
        "Ti" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        "Pi" => 1024.0 * 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => f64::NAN,
    };
    positive(text, number.parse().unwrap_or(f64::NAN) * factor)
}

fn positive(text: &str, value: f64) -> Result<f64, Problem> {
    if value > 0.0 && value.is_finite() {
        Ok(value)
    } else {
        Err(schema(
            format!("`{text}` is not a valid quantity"),
            "write a number above 0 with a unit or none: 2G, 512Mi, 0.5, 500m",
        ))
    }
}

fn name(message: String, hint: &str) -> Problem {
    Problem::new(Category::Name, message).hint(hint)
}

/// Whether a text is 1 to `most` of a-z, 0-9, `-` and begins and ends with a letter or digit.
fn is_label(text: &str, most: usize) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (1..=most).contains(&text.len()) && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(|part| is_label(part, 253))
}

/// The name of a namespace: a DNS label, and none of Kubernetes' own.
///
/// Source: <https://kubernetes.io/docs/concepts/overview/working-with-objects/names/>.
pub fn namespace(text: &str) -> Result<String, Problem> {
    if !is_label(text, 63) {
        return Err(name(
            format!("`{text}` is not a valid namespace name"),
            "use 1 to 63 of a-z, 0-9 and `-`, with a letter or digit at both ends",
        ));
    }
    if text.starts_with("kube-") {
        return Err(Problem::new(Category::Policy, format!("`{text}` is a namespace of Kubernetes itself"))
            .hint("give the tenant a namespace of its own"));
    }
    Ok(text.to_owned())
}

/// The name of most objects, such as Secrets: a DNS subdomain.
pub fn object_name(text: &str) -> Result<String, Problem> {
    if is_subdomain(text) {
        return Ok(text.to_owned());
    }
    Err(name(
        format!("`{text}` is not a valid Kubernetes object name"),
        "use up to 253 of a-z, 0-9, `-` and `.`, with a letter or digit at both ends",
    ))
}

/// Whether a text is the name of a label or a label's value that is not empty.
fn is_label_word(text: &str) -> bool {
    let outer = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
    let inner = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    text.len() <= 63 && text.bytes().all(inner) && outer(text.bytes().next()) && outer(text.bytes().last())
}

/// The key of a label or a taint.
///
/// Source: <https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/>.
pub fn label_key(text: &str) -> Result<String, Problem> {
    let ok = match text.split_once('/') {
        Some((prefix, word)) => is_subdomain(prefix) && is_label_word(word),
        None => is_label_word(text),
    };
    if ok {
        return Ok(text.to_owned());
    }
    Err(name(
        format!("`{text}` is not a valid label key"),
        "use up to 63 letters, digits, `-`, `_` and `.`, with a domain and a slash before them or without",
    ))
}

/// The value of a label or a taint.
pub fn label_value(text: &str) -> Result<String, Problem> {
    if text.is_empty() || is_label_word(text) {
        return Ok(text.to_owned());
    }
    Err(name(
        format!("`{text}` is not a valid label value"),
        "use up to 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends",
    ))
}

/// A branch's name, without `refs/heads/`: the common part of what Git and all forges take.
pub fn branch(text: &str) -> Result<String, Problem> {
    let letters = text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-'));
    let part = |part: &str| {
        !part.is_empty() && !part.starts_with(['.', '-']) && !part.ends_with(['.']) && !part.ends_with(".lock")
    };
    if letters
        && text.len() <= 200
        && !text.contains("..")
        && text != "HEAD"
        && !text.starts_with("refs/")
        && text.split('/').all(part)
    {
        return Ok(text.to_owned());
    }
    Err(Problem::new(Category::Name, format!("`{text}` is not a name for a branch"))
        .hint("write letters, digits, `-`, `_`, `.` and `/`, as in larder/lock"))
}

#[cfg(test)]
mod tests {
    use super::{duration, label_key, label_value, max_unavailable, namespace, object_name, percent, quantity};

    #[test]
    fn durations() {
        for (text, seconds) in [
            ("2h", Some(7200)),
            ("90m", Some(5400)),
            ("10s", Some(10)),
            ("1h 30m", Some(5400)),
            ("1h30m", Some(5400)),
            ("1d", Some(86400)),
            ("1w", Some(604_800)),
            ("PT2H", Some(7200)),
            ("2 hours", Some(7200)),
            ("9s", None),
            ("0s", None),
            ("-2h", None),
            ("400d", None),
            ("2", None),
            ("7200", None),
            ("1mo", None),
            ("", None),
            ("soon", None),
            ("99999999999999h", None),
        ] {
            assert_eq!(duration(text).ok().map(|d| d.as_secs()), seconds, "{text}");
        }
    }

    #[test]
    fn shares() {
        for (text, expected) in [
            ("30%", Some(30)),
            ("30", Some(30)),
            ("0%", Some(0)),
            ("100%", Some(100)),
            ("101%", None),
            ("-1%", None),
            ("a", None),
            ("", None),
            ("1.5%", None),
            ("256", None),
        ] {
            assert_eq!(percent(text).ok(), expected, "{text}");
        }
        for (text, ok) in [
            ("10%", true),
            ("1", true),
            ("100%", true),
            ("0", false),
            ("0%", false),
            ("101%", false),
            ("01", false),
            ("-1", false),
            ("1.0", false),
            ("a", false),
            ("%", false),
            ("", false),
        ] {
            assert_eq!(max_unavailable(text).is_ok(), ok, "{text}");
        }
    }

    #[test]
    fn quantities() {
        let endless = "9".repeat(400);
        for (text, expected) in [
            ("2G", Some(2e9)),
            ("512Mi", Some(536_870_912.0)),
            ("0.5", Some(0.5)),
            ("500m", Some(0.5)),
            ("4", Some(4.0)),
            ("0", None),
            ("-1", None),
            ("2GB", None),
            ("G", None),
            ("", None),
            ("1e3", Some(1e3)),
            ("1E", None),
            ("1e", None),
            ("1e999", None),
            ("1.2.3", None),
            ("inf", None),
            ("NaN", None),
            ("2P", Some(2e15)),
            ("1Pi", Some(1_125_899_906_842_624.0)),
            (endless.as_str(), None),
        ] {
            assert_eq!(quantity(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn branches() {
        for (text, fits) in [
            ("larder/lock", true),
            ("lock-v1.2_x", true),
            ("", false),
            ("/lock", false),
            ("lock/", false),
            ("a//b", false),
            ("a..b", false),
            ("a.lock", false),
            ("a.lock/b", false),
            ("-x", false),
            (".x", false),
            ("HEAD", false),
            ("refs/heads/x", false),
            ("a b", false),
            ("a@{1}", false),
            ("ä", false),
        ] {
            assert_eq!(super::branch(text).is_ok(), fits, "{text}");
        }
    }

    #[test]
    fn names_of_kubernetes() {
        let (a63, a64) = ("a".repeat(63), "a".repeat(64));
        for (text, ok) in [
            ("research", true),
            ("1", true),
            (a63.as_str(), true),
            (a64.as_str(), false),
            ("a.b", false),
            ("A", false),
            ("a_b", false),
            ("-a", false),
            ("a-", false),
            ("", false),
            ("kube-system", false),
            ("kube-x", false),
            ("kubernetes", true),
            ("default", true),
        ] {
            assert_eq!(namespace(text).is_ok(), ok, "{text}");
        }
        for (text, ok) in
            [("quay-pull", true), ("a.b", true), ("a..b", false), (".a", false), ("A", false), ("", false)]
        {
            assert_eq!(object_name(text).is_ok(), ok, "{text}");
        }
        for (text, ok) in [
            ("hub.jupyter.org/dedicated", true),
            ("gpu", true),
            ("a_B.c-1", true),
            (a64.as_str(), false),
            ("a/b/c", false),
            ("/a", false),
            ("a/", false),
            ("A.b/c", false),
            ("", false),
        ] {
            assert_eq!(label_key(text).is_ok(), ok, "{text}");
        }
        for (text, ok) in [
            ("1", true),
            ("no", true),
            ("", true),
            (a63.as_str(), true),
            (a64.as_str(), false),
            ("a-", false),
            ("a b", false),
        ] {
            assert_eq!(label_value(text).is_ok(), ok, "{text}");
        }
    }
}
