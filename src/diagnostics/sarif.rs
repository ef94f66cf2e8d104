//! Problems as SARIF 2.1.0, which code scanning services and editors read.
//!
//! Source: <https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html>.

use std::collections::BTreeSet;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::model::{
    failure::{Location, Problem},
    text::lines,
};

use super::{Severity, path_from};

/// What the path of a URI may hold as it is. Source: RFC 3986, section 2.3.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// A log with one run. `directory` is where the environment repository is in the whole one, which is `%SRCROOT%`.
pub fn log<'a>(problems: impl IntoIterator<Item = (Severity, &'a Problem)>, directory: &str) -> Value {
    let problems: Vec<(Severity, &Problem)> = problems.into_iter().collect();
    let codes: BTreeSet<&str> = problems.iter().map(|(_, problem)| problem.code()).collect();
    let codes: Vec<&str> = codes.into_iter().collect();
    let result = |(severity, problem): &(Severity, &Problem)| {
        let level = match severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let hint = problem.hint.as_deref().map(|hint| format!("\nhint: {}", lines(hint))).unwrap_or_default();
        let locations: Vec<Value> = problem.location.iter().map(|place| location(place, directory)).collect();
        json!({
            "ruleId": problem.code(),
            "ruleIndex": codes.iter().position(|code| *code == problem.code()),
            "level": level,
            "message": {"text": format!("{}{hint}", lines(&problem.message))},
            "locations": locations,
        })
    };
    let rule = |code: &&str| json!({"id": code, "shortDescription": {"text": code.replace('-', " ")}});
    json!({
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "larder",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": codes.iter().map(rule).collect::<Vec<_>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "results": problems.iter().map(result).collect::<Vec<_>>(),
        }],
    })
}

fn location(location: &Location, directory: &str) -> Value {
    let path = path_from(directory, &location.path);
    let uri = utf8_percent_encode(&path, PATH).to_string();
    let mut physical = json!({"artifactLocation": {"uri": uri, "uriBaseId": "%SRCROOT%"}});
    if location.line > 0 {
        physical["region"] = match location.column {
            0 => json!({"startLine": location.line}),
            column => json!({
                "startLine": location.line,
                "startColumn": column,
                "endColumn": column + location.length.max(1),
            }),
        };
    }
    json!({"physicalLocation": physical})
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::log;
    use crate::{
        diagnostics::Severity,
        model::{
            failure::{Category, Problem, Source},
            lint::Lint,
        },
    };

    #[test]
    fn a_log_has_what_the_standard_demands() {
        let source = Source { path: "environments/t/ü b.yaml".to_owned(), text: "a: 1\n".into() };
        let problems = [
            (Severity::Error, Problem::new(Category::Schema, "wrong").at(&source, 1, 4, 2).hint("right")),
            (Severity::Warning, Problem::new(Category::Reference, "odd").lint(Lint::MutableTag).at(&source, 1, 0, 0)),
            (Severity::Warning, Problem::new(Category::Git, "gone").in_file("larder.yaml")),
            (Severity::Error, Problem::new(Category::Git, "gone")),
        ];
        let log = log(problems.iter().map(|(severity, problem)| (*severity, problem)), "envs");
        assert_eq!(log["version"], "2.1.0");
        let run = &log["runs"][0];
        assert_eq!(run["tool"]["driver"]["name"], "larder");
        let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
        assert_eq!(rules.iter().map(|rule| &rule["id"]).collect::<Vec<_>>(), ["git", "mutable-tag", "schema"]);
        let results = run["results"].as_array().unwrap();
        for result in results {
            let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
            assert_eq!(rules[index]["id"], result["ruleId"]);
            assert!(["error", "warning"].contains(&result["level"].as_str().unwrap()));
            assert!(!result["message"]["text"].as_str().unwrap().is_empty());
        }
        assert_eq!(results[0]["message"]["text"], "wrong\nhint: right");
        assert_eq!(
            results[0]["locations"],
            json!([{"physicalLocation": {
                "artifactLocation": {"uri": "envs/environments/t/%C3%BC%20b.yaml", "uriBaseId": "%SRCROOT%"},
                "region": {"startLine": 1, "startColumn": 4, "endColumn": 6},
            }}])
        );
        let region = |index: usize| &results[index]["locations"][0]["physicalLocation"]["region"];
        assert_eq!((region(1), region(2)), (&json!({"startLine": 1}), &Value::Null));
        assert_eq!(results[3]["locations"], json!([]));
    }
}
