//! Platforms that are demanded and missing.

use super::{A, B, answered, moves, with};
use crate::{
    model::{
        environment::Strategy,
        lock::Lock,
        resolution::{ContentKind, Resolution},
    },
    stages::lock::testing::{batch, change, environment, id, index, key, locked, lockfile, messages, name},
};

#[test]
fn a_missing_platform_keeps_the_entry() {
    // demanded by the file, the nodes' architecture, offered by the index, problem
    type Case<'a> = (&'a [&'a str], &'a str, &'a [&'a str], Option<&'a str>);
    let cases: [Case; 9] = [
        (&[], "", &["linux/amd64"], None),
        (&[], "", &[], None),
        (&["linux/amd64"], "", &["linux/amd64", "linux/arm64"], None),
        (&["linux/arm64"], "", &["linux/arm64/v8"], None),
        (
            &["linux/arm64"],
            "",
            &["linux/amd64"],
            Some("not made for linux/arm64, which `platforms` demands; it is made for linux/amd64"),
        ),
        (&["linux/amd64"], "", &[], Some("it names no platform at all")),
        (
            &[],
            "arm64",
            &["linux/amd64"],
            Some("not made for linux/arm64, which its nodes are; it is made for linux/amd64"),
        ),
        (&[], "arm64", &["linux/amd64", "linux/arm64"], None),
        (&[], "arm64", &[], None),
    ];
    for (demanded, architecture, offered, expected) in cases {
        let plain = environment("research/geo", &[&with(A, "notebook")]);
        let old = locked(&batch([plain.clone()]), &answered(A, "one"));
        let mut asking = plain;
        asking.images[0].platforms = demanded.iter().map(|platform| platform.parse().unwrap()).collect();
        if !architecture.is_empty() {
            asking.placement.node_selector.insert("kubernetes.io/arch".to_owned(), architecture.to_owned());
        }
        let environments = batch([asking]);
        let change = change(&environments, &old, &Resolution::from([(key(A), Ok(index("two", offered)))]));
        match expected {
            None => {
                assert_eq!(moves(&change), ["notebook one → two"], "{demanded:?} {architecture} {offered:?}");
                assert_eq!(change.problems.len(), 0);
            }
            Some(expected) => {
                assert!(change.files.is_empty(), "{demanded:?} {architecture} {offered:?}");
                assert_eq!(change.lock, old);
                assert!(messages(&change, "research/geo")[0].contains(expected), "{:?}", change.problems);
            }
        }
    }
}

#[test]
fn a_demand_that_the_locked_digest_does_not_meet_is_said_in_every_pass() {
    let mut environment = environment("research/geo", &[&with(A, "notebook"), &with(B, "r")]);
    let old = locked(&batch([environment.clone()]), &answered(A, "one"));
    environment.images[0].platforms = vec!["linux/s390x".parse().unwrap()];
    let environments = batch([environment]);
    for resolution in [Resolution::new(), answered(A, "one")] {
        let change = change(&environments, &old, &resolution);
        assert!(change.files.is_empty());
        assert!(change.problems[&id("research/geo")][0].message.contains("linux/s390x"));
    }
}

#[test]
fn what_is_not_an_image_is_never_locked_but_as_a_volume() {
    let mut plain = environment("research/geo", &[&with(A, "notebook")]);
    let old = locked(&batch([plain.clone()]), &answered(A, "one"));
    let mut chart = index("two", &[]);
    chart.evidence.as_mut().unwrap().kind = ContentKind::Artifact("a Helm chart".to_owned());
    let answer = Resolution::from([(key(A), Ok(chart))]);
    for strategy in [Strategy::Containers, Strategy::InitContainers] {
        plain.puller.strategy = strategy;
        for before in [&old, &Lock::new()] {
            let change = change(&batch([plain.clone()]), before, &answer);
            assert!(change.files.is_empty());
            let said = messages(&change, "research/geo").join(" ");
            assert!(said.contains(&format!("{A} is a Helm chart, not a container image")), "{said}");
        }
    }
    plain.puller.strategy = Strategy::ImageVolumes;
    assert_eq!(moves(&change(&batch([plain]), &old, &answer)), ["notebook one → two"]);
}

#[test]
fn a_gap_in_the_evidence_is_filled_once_it_can_be_and_never_made() {
    let environments = batch([environment("research/geo", &[&with(A, "notebook")])]);
    let resolved = |missing: &[usize]| {
        let mut image = index("one", &["linux/amd64", "linux/arm64"]);
        let platforms = &mut image.evidence.as_mut().unwrap().platforms;
        missing.iter().for_each(|&at| platforms[at].size = None);
        Resolution::from([(key(A), Ok(image))])
    };
    let sizes = |lock: &Lock| -> Vec<bool> {
        let platforms = &lockfile(lock, "research/geo").images[&name("notebook")].platforms;
        platforms.iter().map(|manifest| manifest.size.is_some()).collect()
    };
    let mut lock = Lock::new();
    for (missing, expected) in
        [(&[0, 1][..], [false, false]), (&[0], [false, true]), (&[1], [true, true]), (&[0, 1], [true, true])]
    {
        lock = change(&environments, &lock, &resolved(missing)).lock;
        assert_eq!(sizes(&lock), expected, "{missing:?}");
    }
}
