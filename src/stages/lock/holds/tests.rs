//! Holds, releases and rollbacks.

use super::{Act, Target, act, notes};
use crate::{
    model::{
        lock::{Hold, Lock, Lockfile},
        name::{EnvironmentId, Name},
    },
    stages::lock::{
        message,
        testing::{answers, batch, digest, environment, id, lock, locked, lockfile, name, settings},
    },
};

const A: &str = "quay.io/jupyter/scipy-notebook:2026-11-02";
const A2: &str = "quay.io/jupyter/scipy-notebook:2026-11-09";
const B: &str = "quay.io/jupyter/r-notebook:4";

/// The lock of an environment with two images, and what it was before.
fn before_and_now() -> (Lock, Lock) {
    let environments = |a: &str| batch([environment("research/geo", &[&format!("notebook={a}"), &format!("r={B}")])]);
    let before = locked(&environments(A), &answers(&[&format!("{A}=one"), &format!("{B}=one")]));
    let answers = answers(&[&format!("{A2}=two"), &format!("{B}=two")]);
    let now = lock(&environments(A2), &settings(), &before, &answers).lock;
    (before, now)
}

fn target<'a>(environment: &'a EnvironmentId, images: &'a [Name]) -> Target<'a> {
    Target { environment, images }
}

fn roll_back(then: &Lockfile) -> Act {
    Act::RollBack { then: then.clone(), revision: "0123456789".to_owned(), hold: Hold::of_person("kernels die") }
}

#[test]
fn holds_are_set_and_taken_away() {
    let (_, now) = before_and_now();
    let geo = id("research/geo");
    let hold = Act::Hold(Hold::of_person("exam\nLarder-Version: 9"));
    let held = act(&now, &settings(), target(&geo, &[name("r")]), &hold).unwrap();
    assert!(held.moves.is_empty());
    let text = message(&held, "0.1.0");
    let two = digest("two");
    let expected = format!(
        "lock: hold research/geo r at 4\n\n- research/geo r: held at {B} ({}): exam\u{fffd}Larder-Version: 9\n\n\
         Larder-Environment: research/geo\nLarder-Image: r\nLarder-Old-Digest: {two}\nLarder-New-Digest: {two}\n\
         Larder-Hold: exam\u{fffd}Larder-Version: 9\nLarder-Version: 0.1.0\n",
        two.short()
    );
    assert_eq!(text, expected);
    assert_eq!(notes(&geo, lockfile(&held.lock, "research/geo")).len(), 1);

    // Once more is nothing to do.
    assert!(act(&held.lock, &settings(), target(&geo, &[name("r")]), &hold).unwrap().files.is_empty());
    let all = act(&held.lock, &settings(), target(&geo, &[]), &hold).unwrap();
    assert!(message(&all, "0.1.0").starts_with("lock: hold research/geo notebook at 2026-11-09\n"));
    let released = act(&all.lock, &settings(), target(&geo, &[]), &Act::Release).unwrap();
    let text = message(&released, "0.1.0");
    assert!(text.starts_with("lock: release 2 images of research/geo\n"), "{text}");
    assert_eq!(text.matches("Larder-Hold: none\n").count(), 2, "{text}");
    assert_eq!(released.lock, now);
    assert!(act(&now, &settings(), target(&geo, &[]), &Act::Release).unwrap().files.is_empty());
}

#[test]
fn a_rollback_brings_the_entry_back_and_holds_it() {
    let (before, now) = before_and_now();
    let geo = id("research/geo");
    let then = lockfile(&before, "research/geo");
    let change = act(&now, &settings(), target(&geo, &[name("notebook")]), &roll_back(then)).unwrap();
    let text = message(&change, "0.1.0");
    assert!(
        text.starts_with("lock: roll back research/geo notebook to 2026-11-02\n\n- research/geo notebook: "),
        "{text}"
    );
    assert!(text.contains("Larder-Hold: kernels die\n"), "{text}");
    let entry = &lockfile(&change.lock, "research/geo").images[&name("notebook")];
    assert_eq!((entry.reference.to_string(), &entry.digest), (A.to_owned(), &digest("one")));
    assert_eq!(entry.platforms, then.images[&name("notebook")].platforms);
    assert_eq!(entry.previous[0].digest, digest("two"), "nodes keep what running sessions use");

    // What is there already keeps the reason that it is held for.
    let held =
        act(&change.lock, &settings(), target(&geo, &[name("notebook")]), &Act::Hold(Hold::of_person("CVE"))).unwrap();
    assert!(
        act(&held.lock, &settings(), target(&geo, &[name("notebook")]), &roll_back(then)).unwrap().files.is_empty()
    );

    // It stays across the changed tag, with a word about it, until it is released.
    let environments = batch([environment("research/geo", &[&format!("notebook={A2}"), &format!("r={B}")])]);
    let answers = answers(&[&format!("{A2}=three"), &format!("{B}=two")]);
    let pass = lock(&environments, &settings(), &change.lock, &answers);
    assert!(pass.files.is_empty() && pass.problems[&geo][0].message.contains("is held: \"kernels die\""));
    let released = act(&change.lock, &settings(), target(&geo, &[]), &Act::Release).unwrap();
    assert_eq!(lock(&environments, &settings(), &released.lock, &answers).moves.len(), 1);

    let all = act(&now, &settings(), target(&geo, &[]), &roll_back(then)).unwrap();
    assert!(message(&all, "0.1.0").starts_with("lock: roll back 2 images of research/geo\n"));
}

#[test]
fn what_cannot_be_done_is_said() {
    let (before, now) = before_and_now();
    let geo = id("research/geo");
    let then = lockfile(&before, "research/geo");
    let hold = Act::Hold(Hold::of_person("x"));
    let mut bounded = settings();
    bounded.tenants.get_mut(&name("research")).unwrap().bounds.registries = Some(vec!["ghcr.io/*".parse().unwrap()]);
    let cases = [
        (id("research/ego"), vec![], hold.clone(), settings(), "research/ego has no lockfile"),
        (id("other/geo"), vec![], hold.clone(), settings(), "did you mean research/geo?"),
        (geo.clone(), vec![name("x")], hold, settings(), "its images are: notebook, r"),
        (geo.clone(), vec![], roll_back(&Lockfile::default()), settings(), "had no image `notebook` in 0123456789"),
        (geo, vec![name("r")], roll_back(then), bounded, "which the tenant `research` may not use now"),
    ];
    for (id, images, wish, settings, expected) in cases {
        let failure = act(&now, &settings, target(&id, &images), &wish).unwrap_err();
        assert!(failure.to_string().contains(expected), "{failure}");
    }
}
