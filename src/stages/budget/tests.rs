//! How much may go at once.

use std::collections::BTreeSet;

use super::{decide, decide_beside};
use crate::model::{
    failure::Category,
    name::EnvironmentId,
    settings::{Confirmed, Prune},
};

/// `10 research` is `research/e0` … `research/e9`; other words are identities.
fn set(text: &str) -> BTreeSet<EnvironmentId> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut ids = BTreeSet::new();
    for (index, word) in words.iter().enumerate() {
        match word.parse::<usize>() {
            Ok(count) => {
                ids.extend((0..count).map(|n| format!("{}/e{n}", words[index + 1]).parse::<EnvironmentId>().unwrap()));
            }
            Err(_) if word.contains('/') => {
                ids.insert(word.parse().unwrap());
            }
            Err(_) => {}
        }
    }
    ids
}

fn prune(confirmed: &str) -> Prune {
    let confirmed = confirmed.split_whitespace().map(|word| match word.strip_suffix("/*") {
        Some(tenant) => Confirmed::Tenant(tenant.parse().unwrap()),
        None => Confirmed::Environment(word.parse().unwrap()),
    });
    Prune { budget: 30, confirmed: confirmed.collect() }
}

#[test]
fn decisions() {
    // existing, removed, in Git now, confirmed, blocked
    let cases = [
        ("10 research", "", "", "", ""),
        ("10 research", "1 research", "", "", ""),
        ("10 research", "3 research", "", "", ""),
        ("10 research", "4 research", "", "", "4 research"),
        ("10 research", "10 research", "", "", "10 research"),
        ("2 research", "1 research", "", "", ""),
        ("2 research", "2 research", "", "", "2 research"),
        ("1 research", "1 research", "", "", "1 research"),
        ("1 research", "1 research", "", "research/e0", ""),
        ("1 research", "1 research", "research/new", "", ""),
        ("1 research", "1 research", "teaching/new", "", "1 research"),
        ("10 research", "10 research", "100 teaching research/new", "", "10 research"),
        ("100 research 1 teaching", "1 teaching", "", "", "1 teaching"),
        ("100 research 1 teaching", "1 teaching 1 research", "", "", "1 teaching"),
        ("100 research 1 teaching", "1 teaching 1 research", "", "teaching/*", ""),
        ("10 research", "10 research", "", "research/*", ""),
        ("10 research", "4 research", "", "research/e0", "research/e1 research/e2 research/e3"),
        ("10 research", "3 research", "", "research/e0", ""),
        (
            "10 research",
            "10 research",
            "",
            "research/e0 research/e1 research/e2 research/e3 research/e4 research/e5 research/e6 research/e7 research/e8",
            "research/e9",
        ),
        ("0 research", "0 research", "", "", ""),
        // A tenant over its budget stops no other.
        ("10 alpha 2 beta", "5 alpha 1 beta", "", "", "5 alpha"),
        ("10 alpha 10 beta", "10 alpha 3 beta", "", "", "10 alpha"),
        ("100 alpha 2 beta", "30 alpha 1 beta", "", "", ""),
        // One of each of many tenants is much of all, and then these wait, and nobody else.
        ("2 a 2 b 2 c", "1 a 1 b 1 c", "", "", "1 a 1 b 1 c"),
        ("2 a 2 b 2 c 10 d", "1 a 1 b 1 c 3 d", "", "", ""),
        ("2 a 2 b 2 c 10 d", "1 a 1 b 1 c 4 d", "", "", "4 d"),
        ("2 a 2 b 2 c 5 d", "1 a 1 b 1 c 1 d", "", "", ""),
        ("2 a 2 b 2 c 3 d", "1 a 1 b 1 c 1 d", "", "", "1 a 1 b 1 c 1 d"),
        ("2 a 2 b 2 c", "1 a 1 b 1 c", "", "a/e0 b/*", ""),
    ];
    for (existing, removed, present, confirmed, blocked) in cases {
        let decision = decide_beside(&set(existing), &set(removed), &set(present), &prune(confirmed));
        let found: BTreeSet<_> =
            decision.err().map(|blocked| blocked.environments).unwrap_or_default().into_iter().collect();
        assert_eq!(found, set(blocked), "{removed} of {existing}, {present} in Git, {confirmed} confirmed");
    }
    let strict = Prune { budget: 0, confirmed: vec![] };
    assert!(decide(&set("10 research"), &set("1 research"), &strict).is_ok(), "one always may");
    assert!(decide(&set("10 research"), &set("2 research"), &strict).is_err());
    let all = Prune { budget: 100, confirmed: vec![] };
    assert!(decide(&set("10 research"), &set("9 research"), &all).is_ok());
    assert!(decide(&set("10 research"), &set("10 research"), &all).is_err(), "all of a tenant");
}

#[test]
fn the_message_names_the_removals_and_the_hint_how_to_confirm_them() {
    let blocked = decide(&set("5 research 2 teaching"), &set("4 research 2 teaching"), &prune("")).unwrap_err();
    assert_eq!(blocked.problem.category, Category::Budget);
    assert_eq!(
        blocked.problem.message,
        "all environments of the tenant `teaching` would be removed; \
         4 of 5 environments of `research` would be removed, more than the budget of 30 %: \
         research/e0, research/e1, research/e2 and 3 more"
    );
    assert_eq!(
        blocked.problem.hint.as_deref(),
        Some(
            "restore the files, or, if the removal is wanted, confirm it in larder.yaml:\n\
             spec:\n  prune:\n    confirmed:\n      - \"research/e0\"\n      - \"research/e1\"\n      - \"research/e2\"\n      \
             - \"research/e3\"\n      - \"teaching/*\""
        )
    );
    let last = decide(&set("50 research 1 teaching"), &set("1 teaching"), &prune("")).unwrap_err();
    assert_eq!(last.problem.message, "all environments of the tenant `teaching` would be removed: teaching/e0");
    let each = decide(&set("2 a 2 b 2 c"), &set("1 a 1 b 1 c"), &prune("")).unwrap_err();
    assert_eq!(
        each.problem.message,
        "one environment of each of 3 tenants, 3 of 6 in all, would be removed, more than the budget of 30 %: \
         a/e0, b/e0, c/e0"
    );
    let many = decide(&set("200 research"), &set("199 research"), &prune("")).unwrap_err();
    assert!(many.problem.hint.unwrap().ends_with("\n      # and 149 more"));
}

#[test]
fn what_the_hint_says_is_enough() {
    for (existing, removed) in [("5 research 2 teaching", "4 research 2 teaching"), ("9 research", "9 research")] {
        let blocked = decide(&set(existing), &set(removed), &prune("")).unwrap_err();
        let hint = blocked.problem.hint.unwrap();
        let confirmed: Vec<String> = hint
            .lines()
            .filter_map(|line| Some(line.trim().strip_prefix("- \"")?.strip_suffix('"')?.to_owned()))
            .collect();
        assert_eq!(decide(&set(existing), &set(removed), &prune(&confirmed.join(" "))), Ok(()));
    }
}
