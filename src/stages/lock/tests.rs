//! What moves a lock, and what does not.

mod demands;
mod properties;
mod races;
mod removal;

use super::{
    Inputs, holds, lock, message,
    testing::{
        TODAY, answers, batch, change, digest, environment, id, index, inputs, key, locked, lockfile, messages, name,
        settings, unavailable,
    },
    verdict::Guards,
};
use crate::{
    model::{
        failure::{Category, Problem},
        lock::{Hold, HoldOrigin, Lock, LockChange, Previous},
        resolution::Resolution,
    },
    stages::lockfile,
};

const A: &str = "quay.io/jupyter/scipy-notebook:2026-11-02";
const A2: &str = "quay.io/jupyter/scipy-notebook:2026-11-09";
const B: &str = "quay.io/jupyter/r-notebook:4";

fn with(reference: &str, image: &str) -> String {
    format!("{image}={reference}")
}

fn answered(reference: &str, word: &str) -> Resolution {
    answers(&[&format!("{reference}={word}")])
}

/// `name old → new` of each move, digests as the words they belong to.
fn moves(change: &LockChange) -> Vec<String> {
    let word = |found: &Option<Previous>| match found {
        None => "-".to_owned(),
        Some(entry) => {
            let known = ["one", "two", "three"].into_iter().find(|word| digest(word) == entry.digest);
            known.unwrap_or("?").to_owned()
        }
    };
    change.moves.iter().map(|moved| format!("{} {} → {}", moved.image, word(&moved.old), word(&moved.new))).collect()
}

#[test]
fn a_new_environment_is_locked() {
    let environments = batch([environment("research/geo", &[&with(A, "notebook"), &with(B, "r")])]);
    let change = change(&environments, &Lock::new(), &answers(&[&format!("{A}=one"), &format!("{B}=two")]));

    assert_eq!(moves(&change), ["notebook - → one", "r - → two"]);
    assert_eq!(change.files.keys().collect::<Vec<_>>(), ["lock/research/geo.yaml"]);
    assert_eq!(change.problems.len(), 0);
    let bytes = change.files["lock/research/geo.yaml"].as_ref().unwrap();
    assert_eq!(lockfile::parse("lock/research/geo.yaml", bytes).unwrap(), *lockfile(&change.lock, "research/geo"));
}

// Nothing new, no commit; both images stay in the file.
#[test]
fn the_same_answers_change_nothing() {
    let environments = batch([environment("research/geo", &[&with(A, "notebook"), &with(B, "r")])]);
    let resolution = answers(&[&format!("{A}=one"), &format!("{B}=two")]);
    let old = locked(&environments, &resolution);

    for resolution in [&resolution, &Resolution::new(), &answered(A, "one")] {
        let change = change(&environments, &old, resolution);
        assert_eq!(change, LockChange { lock: old.clone(), ..LockChange::default() });
    }
}

// An answer for one image does not drop the other.
#[test]
fn a_moved_image_leaves_the_others_in_the_file() {
    let environments = batch([environment("research/geo", &[&with(A, "notebook"), &with(B, "r")])]);
    let old = locked(&environments, &answers(&[&format!("{A}=one"), &format!("{B}=two")]));
    let change = change(&environments, &old, &answered(A, "three"));

    assert_eq!(moves(&change), ["notebook one → three"]);
    let (before, after) = (lockfile(&old, "research/geo"), lockfile(&change.lock, "research/geo"));
    assert_eq!(before.images[&name("r")], after.images[&name("r")]);
}

// "as known" keeps media type and platforms.
#[test]
fn an_answer_as_known_keeps_the_entry() {
    let environments = batch([environment("research/geo", &[&with(A, "notebook")])]);
    let old = locked(&environments, &answered(A, "one"));
    let mut known = index("one", &[]);
    known.evidence = None;
    let change = change(&environments, &old, &Resolution::from([(key(A), Ok(known))]));
    assert_eq!(change, LockChange { lock: old, ..LockChange::default() });
}

#[test]
fn an_answer_as_known_is_no_answer_where_nothing_is_known() {
    let environments = batch([environment("research/geo", &[&with(A, "notebook")])]);
    let mut known = index("one", &[]);
    known.evidence = None;
    let change = change(&environments, &Lock::new(), &Resolution::from([(key(A), Ok(known))]));
    assert!(change.files.is_empty());
    assert_eq!(messages(&change, "research/geo").len(), 1);
}

// Invariant 7.
#[test]
fn a_registry_error_keeps_the_entry_with_a_problem() {
    let environments = batch([environment("research/geo", &[&with(A, "notebook"), &with(B, "r")])]);
    let old = locked(&environments, &answers(&[&format!("{A}=one"), &format!("{B}=two")]));
    let change = change(&environments, &old, &answers(&[&format!("{A}=!"), &format!("{B}=three")]));

    assert_eq!(moves(&change), ["r two → three"]);
    let short = digest("one").short().to_owned();
    let problem = &change.problems[&id("research/geo")][0];
    assert_eq!(problem.message, format!("image `notebook` stays at {A} ({short}): {A}: the registry answered 503"));
    assert_eq!(problem.category, Category::Registry);
    assert_eq!(problem.hint.as_deref(), Some("try later"));
    let place = problem.location.as_ref().unwrap();
    assert_eq!(place.to_string(), "environments/research/geo.yaml:6");
}

#[test]
fn a_new_image_whose_registry_fails_is_left_out() {
    let environments = batch([environment("research/geo", &[&with(A, "notebook"), &with(B, "r")])]);
    let change = change(&environments, &Lock::new(), &answers(&[&format!("{A}=!"), &format!("{B}=two")]));
    assert_eq!(moves(&change), ["r - → two"]);
    assert!(change.problems[&id("research/geo")][0].message.starts_with("image `notebook` is not locked yet: "));

    let nothing =
        super::testing::change(&environments, &Lock::new(), &answers(&[&format!("{A}=!"), &format!("{B}=!")]));
    assert!(nothing.files.is_empty(), "no lockfile without an entry");
    assert!(lockfile(&nothing.lock, "research/geo").images.is_empty());
}

#[test]
fn a_changed_reference_waits_for_its_registry() {
    let old = locked(&batch([environment("research/geo", &[&with(A, "notebook")])]), &answered(A, "one"));
    let environments = batch([environment("research/geo", &[&with(A2, "notebook")])]);

    for (resolution, problem) in [(answered(A2, "!"), "503"), (Resolution::new(), "was not resolved")] {
        let change = change(&environments, &old, &resolution);
        assert!(change.files.is_empty());
        assert_eq!(change.lock, old);
        assert!(messages(&change, "research/geo")[0].contains(problem));
    }
    let change = change(&environments, &old, &answered(A2, "two"));
    assert_eq!(moves(&change), ["notebook one → two"]);
    let entry = &lockfile(&change.lock, "research/geo").images[&name("notebook")];
    assert_eq!((entry.reference.to_string(), entry.previous[0].reference.to_string()), (A2.to_owned(), A.to_owned()));
}

#[test]
fn another_tag_of_the_same_digest_is_a_move_without_a_former_digest() {
    let old = locked(&batch([environment("research/geo", &[&with(A, "notebook")])]), &answered(A, "one"));
    let change = change(&batch([environment("research/geo", &[&with(A2, "notebook")])]), &old, &answered(A2, "one"));
    assert_eq!(moves(&change), ["notebook one → one"]);
    let entry = &lockfile(&change.lock, "research/geo").images[&name("notebook")];
    assert_eq!((entry.reference.to_string(), entry.previous.len()), (A2.to_owned(), 0));
}

// Two versions of larder that see an index's platforms differently do not undo each other's commits.
#[test]
fn the_same_digest_keeps_what_was_written_about_it() {
    let environments = batch([environment("research/geo", &[&with(A, "notebook")])]);
    let old = locked(&environments, &answered(A, "one"));
    let other = Resolution::from([(key(A), Ok(index("one", &["linux/amd64", "linux/arm64"])))]);
    assert!(change(&environments, &old, &other).files.is_empty());
}

#[test]
fn removed_images_leave_and_renamed_ones_keep_their_entry() {
    let old = locked(
        &batch([environment("research/geo", &[&with(A, "notebook"), &with(B, "r")])]),
        &answers(&[&format!("{A}=one"), &format!("{B}=two")]),
    );
    let environments = batch([environment("research/geo", &[&with(A, "python")])]);
    for resolution in [answered(A, "!"), answered(A, "one")] {
        let change = change(&environments, &old, &resolution);
        assert_eq!(moves(&change), ["notebook one → -", "python - → one", "r two → -"]);
        let (before, after) = (lockfile(&old, "research/geo"), lockfile(&change.lock, "research/geo"));
        assert_eq!(before.images[&name("notebook")], after.images[&name("python")]);
    }
}

// Invariant 7: a new name with a new reference that fails is no reason to give up what was there.
#[test]
fn removed_images_stay_until_all_that_the_file_names_are_locked() {
    let old = locked(
        &batch([environment("research/geo", &[&with(A, "notebook"), &with(B, "r")])]),
        &answers(&[&format!("{A}=one"), &format!("{B}=two")]),
    );
    for images in [vec![with(A2, "python")], vec![with(A2, "python"), with(B, "r")], vec![with(A2, "notebook")]] {
        let images: Vec<&str> = images.iter().map(String::as_str).collect();
        let environments = batch([environment("research/geo", &images)]);
        for resolution in [answered(A2, "!"), Resolution::new()] {
            let change = change(&environments, &old, &resolution);
            assert!(change.files.is_empty() && change.moves.is_empty(), "{images:?}: {:?}", change.moves);
            assert_eq!(change.lock, old);
            assert_eq!(messages(&change, "research/geo").len(), 1);
        }
    }
    // What is only renamed is not kept twice, and continues from its entry.
    let both = batch([environment("research/geo", &[&with(A, "python"), &with(A2, "new")])]);
    let waiting = change(&both, &old, &answered(A2, "!"));
    assert_eq!(moves(&waiting), ["notebook one → -", "python - → one"]);
    let done = change(&both, &waiting.lock, &answered(A2, "three"));
    assert_eq!(moves(&done), ["new - → three", "r two → -"]);
    // Back to what was there: it never left.
    let back = batch([environment("research/geo", &[&with(A, "python")])]);
    assert_eq!(moves(&change(&back, &old, &answered(A, "one"))), ["notebook one → -", "python - → one", "r two → -"]);
}

// A held entry moves for nothing; a wish for another reference is said to be held.
#[test]
fn a_held_entry_does_not_move() {
    let environments = batch([environment("research/geo", &[&with(A, "notebook")])]);
    let mut old = locked(&environments, &answered(A, "one"));
    let lockfile = old.get_mut(&id("research/geo")).unwrap().as_mut().unwrap();
    lockfile.images.get_mut(&name("notebook")).unwrap().hold = Some(Hold::of_person("reverted by a person"));

    for resolution in [answered(A, "two"), answered(A, "!"), Resolution::new()] {
        let change = change(&environments, &old, &resolution);
        assert_eq!(change, LockChange { lock: old.clone(), ..LockChange::default() });
    }
    let other = batch([environment("research/geo", &[&with(A2, "notebook")])]);
    let change = change(&other, &old, &answered(A2, "two"));
    assert!(change.files.is_empty());
    let message = &messages(&change, "research/geo")[0];
    assert!(message.contains("held: \"reverted by a person\""), "{message}");
    assert!(message.contains("`larder release research/geo notebook` lets it move again"), "{message}");
}

// A reference that a person commits lifts what larder held after a revert, and at once; what a person held stays.
#[test]
fn another_reference_lifts_a_hold_of_a_revert_alone() {
    let before = batch([environment("research/geo", &[&with(A, "notebook")])]);
    let after = batch([environment("research/geo", &[&with(A2, "notebook")])]);
    let held = |origin: HoldOrigin| {
        let mut old = locked(&before, &answered(A, "one"));
        let lockfile = old.get_mut(&id("research/geo")).unwrap().as_mut().unwrap();
        let hold = Hold { origin, ..Hold::of_person("why") };
        lockfile.images.get_mut(&name("notebook")).unwrap().hold = Some(hold);
        old
    };
    let revert = |instead_of: &str| held(HoldOrigin::Revert { instead_of: instead_of.parse().unwrap() });
    let cases = [
        ("a revert, and another tag", revert(A), &after, true),
        ("a revert, and the same tag", revert(A), &before, false),
        ("the lock alone was reverted, and the file continues asking for the new tag", revert(A2), &after, false),
        ("the same, and the file asks for the earlier tag as well", revert(A2), &before, true),
        ("a person's hold", held(HoldOrigin::Person), &after, false),
    ];
    for (what, old, environments, is_lifted) in cases {
        let resolution = answers(&[&format!("{A}=two"), &format!("{A2}=two")]);
        let locked = change(environments, &old, &resolution);
        assert_eq!(moves(&locked) == ["notebook one → two"], is_lifted, "{what}");
        assert_eq!(locked.holds.len(), usize::from(is_lifted), "{what}");
        // It is lifted although the registry does not answer: otherwise it would be forgotten why.
        let locked = change(environments, &old, &answers(&[&format!("{A}=!"), &format!("{A2}=!")]));
        assert_eq!((locked.moves.len(), locked.holds.len()), (0, usize::from(is_lifted)), "{what}");
    }
}

#[test]
fn a_hold_ends_after_its_last_day() {
    let environments = batch([environment("research/geo", &[&with(A, "notebook")])]);
    let mut old = change(&environments, &locked(&environments, &answered(A, "one")), &answered(A, "two")).lock;
    let lockfile = old.get_mut(&id("research/geo")).unwrap().as_mut().unwrap();
    let until = Some(TODAY);
    lockfile.images.get_mut(&name("notebook")).unwrap().hold = Some(Hold { until, ..Hold::of_person("exam") });
    let (settings, steadiness) = (settings(), Default::default());
    // That it goes back to what it had before needs no second answer: the hold has ended, and that is known.
    for word in ["three", "one"] {
        let resolution = answered(A, word);
        let guards = Guards { steadiness: Some(&steadiness), ..Guards::default() };
        let inputs = Inputs { guards, ..inputs(&environments, &settings, &old, &resolution) };
        assert_eq!(lock(&inputs).files.len(), 0, "its last day");
        assert_eq!(holds::next_end(&old, TODAY), TODAY.tomorrow().ok());
        let after = lock(&Inputs { today: TODAY.tomorrow().unwrap(), ..inputs });
        assert_eq!(moves(&after), [format!("notebook two → {word}")]);
        let text = message(&after, "0.1.0");
        assert!(text.starts_with("lock: research/geo notebook sha256:"), "{text}");
        assert!(text.contains("\nLarder-Hold: none\n"), "{text}");
    }
    let tomorrow = TODAY.tomorrow().unwrap();
    let nothing = Resolution::new();
    let after = lock(&Inputs { today: tomorrow, ..inputs(&environments, &settings, &old, &nothing) });
    assert!(message(&after, "0.1.0").starts_with("lock: release research/geo notebook\n"));
    assert_eq!(holds::next_end(&old, tomorrow), None);
}

#[test]
fn former_digests_are_kept_newest_first_without_repetition() {
    let mut environment = environment("research/geo", &[&with(A, "notebook")]);
    environment.puller.retain = 2;
    let environments = batch([environment.clone()]);
    let mut lock = locked(&environments, &answered(A, "one"));
    let former = |lock: &Lock| -> Vec<_> {
        let entry = &lockfile(lock, "research/geo").images[&name("notebook")];
        entry.previous.iter().map(|previous| previous.digest.clone()).collect()
    };
    let steps: [(&str, &[&str]); 5] = [
        ("two", &["one"]),
        ("three", &["two", "one"]),
        ("one", &["three", "two"]),
        ("four", &["one", "three"]),
        ("four", &["one", "three"]),
    ];
    for (word, expected) in steps {
        lock = change(&environments, &lock, &answered(A, word)).lock;
        let expected: Vec<_> = expected.iter().map(|word| digest(word)).collect();
        assert_eq!(former(&lock), expected, "after {word}");
    }
    let mut edited = lock.clone();
    let entry =
        edited.get_mut(&id("research/geo")).unwrap().as_mut().unwrap().images.get_mut(&name("notebook")).unwrap();
    entry.previous = [digest("four"), digest("one"), digest("one"), digest("two")]
        .map(|digest| Previous { reference: A.parse().unwrap(), digest })
        .to_vec();
    let edited = change(&environments, &edited, &answered(A, "five")).lock;
    assert_eq!(former(&edited), [digest("four"), digest("one")], "whatever a person made of it");

    environment.puller.retain = 1;
    let fewer = change(&batch([environment.clone()]), &lock, &Resolution::new());
    assert_eq!((fewer.files.len(), fewer.moves.len(), former(&fewer.lock)), (1, 0, vec![digest("one")]));
    environment.puller.retain = 0;
    let none = change(&batch([environment]), &lock, &answered(A, "five"));
    assert_eq!(former(&none.lock), []);
}

// Broken and suspended environments, and broken lockfiles, stay as they are.
#[test]
fn what_cannot_be_locked_is_left_alone() {
    let sound = environment("research/geo", &[&with(A, "notebook")]);
    let mut suspended = environment("research/quiet", &[&with(A, "notebook")]);
    let mut environments = batch([sound.clone(), suspended.clone(), environment("research/torn", &[&with(A, "n")])]);
    let mut old = locked(&environments, &answered(A, "one"));
    suspended.suspend = true;
    environments.extend(batch([suspended]));
    environments.insert(id("research/broken"), Err(Problem::new(Category::Syntax, "no YAML").into()));
    old.insert(id("research/broken"), old[&id("research/geo")].clone());
    old.insert(id("research/torn"), Err(unavailable("torn")));

    let change = change(&environments, &old, &answered(A, "two"));
    assert_eq!(change.files.keys().collect::<Vec<_>>(), ["lock/research/geo.yaml"]);
    assert_eq!(change.moves.len(), 1);
    for kept in ["research/quiet", "research/broken", "research/torn"] {
        assert_eq!(change.lock[&id(kept)], old[&id(kept)], "{kept}");
    }
    assert_eq!(change.problems.len(), 0, "a broken lockfile is its environment's failure, said once");
}
