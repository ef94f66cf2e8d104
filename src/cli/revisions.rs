//! Revisions and times as people write them, the same for every command.

use std::str::FromStr;

use jiff::{Span, Timestamp, Zoned, civil, tz::TimeZone};

use crate::pipeline::audit::Moment;

const A_TIME: &str = "a time is a date (2026-11-30), a date and a time of the day (2026-11-30T14:00), RFC 3339 with an \
                      offset or a zone in brackets, `now`, `today`, `yesterday`, or `2 days ago`";

/// `A..B`; either may be missing. `A` alone is short for `A..`: from there to the newest commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    pub from: Option<Moment>,
    pub to: Option<Moment>,
    /// Whether it was written with `..`.
    pub is_whole: bool,
}

impl FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let part = |text: &str| Some(text).filter(|text| !text.is_empty()).map(parse_moment).transpose();
        match text.split_once("..") {
            Some((_, to)) if to.starts_with('.') => Err("`A...B` is not supported; write `A..B`".to_owned()),
            Some((from, to)) => Ok(Self { from: part(from)?, to: part(to)?, is_whole: true }),
            None => Ok(Self { from: Some(parse_moment(text)?), to: None, is_whole: false }),
        }
    }
}

/// What a date without a time of the day means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Edge {
    First,
    Last,
}

/// `--since`: a date is its first second.
pub fn parse_since(text: &str) -> Result<i64, String> {
    parse_time(text, &Zoned::now(), Edge::First)
}

/// `--until`: a date is its last second.
pub fn parse_until(text: &str) -> Result<i64, String> {
    parse_time(text, &Zoned::now(), Edge::Last)
}

/// `TIME|REV`: what does not look like a time is a revision. A date is its last second.
pub fn parse_moment(text: &str) -> Result<Moment, String> {
    moment(text, &Zoned::now())
}

fn moment(text: &str, now: &Zoned) -> Result<Moment, String> {
    match parse_time(text, now, Edge::Last) {
        Ok(time) => Ok(Moment::Time(time)),
        Err(_) if !looks_like_a_time(text.trim()) => Ok(Moment::Revision(text.to_owned())),
        Err(error) => Err(format!("{error}; a tag or branch that looks like a time is written refs/tags/{text}")),
    }
}

/// Whether a text is meant as a time: it begins like a date, or it is several words, which no branch, tag or commit is.
fn looks_like_a_time(text: &str) -> bool {
    let shape = text.bytes().take(10).map(|b| if b.is_ascii_digit() { b'0' } else { b });
    let is_words = text.contains(' ') && !text.contains(['{', ':', '^', '~', '@']);
    shape.eq(*b"0000-00-00") || is_words || text.ends_with("ago")
}

/// A time in seconds since 1970 (UTC).
fn parse_time(text: &str, now: &Zoned, edge: Edge) -> Result<i64, String> {
    let text = text.trim();
    read_time(text, now, edge).ok_or_else(|| format!("`{text}` is not a time: {A_TIME}"))
}

fn read_time(text: &str, now: &Zoned, edge: Edge) -> Option<i64> {
    if text == "now" {
        return Some(now.timestamp().as_second());
    }
    if let Some(span) = text.strip_suffix("ago") {
        // The library reads `ago` and signs as well, which would lead to the future.
        let span: Span = Some(span.trim()).filter(|span| !span.ends_with("ago"))?.parse().ok()?;
        return Some(span).filter(|span| !span.is_negative()).and_then(|span| before(now, span));
    }
    let day = match text {
        "today" => Some(now.date()),
        "yesterday" => now.date().yesterday().ok(),
        // Without dashes it would be the beginning of a commit's id just as well.
        _ if text.len() == 10 && text.contains('-') => text.parse::<civil::Date>().ok(),
        _ => None,
    };
    if let Some(day) = day {
        return of_day(day, now.time_zone(), edge);
    }
    if !text.contains('-') || !text.contains(':') {
        return None;
    }
    if text.contains('[') {
        return text.parse::<Zoned>().ok().map(|time| time.timestamp().as_second());
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(time.as_second());
    }
    let local = text.parse::<civil::DateTime>().and_then(|time| time.to_zoned(now.time_zone().clone()));
    local.ok().map(|time| time.timestamp().as_second())
}

fn before(now: &Zoned, span: Span) -> Option<i64> {
    now.checked_sub(span).ok().map(|then| then.timestamp().as_second())
}

fn of_day(day: civil::Date, zone: &TimeZone, edge: Edge) -> Option<i64> {
    let start = |day: civil::Date| day.to_zoned(zone.clone()).ok().map(|start| start.timestamp().as_second());
    match edge {
        Edge::First => start(day),
        Edge::Last => start(day.tomorrow().ok()?).map(|next| next - 1),
    }
}

#[cfg(test)]
mod tests {
    use jiff::{Timestamp, Zoned, tz::TimeZone};

    use super::{Edge, Range, moment, parse_time};
    use crate::pipeline::audit::Moment;

    fn now() -> Zoned {
        let zone = TimeZone::fixed(jiff::tz::offset(1));
        "2026-11-30T14:00:00Z".parse::<Timestamp>().unwrap().to_zoned(zone)
    }

    #[test]
    fn times_as_people_write_them() {
        for (text, edge, expected) in [
            ("2026-11-29", Edge::First, "2026-11-28T23:00:00Z"),
            ("2026-11-29", Edge::Last, "2026-11-29T22:59:59Z"),
            ("yesterday", Edge::First, "2026-11-28T23:00:00Z"),
            ("today", Edge::First, "2026-11-29T23:00:00Z"),
            ("now", Edge::Last, "2026-11-30T14:00:00Z"),
            ("2026-11-29T10:00:01Z", Edge::Last, "2026-11-29T10:00:01Z"),
            ("2026-11-29T10:00:00+02:00", Edge::Last, "2026-11-29T08:00:00Z"),
            ("2026-11-29T12:00:00[Asia/Tokyo]", Edge::Last, "2026-11-29T03:00:00Z"),
            ("2026-11-29T12:00:00+09:00[Asia/Tokyo]", Edge::Last, "2026-11-29T03:00:00Z"),
            ("2026-11-29 10:00", Edge::Last, "2026-11-29T09:00:00Z"),
            ("1969-12-31T00:00:00Z", Edge::Last, "1969-12-31T00:00:00Z"),
            ("2 days ago", Edge::Last, "2026-11-28T14:00:00Z"),
            ("1 week 1h ago", Edge::Last, "2026-11-23T13:00:00Z"),
        ] {
            let found = parse_time(text, &now(), edge).unwrap();
            assert_eq!(Timestamp::from_second(found).unwrap().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_meant_as_a_time_and_is_none_is_refused() {
        for text in ["2026-13-01", "2026-02-30", "last monday", "1 day agoago", "-1 day ago", "ago", "2026-11-29T25:00"]
            .into_iter()
            .chain(["2026-11-29T12:00:00[Nowhere/Town]", "2026-11-29T12:00:00+02:00[Asia/Tokyo]"])
        {
            let error = moment(text, &now()).unwrap_err();
            assert!(error.contains("2 days ago") && error.contains("refs/tags/"), "{text}: {error}");
        }
    }

    #[test]
    fn everything_else_is_a_revision() {
        for text in
            ["", "main", "20261129", "abcdef0123", "HEAD~3", "v1-2026:x", "v1.0-rc", "HEAD@{2 days ago}", ":/a b"]
        {
            assert!(parse_time(text, &now(), Edge::Last).is_err(), "{text}");
            assert_eq!(moment(text, &now()), Ok(Moment::Revision(text.to_owned())));
        }
    }

    #[test]
    fn ranges() {
        let revision = |text: &str| Some(Moment::Revision(text.to_owned()));
        for (text, from, to) in [
            ("a..b", revision("a"), revision("b")),
            ("v1.0..", revision("v1.0"), None),
            ("..HEAD", None, revision("HEAD")),
            ("main", revision("main"), None),
        ] {
            let range: Range = text.parse().unwrap();
            assert_eq!((range.from, range.to), (from, to), "{text}");
        }
        let time = "2026-11-29T10:00:01Z".parse::<Timestamp>().unwrap().as_second();
        assert_eq!("2026-11-29T10:00:01Z..a".parse::<Range>().unwrap().from, Some(Moment::Time(time)));
        assert!("a...b".parse::<Range>().is_err() && "2026-02-30..b".parse::<Range>().is_err());
    }
}
