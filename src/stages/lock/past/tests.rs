//! Histories of one image, and what becomes of an answer after each.

use std::{sync::Arc, time::Duration};

use super::{past, questions};
use crate::{
    model::{
        failure::{Category, Problem},
        history::{CommitInfo, CommitTime, FileChange, LockStep},
        lock::{Hold, HoldOrigin, Lock, LockChange, LockedImage},
        resolution::Resolution,
        settings::Settings,
    },
    stages::{
        lock::{
            Inputs,
            holds::{self, Act, Target},
            message,
            testing::{answers, batch, digest, environment, id, inputs, key, lock, lockfile, name, settings},
            verdict::{Guards, History, Steadiness, Steady},
        },
        lockfile,
    },
};

const TAG: &str = "quay.io/jupyter/scipy-notebook:latest";
const ID: &str = "research/geo";
const REFRESH: Duration = Duration::from_secs(7200);

/// A repository with one environment of one image.
struct World {
    reference: &'static str,
    retain: usize,
    lock: Lock,
    former: Vec<Lock>,
    /// Newest first.
    steps: Vec<LockStep>,
}

impl World {
    /// What larder locked, one digest after the other.
    fn new(words: &[&str]) -> Self {
        Self::retaining(1, words)
    }

    fn retaining(retain: usize, words: &[&str]) -> Self {
        let mut world = Self { reference: TAG, retain, lock: Lock::new(), former: vec![], steps: vec![] };
        words.iter().for_each(|word| world.larder(word));
        world
    }

    fn environments(&self) -> crate::model::batch::Batch<crate::model::environment::Environment> {
        let mut environment = environment(ID, &[&format!("notebook={}", self.reference)]);
        environment.puller.retain = self.retain;
        batch([environment])
    }

    fn answer(&self, word: &str) -> Resolution {
        answers(&[&format!("{}={word}", self.reference)])
    }

    fn settings(&self) -> Settings {
        settings()
    }

    fn commit(&mut self, author: &str, message: &str, next: Lock) {
        let bytes = |lock: &Lock| lock.get(&id(ID)).map(|lockfile| lockfile::write(lockfile.as_ref().unwrap()).into());
        let number = self.steps.len();
        let commit = CommitInfo {
            id: format!("{number:010}{:030}", 0),
            author: author.to_owned(),
            committer: author.to_owned(),
            time: CommitTime::default(),
            subject: message.lines().next().unwrap_or_default().to_owned(),
        };
        let file = FileChange { path: id(ID).lock_path(), old: bytes(&self.lock), new: bytes(&next) };
        self.steps.insert(0, LockStep { commit, message: Arc::from(message), file });
        self.former.push(std::mem::replace(&mut self.lock, next));
    }

    fn proposed(&self, word: &str) -> LockChange {
        lock(&self.environments(), &self.settings(), &self.lock, &self.answer(word))
    }

    /// Larder moves the image, and commits that.
    fn larder(&mut self, word: &str) {
        let change = self.proposed(word);
        self.commit("larder <larder@larder.dev>", &message(&change, "0.1.0"), change.lock);
    }

    /// A person commits what larder wrote: `larder lock`, or a merge of its proposal.
    fn written(&mut self, word: &str, message: &str) {
        let change = self.proposed(word);
        self.commit("Ada <ada@example.com>", message, change.lock);
    }

    /// A person's commit with the lock as it was before the latest `count` commits.
    fn revert(&mut self, count: usize) {
        let former = self.former[self.former.len() - count].clone();
        self.commit("Ada <ada@example.com>", "Revert \"lock: research/geo notebook\"", former);
    }

    /// A person edits the entry.
    fn edit(&mut self, edit: impl Fn(&mut LockedImage)) {
        let mut next = self.lock.clone();
        edit(next.get_mut(&id(ID)).unwrap().as_mut().unwrap().images.get_mut(&name("notebook")).unwrap());
        self.commit("Ada <ada@example.com>", "By hand", next);
    }

    fn act(&mut self, act: &Act) {
        let change =
            holds::act(&self.lock, &self.settings(), Target { environment: &id(ID), images: &[] }, act).unwrap();
        self.commit("Ada <ada@example.com>", &message(&change, "0.1.0"), change.lock);
    }

    /// What a pass makes of an answer; `seen` is the lock that it knows, if any.
    fn pass(&self, word: Option<&str>, seen: Option<&Lock>, steadiness: &Steadiness) -> LockChange {
        let resolution = word.map(|word| self.answer(word)).unwrap_or_default();
        let (environments, settings) = (self.environments(), self.settings());
        let change = lock(&environments, &settings, &self.lock, &resolution);
        let questions = questions(&environments, &self.lock, seen, &change);
        if questions.is_empty() {
            return change;
        }
        let (past, _) = past(&questions, &self.lock, &self.steps);
        let guards = Guards { past: History::Read(&past), steadiness: Some(steadiness) };
        crate::stages::lock::lock(&Inputs { guards, ..inputs(&environments, &settings, &self.lock, &resolution) })
    }

    /// In short, for an answer that this controller gets for the first time.
    fn outcome(&self, word: &str) -> String {
        short(&self.pass(Some(word), None, &Steadiness::new()))
    }
}

fn short(change: &LockChange) -> String {
    match (change.moves.as_slice(), change.holds.as_slice(), change.waiting.as_slice()) {
        ([], [], []) => "stays".to_owned(),
        ([_], [], []) => "moves".to_owned(),
        ([], [hold], []) => format!("held: {}", hold.reason().unwrap_or("none")),
        ([], [], [_]) => "waits".to_owned(),
        other => format!("{other:?}"),
    }
}

fn steady(time: Duration, lags: bool, instead_of: Option<&str>) -> Steadiness {
    let steady = Steady { time, lags, instead_of: instead_of.map(digest) };
    [(key(TAG), steady)].into()
}

// Only what a person took back, or set by hand, is held.
#[test]
fn histories() {
    let one = digest("one");
    let back = format!("held: Ada went back to {} in 0000000002", one.short());
    type Build = fn() -> World;
    let cases: [(&str, Build, &str); 14] = [
        ("larder alone", || World::new(&["one", "two"]), "moves"),
        (
            "a revert",
            || {
                let mut world = World::new(&["one", "two"]);
                world.revert(1);
                world
            },
            &back,
        ),
        (
            "a revert where nothing is retained",
            || {
                let mut world = World::retaining(0, &["one", "two"]);
                world.revert(1);
                world
            },
            &back,
        ),
        (
            "a revert of several moves at once",
            || {
                let mut world = World::new(&["zero", "one", "two"]);
                world.revert(2);
                world
            },
            "held: Ada went back to sha256:f9194e73f9e9 in 0000000003",
        ),
        (
            "a revert of a revert",
            || {
                let mut world = World::new(&["one", "two"]);
                world.revert(1);
                world.revert(1);
                world
            },
            "moves",
        ),
        (
            "a digest by hand",
            || {
                let mut world = World::new(&["one"]);
                world.edit(|entry| entry.digest = digest("two"));
                world
            },
            "held: Ada set sha256:3fc4ccfe7458 in 0000000001",
        ),
        (
            "what `larder lock` wrote, or a merged proposal",
            || {
                let mut world = World::new(&["one"]);
                world.written("two", "Update the lock");
                world
            },
            "moves",
        ),
        (
            "the same where nothing is retained",
            || {
                let mut world = World::retaining(0, &["one"]);
                world.written("two", "Merge pull request #7");
                world
            },
            "moves",
        ),
        (
            "what `larder lock --accept-earlier` wrote",
            || {
                let mut world = World::new(&["one", "two"]);
                world.written("one", "Back, as the registry has it");
                world
            },
            "moves",
        ),
        (
            "a revert of a going back",
            || {
                let mut world = World::new(&["one", "two", "one"]);
                world.revert(1);
                world
            },
            "held: Ada went back to sha256:3fc4ccfe7458 in 0000000003",
        ),
        (
            "a rollback, released by hand",
            || {
                let mut world = World::new(&["one", "two"]);
                let then = lockfile(&world.former[1], ID).clone();
                let (revision, hold) = ("abc".to_owned(), Hold::of_person("kernels die"));
                world.act(&Act::RollBack { then, revision, hold });
                world.edit(|entry| entry.hold = None);
                world
            },
            "moves",
        ),
        (
            "a revert, held, then released",
            || {
                let mut world = World::new(&["one", "two"]);
                world.revert(1);
                world.act(&Act::Hold(Hold::of_person("Ada went back")));
                world.act(&Act::Release);
                world
            },
            "moves",
        ),
        (
            "held and not released",
            || {
                let mut world = World::new(&["one", "two"]);
                world.act(&Act::Hold(Hold::of_person("exam")));
                world
            },
            "stays",
        ),
        (
            "an image that went and came back",
            || {
                let mut world = World::new(&["one"]);
                world.commit("Ada <ada@example.com>", "Remove", Lock::new());
                world.larder("two");
                world
            },
            "moves",
        ),
    ];
    for (what, build, expected) in cases {
        let world = build();
        assert_eq!(world.outcome("three"), expected, "{what}");
        // The very answer that is locked is no reason for anything, anyone who brought it.
        let known = lockfile(&world.lock, ID).images[&name("notebook")].digest.clone();
        let word = ["zero", "one", "two"].into_iter().find(|word| digest(word) == known).unwrap();
        assert_eq!(short(&world.pass(Some(word), Some(&Lock::new()), &Steadiness::new())), "stays", "{what}");
    }
}

/// A lock that is held by larder after a revert and released moves at once, although the answer is one that it had.
#[test]
fn a_released_image_moves_to_what_it_had_before() {
    let mut world = World::new(&["one", "two"]);
    world.revert(1);
    world.act(&Act::Hold(Hold::of_person("Ada went back")));
    assert_eq!(world.outcome("two"), "stays");
    world.act(&Act::Release);
    assert_eq!(world.outcome("two"), "moves");
}

// A revert is held at the next pass, although no reference is due; and nothing else asks for the history.
#[test]
fn what_others_moved_since_is_asked_about() {
    let mut world = World::new(&["one", "two"]);
    let seen = world.lock.clone();
    assert!(world.pass(None, Some(&seen), &Steadiness::new()).files.is_empty());
    world.revert(1);
    let environments = world.environments();
    let ask = |seen: Option<&Lock>, word: Option<&str>| {
        let answer = word.map(|word| world.answer(word)).unwrap_or_default();
        let change = lock(&environments, &settings(), &world.lock, &answer);
        !questions(&environments, &world.lock, seen, &change).is_empty()
    };
    assert!(ask(Some(&seen), None), "moved by someone else");
    assert!(!ask(Some(&Lock::new()), None), "nothing has changed since");
    assert!(!ask(Some(&Lock::new()), Some("one")), "the answer is what is locked");
    assert!(!ask(None, None));
    assert!(ask(Some(&Lock::new()), Some("two")), "a move without a change of the file");
    let change = world.pass(None, Some(&seen), &Steadiness::new());
    assert_eq!(short(&change), format!("held: Ada went back to {} in 0000000002", digest("one").short()));
    assert_eq!(change.files.len(), 1);
    let text = message(&change, "0.1.0");
    let hold = &change.holds[0];
    let instead_of = TAG.parse().unwrap();
    assert_eq!(hold.hold.as_ref().unwrap().origin, HoldOrigin::Revert { instead_of });
    assert!(
        text.starts_with("lock: hold research/geo notebook at latest\n\n- research/geo notebook: held at "),
        "{text}"
    );
    let same = format!("Larder-Old-Digest: {0}\nLarder-New-Digest: {0}\nLarder-Hold: Ada went back", hold.at.digest);
    assert!(text.contains(&same), "{text}");

    // What was locked for another tag, and a person's `larder lock`, are no reason to ask the registry or to hold.
    let mut moved = World::new(&["one"]);
    let seen = moved.lock.clone();
    moved.written("two", "Update");
    assert_eq!(short(&moved.pass(None, Some(&seen), &Steadiness::new())), "stays");
    // A tag that is changed in its file costs no look at the history.
    moved.reference = "quay.io/jupyter/scipy-notebook:next";
    let change = lock(&moved.environments(), &settings(), &moved.lock, &moved.answer("three"));
    assert!(questions(&moved.environments(), &moved.lock, Some(&Lock::new()), &change).is_empty());
    assert_eq!(moved.outcome("three"), "moves");
}

/// The lockfile alone is taken back, while the file continues asking for the new tag: that is a revert as well.
#[test]
fn a_lock_that_is_taken_away_from_its_file_is_held() {
    let mut world = World::new(&["one"]);
    world.reference = "quay.io/jupyter/scipy-notebook:next";
    world.larder("two");
    let seen = world.lock.clone();
    world.revert(1);
    let change = world.pass(None, Some(&seen), &Steadiness::new());
    assert_eq!(short(&change), "held: Ada went back to latest in 0000000002");
    assert_eq!(world.outcome("two"), "held: Ada went back to latest in 0000000002");
    // Taken back together with the file, it is only the previous tag, which moves as ever.
    world.reference = TAG;
    assert_eq!(world.outcome("three"), "moves");
}

// An answer that goes back has to be given twice, a refresh apart, and by a registry that changed its mind.
#[test]
fn answers_that_go_back() {
    let world = World::new(&["one", "two"]);
    let turned = World::new(&["one", "two", "one", "two"]);
    let old = World::new(&["zero", "one", "two", "four"]);
    let (none, long) = (Duration::ZERO, REFRESH);
    let cases = [
        ("first seen", &world, "one", Steadiness::new(), "waits"),
        ("first seen", &world, "one", steady(none, false, Some("two")), "waits"),
        ("asked again too early", &world, "one", steady(long - Duration::from_secs(1), false, None), "waits"),
        ("seen twice", &world, "one", steady(long, false, None), "moves"),
        ("seen twice", &world, "one", steady(long, false, Some("two")), "moves"),
        ("a mirror that lags behind", &world, "one", steady(long * 9, true, None), "waits"),
        ("older than what is retained", &old, "zero", steady(none, false, None), "waits"),
        ("older than what is retained", &old, "zero", steady(long, false, None), "moves"),
        ("back and forth", &turned, "one", steady(long * 9, false, None), "waits"),
        ("back and forth, but seen to change", &turned, "one", steady(long, false, Some("two")), "moves"),
        ("something new", &world, "three", steady(none, true, None), "moves"),
    ];
    for (what, world, word, steadiness, expected) in cases {
        let change = world.pass(Some(word), Some(&Lock::new()), &steadiness);
        assert_eq!(short(&change), expected, "{what}");
        if expected == "waits" {
            assert!(change.files.is_empty() && change.problems.is_empty());
            let note = change.waiting[0].note.to_string();
            assert!(note.contains("which it had before") && note.contains("--accept-earlier"), "{note}");
        }
    }
}

// Unknown is not absent: a history that cannot be read may tell of a revert.
#[test]
fn nothing_moves_to_another_digest_while_the_history_is_unreadable() {
    let world = World::new(&["one", "two"]);
    let problem = Problem::new(Category::Git, "the object is damaged").hint("run `git fsck`");
    let with = |world: &World, word: &str| {
        let (environments, settings, resolution) = (world.environments(), settings(), world.answer(word));
        let guards = Guards { past: History::Unreadable(&problem), steadiness: Some(&Steadiness::new()) };
        crate::stages::lock::lock(&Inputs { guards, ..inputs(&environments, &settings, &world.lock, &resolution) })
    };
    let change = with(&world, "three");
    assert_eq!(short(&change), "waits");
    let note = change.waiting[0].note.to_string();
    assert!(note.contains("cannot be read: the object is damaged") && note.contains("git fsck"), "{note}");
    assert_eq!(short(&with(&world, "two")), "stays");
    // A reference that a person committed is not an inference.
    let mut other = World::new(&["one", "two"]);
    other.reference = "quay.io/jupyter/scipy-notebook:next";
    assert_eq!(short(&with(&other, "three")), "moves");
}
