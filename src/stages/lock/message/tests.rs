//! Messages of lock commits.

use super::message;
use crate::{
    model::lock::{Hold, HoldChange, Lock, LockChange, Previous},
    stages::lock::testing::{answers, batch, change, digest, environment, id, locked, settings},
};

const OLD: &str = "quay.io/jupyter/scipy-notebook:2026-11-02";
const NEW: &str = "quay.io/jupyter/scipy-notebook:2026-11-09";
const OTHER: &str = "ghcr.io/jupyter/datascience-notebook:5";

/// The change from environments to environments, each as `id image=reference…`, with answers `reference=word`.
fn changed(before: &[&str], first: &[&str], after: &[&str], second: &[&str]) -> LockChange {
    let build = |specs: &[&str]| {
        batch(specs.iter().map(|spec| {
            let mut words = spec.split(' ');
            environment(words.next().unwrap(), &words.collect::<Vec<_>>())
        }))
    };
    let mut settings = settings();
    settings.prune.budget = 100;
    let old = locked(&build(before), &answers(first));
    crate::stages::lock::testing::lock(&build(after), &settings, &old, &answers(second))
}

fn subject_of(change: &LockChange) -> String {
    message(change, "0.1.0").lines().next().unwrap().to_owned()
}

#[test]
fn subjects() {
    let geo = |reference: &str| format!("research/geo notebook={reference}");
    let (old, new, other) = (geo(OLD), geo(NEW), geo(OTHER));
    let two = format!("research/geo notebook={OLD} r={OTHER}");
    let maps = format!("research/maps notebook={OLD}");
    let long = format!("research/{} notebook={OLD}", "a".repeat(80));
    let a = &[format!("{OLD}=one"), format!("{NEW}=two"), format!("{OTHER}=three")];
    let b = &[format!("{OLD}=two"), format!("{NEW}=two"), format!("{OTHER}=two")];
    let (one, two_words) = (digest("one"), digest("two"));
    let digests = format!("lock: research/geo notebook {} → {}", one.short(), two_words.short());
    let cut = format!("lock: add research/{}…", "a".repeat(52));
    type Case<'a> = (&'a [&'a str], &'a [&'a str], &'a [String; 3], &'a str);
    let cases: [Case; 13] = [
        (&[&old], &[&new], a, "lock: research/geo notebook 2026-11-02 → 2026-11-09"),
        (&[&old], &[&old], b, &digests),
        (&[&old], &[&other], a, "lock: research/geo notebook → datascience-notebook:5"),
        (&[&old], &[&two], a, "lock: add research/geo r 5"),
        (&[&two], &[&old], a, "lock: remove research/geo r"),
        (&[&two], &[&two], b, "lock: 2 images of research/geo"),
        (&[], &[&old], a, "lock: add research/geo"),
        (&[], &[&two], a, "lock: add research/geo"),
        (&[], &[&two, &maps], a, "lock: add 2 environments"),
        (&[&old, &maps], &[&maps], a, "lock: remove research/geo"),
        (&[&two, &maps], &[&two, &maps], b, "lock: 3 images of 2 environments"),
        (&[&old], &[&old, &maps], b, "lock: 2 images of 2 environments"),
        (&[], &[&long], a, &cut),
    ];
    for (before, after, second, expected) in cases {
        let first: Vec<&str> = a.iter().map(String::as_str).collect();
        let second: Vec<&str> = second.iter().map(String::as_str).collect();
        let subject = subject_of(&changed(before, &first, after, &second));
        assert_eq!(subject, expected);
        assert!(subject.chars().count() <= 72);
    }
}

#[test]
fn fewer_former_digests_are_no_move() {
    let geo = |retain: usize| {
        let mut built = environment("research/geo", &[&format!("notebook={OLD}")]);
        built.puller.retain = retain;
        batch([built])
    };
    let first = locked(&geo(1), &answers(&[&format!("{OLD}=one")]));
    let old = change(&geo(1), &first, &answers(&[&format!("{OLD}=two")])).lock;
    let change = change(&geo(0), &old, &answers(&[]));
    let expected = "lock: trim research/geo\n\n- research/geo: as many previous digests as are retained\n\n\
                    Larder-Environment: research/geo\nLarder-Version: 0.1.0\n";
    assert_eq!(message(&change, "0.1.0"), expected);
}

#[test]
fn holds_beside_moves() {
    let (a, b) = (format!("research/a notebook={OLD} r={OTHER}"), format!("research/b notebook={OLD}"));
    let first = [format!("{OLD}=one"), format!("{OTHER}=one")];
    let first: Vec<&str> = first.iter().map(String::as_str).collect();
    let moved = changed(&[&a, &b], &first, &[&a, &b], &[&format!("{OLD}=two"), &format!("{OTHER}=two")]);
    let hold = |environment: &str, image: &str, reason: Option<&str>| HoldChange {
        environment: id(environment),
        image: image.parse().unwrap(),
        at: Previous { reference: OLD.parse().unwrap(), digest: digest("one") },
        hold: reason.map(Hold::of_person),
    };
    // The images whose moves stay in the change, and the holds.
    type Case<'a> = (&'a [(&'a str, &'a str)], Vec<HoldChange>, &'a str);
    let cases: [Case; 6] = [
        (&[], vec![hold("research/a", "r", Some("x"))], "lock: hold research/a r at 2026-11-02"),
        (&[], vec![hold("research/a", "r", None)], "lock: release research/a r"),
        (
            &[("research/a", "r")],
            vec![hold("research/a", "r", Some("x"))],
            "lock: roll back research/a r to 2026-11-02",
        ),
        (&[("research/b", "notebook")], vec![hold("research/a", "r", Some("x"))], "lock: hold 1 image, move 1 image"),
        (
            &[],
            vec![hold("research/a", "notebook", Some("x")), hold("research/a", "r", None)],
            "lock: hold 1 image, release 1 image of research/a",
        ),
        (
            &[],
            vec![hold("research/a", "r", Some("x")), hold("research/b", "notebook", Some("x"))],
            "lock: hold 2 images",
        ),
    ];
    for (moves, holds, expected) in cases {
        let mut change = moved.clone();
        change.moves.retain(|moved| {
            moves
                .iter()
                .any(|(environment, image)| moved.environment == id(environment) && moved.image.as_str() == *image)
        });
        change.holds = holds;
        assert_eq!(subject_of(&change), expected);
        // Each image has its four trailers, so that the n-th values belong together.
        let text = message(&change, "0.1.0");
        let count = |key: &str| text.lines().filter(|line| line.starts_with(key)).count();
        assert_eq!(count("Larder-Image: "), count("Larder-New-Digest: "));
        assert_eq!(count("Larder-Hold: "), change.holds.len());
    }
}

/// `none` alone means that a hold was taken away.
#[test]
fn no_reason_reads_as_something_else() {
    for (reason, value) in [
        ("exam on Friday", "exam on Friday"),
        ("none", "\"none\""),
        (" none ", "\" none \""),
        ("none of your business", "none of your business"),
        ("\"none\"", "\"\\\"none\\\"\""),
        ("\"quoted\" word", "\"\\\"quoted\\\" word\""),
        ("a\nLarder-Hold: none", "a\u{fffd}Larder-Hold: none"),
    ] {
        let mut change = changed(&[&format!("research/a r={OLD}")], &[&format!("{OLD}=one")], &[], &[]);
        change.holds = vec![HoldChange {
            environment: id("research/a"),
            image: "r".parse().unwrap(),
            at: Previous { reference: OLD.parse().unwrap(), digest: digest("one") },
            hold: Some(Hold::of_person(reason)),
        }];
        let text = message(&change, "0.1.0");
        assert!(text.contains(&format!("\nLarder-Hold: {value}\n")), "{text}");
    }
}

#[test]
fn the_whole_message() {
    let before = format!("research/geo notebook={OLD}");
    let after = [format!("research/geo notebook={NEW}"), format!("teaching/intro r={OTHER}")];
    let change = changed(
        &[&before],
        &[&format!("{OLD}=one")],
        &[&after[0], &after[1]],
        &[&format!("{NEW}=two"), &format!("{OTHER}=three")],
    );
    let (one, two, three) = (digest("one"), digest("two"), digest("three"));
    let expected = format!(
        "lock: 2 images of 2 environments\n\n\
         - research/geo notebook: {OLD} ({}) → {NEW} ({})\n\
         - teaching/intro r: none → {OTHER} ({})\n\n\
         Larder-Environment: research/geo\nLarder-Image: notebook\nLarder-Old-Digest: {one}\nLarder-New-Digest: {two}\n\
         Larder-Environment: teaching/intro\nLarder-Image: r\nLarder-Old-Digest: none\nLarder-New-Digest: {three}\n\
         Larder-Version: 0.1.0\n",
        one.short(),
        two.short(),
        three.short()
    );
    assert_eq!(message(&change, "0.1.0"), expected);
}

// What people name things cannot become a line of its own.
#[test]
fn nothing_ends_a_line_early() {
    let environments = batch([environment("research/Larder-New-Digest: x", &[&format!("Larder-Image: y={OLD}")])]);
    let change = change(&environments, &Lock::new(), &answers(&[&format!("{OLD}=one")]));
    let text = message(&change, "0.1.0\nLarder-Image: forged");
    let (_, trailers) = text.trim_end().rsplit_once("\n\n").unwrap();
    let keys: Vec<&str> = trailers.lines().map(|line| line.split_once(':').unwrap().0).collect();
    assert_eq!(
        keys,
        ["Larder-Environment", "Larder-Image", "Larder-Old-Digest", "Larder-New-Digest", "Larder-Version"]
    );
}

#[test]
fn a_long_body_is_cut_but_no_trailer() {
    let specs: Vec<String> = (0..300).map(|n| format!("research/e{n} notebook={OLD}")).collect();
    let specs: Vec<&str> = specs.iter().map(String::as_str).collect();
    let change = changed(&[], &[], &specs, &[&format!("{OLD}=one")]);
    let text = message(&change, "0.1.0");
    assert_eq!(text.lines().filter(|line| line.starts_with("- ")).count(), 201);
    assert!(text.contains("- and 100 more; the trailers name all of them\n"));
    assert_eq!(text.matches("Larder-Environment: ").count(), 300);
    assert!(change.lock.contains_key(&id("research/e299")));
}
