//! What is asked, and when.

use std::time::Duration;

use super::{Answered, Due, Refresh, next_due, wanted};
use crate::{
    model::{
        batch::Batch,
        environment::Environment,
        failure::{Category, Problem},
        lock::Lock,
        resolution::CredentialSource,
    },
    stages::lock::testing::{answers, batch, digest, environment, id, key, locked, name, settings, unavailable},
};

const A: &str = "quay.io/x/a:1";
const B: &str = "quay.io/x/b:1";
const HOUR: Duration = Duration::from_secs(3600);

fn ask(environments: &Batch<Environment>, lock: &Lock, last: &Answered, now: Duration, mode: Refresh) -> Vec<Due> {
    wanted(environments, &settings(), lock, last, now, mode)
}

fn references(requests: &[Due]) -> Vec<String> {
    requests.iter().map(|request| request.lookup.reference.to_string()).collect()
}

/// Two environments that share a reference; one refreshes every hour, the other every two.
fn two() -> Batch<Environment> {
    let mut hourly = environment("research/hourly", &[&format!("a={A}")]);
    hourly.refresh = HOUR;
    batch([hourly, environment("teaching/slow", &[&format!("a={A}"), &format!("b={B}")])])
}

#[test]
fn each_reference_is_asked_once_and_in_order() {
    let requests = ask(&two(), &Lock::new(), &Answered::new(), Duration::ZERO, Refresh::Due);
    assert_eq!(references(&requests), [A, B]);
    assert!(requests.iter().all(|request| request.known.is_none()));
    assert!(requests.iter().all(|request| request.lookup.credentials == CredentialSource::Controller));
}

// Invariant 1: no request before its refresh; the smallest of all users counts.
#[test]
fn what_is_due() {
    let lock = locked(&two(), &answers(&[&format!("{A}=one"), &format!("{B}=two")]));
    let answered = Answered::from([(key(A), HOUR), (key(B), HOUR)]);
    let cases: [(&Answered, Duration, Refresh, &[&str]); 8] = [
        (&Answered::new(), Duration::ZERO, Refresh::Due, &[A, B]),
        (&Answered::from([(key(A), HOUR)]), HOUR, Refresh::Due, &[B]),
        (&answered, HOUR, Refresh::Due, &[]),
        (&answered, 2 * HOUR - Duration::from_nanos(1), Refresh::Due, &[]),
        (&answered, 2 * HOUR, Refresh::Due, &[A]),
        (&answered, 3 * HOUR, Refresh::Due, &[A, B]),
        (&answered, HOUR, Refresh::All, &[A, B]),
        (&Answered::new(), 9 * HOUR, Refresh::Missing, &[]),
    ];
    for (last, now, mode, expected) in cases {
        let requests = ask(&two(), &lock, last, now, mode);
        assert_eq!(references(&requests), expected, "{now:?} {mode:?}");
        for request in requests {
            let word = if request.lookup.reference.to_string() == A { "one" } else { "two" };
            assert_eq!(request.known, Some(digest(word)));
        }
    }
}

#[test]
fn a_changed_reference_is_due_at_once() {
    let lock = locked(&two(), &answers(&[&format!("{A}=one"), &format!("{B}=two")]));
    let mut changed = two();
    changed.extend(batch([environment("teaching/slow", &[&format!("a={A}"), "b=quay.io/x/b:2"])]));
    let answered = Answered::from([(key(A), HOUR), (key(B), HOUR), (key("quay.io/x/b:2"), HOUR)]);
    for mode in [Refresh::Due, Refresh::Missing] {
        let requests = ask(&changed, &lock, &answered, HOUR, mode);
        assert_eq!(references(&requests), ["quay.io/x/b:2"]);
        assert_eq!(requests[0].known, None);
    }
}

// A new user needs the platforms as well, and one who has another digest needs the new one's.
#[test]
fn the_digest_is_known_only_when_all_users_have_it() {
    let mut lock = locked(&two(), &answers(&[&format!("{A}=one"), &format!("{B}=two")]));
    let known = |lock: &Lock| ask(&two(), lock, &Answered::new(), HOUR, Refresh::All)[0].known.clone();
    assert_eq!(known(&lock), Some(digest("one")));
    lock.get_mut(&id("research/hourly")).unwrap().as_mut().unwrap().images.get_mut(&name("a")).unwrap().digest =
        digest("three");
    assert_eq!(known(&lock), None);
    lock.remove(&id("research/hourly"));
    assert_eq!(known(&lock), None);
    // Evidence with a gap is asked for again.
    let mut lock = locked(&two(), &answers(&[&format!("{A}=one"), &format!("{B}=two")]));
    let lockfile = lock.get_mut(&id("research/hourly")).unwrap().as_mut().unwrap();
    lockfile.images.get_mut(&name("a")).unwrap().platforms[0].size = None;
    assert_eq!(known(&lock), None);
}

#[test]
fn a_pull_secret_makes_a_question_of_its_own() {
    let mut environments = two();
    for environment in environments.values_mut().flatten().filter(|found| found.id.tenant == name("teaching")) {
        environment.images[0].pull_secret = Some("quay-pull".to_owned());
    }
    let requests = ask(&environments, &Lock::new(), &Answered::new(), Duration::ZERO, Refresh::Due);
    let secret = CredentialSource::Secrets { namespace: "ns-teaching".to_owned(), names: vec!["quay-pull".to_owned()] };
    assert_eq!(references(&requests), [A, A, B]);
    assert_eq!(requests[1].lookup.credentials, secret);
}

#[test]
fn who_cannot_move_asks_nothing() {
    let one = || environment("research/geo", &[&format!("a={A}")]);
    let lock = locked(&batch([one()]), &answers(&[&format!("{A}=one")]));
    let mut suspended = one();
    suspended.suspend = true;
    let mut held = lock.clone();
    held.get_mut(&id("research/geo")).unwrap().as_mut().unwrap().images.get_mut(&name("a")).unwrap().hold =
        Some(crate::model::lock::Hold::of_person("reverted"));
    let broken = Batch::from([(id("research/geo"), Err(Problem::new(Category::Syntax, "no YAML").into()))]);
    let torn = Lock::from([(id("research/geo"), Err(unavailable("torn")))]);
    let stranger = batch([environment("strangers/geo", &[&format!("a={A}")])]);
    let cases = [
        (batch([suspended]), &lock),
        (batch([one()]), &held),
        (broken, &lock),
        (batch([one()]), &torn),
        (stranger, &lock),
    ];
    for (environments, lock) in cases {
        assert_eq!(ask(&environments, lock, &Answered::new(), HOUR, Refresh::All), []);
        assert_eq!(next_due(&environments, &settings(), lock, &Answered::from([(key(A), HOUR)])), None);
    }
}

#[test]
fn a_reference_with_a_digest_is_asked_once() {
    let pinned = format!("{A}@{}", digest("one"));
    let environments = batch([environment("research/geo", &[&format!("a={pinned}")])]);
    let new = ask(&environments, &Lock::new(), &Answered::new(), HOUR, Refresh::Due);
    assert_eq!(references(&new), [pinned.as_str()]);
    let lock = locked(&environments, &answers(&[&format!("{pinned}=one")]));
    assert_eq!(ask(&environments, &lock, &Answered::new(), 9 * HOUR, Refresh::Due), []);
    assert_eq!(ask(&environments, &lock, &Answered::new(), HOUR, Refresh::All).len(), 1);
    assert_eq!(next_due(&environments, &settings(), &lock, &Answered::from([(key(&pinned), HOUR)])), None);
}

#[test]
fn the_controller_wakes_for_the_first_refresh() {
    let due = |last: &Answered| next_due(&two(), &settings(), &Lock::new(), last);
    assert_eq!(due(&Answered::new()), None);
    assert_eq!(due(&Answered::from([(key(B), HOUR)])), Some(3 * HOUR));
    assert_eq!(due(&Answered::from([(key(A), HOUR), (key(B), HOUR)])), Some(2 * HOUR));
    assert_eq!(due(&Answered::from([(key(A), 5 * HOUR), (key(B), HOUR)])), Some(3 * HOUR));
}
