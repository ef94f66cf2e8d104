//! `larder verify`: good histories, and those that somebody has meddled with.

use std::{collections::BTreeMap, fs, path::Path, process::Output};

use larder::{
    io::git::{CommitId, Draft, Rebuilt, Repository},
    model::{
        digest::Digest,
        snapshot::{Entry, Snapshot},
    },
    pipeline::record,
    stages::{load::load, lock::with_manifests, render::Renderer},
};
use serde_json::Value;

use super::{odd::lockfile, run};
use crate::git::{
    signatures::{
        keys::{Keys, read_commit, write_commit},
        openpgp::Person,
    },
    world::{NOW, World, pushed, tip},
};

const LOCK: &str = "lock/research/geo.yaml";
const SETTINGS: &str =
    "apiVersion: larder.dev/v1alpha1\nkind: Settings\nspec:\n  tenants:\n    research: {namespace: research}\n";
const ENVIRONMENT: &str =
    "apiVersion: larder.dev/v1alpha1\nkind: Environment\nspec:\n  images:\n    - {name: a, image: quay.io/x/a:1}\n";

/// An environment repository, a controller's key and others'.
struct History {
    world: World,
    keys: Keys,
}

impl History {
    fn new() -> Self {
        let world = World::new(&[("larder.yaml", SETTINGS), ("environments/research/geo.yaml", ENVIRONMENT)]);
        let keys = Keys::new(world.root());
        for name in ["controller", "person", "eve"] {
            keys.generate(name, "ed25519", "");
        }
        keys.allow("controllers", &["controller"]);
        keys.allow("people", &["person"]);
        Self { world, keys }
    }

    /// larder's view, with that key.
    fn larder(&self, key: Option<&str>) -> Repository {
        let mut options = self.world.options(self.world.up().to_str().unwrap());
        options.signing_key = key.map(|key| self.world.root().join(key));
        Repository::open(options).unwrap()
    }

    /// What the tip renders to once these files are written.
    fn digest(snapshot: &Snapshot, files: &BTreeMap<String, Option<Vec<u8>>>) -> Digest {
        let mut next = snapshot.clone();
        for (path, bytes) in files {
            next.files.insert(path.clone(), Entry::File(bytes.clone().unwrap_or_default().into()));
        }
        record::digest(&load(&next).unwrap(), &mut Renderer::default())
    }

    /// A controller's lock commit, or one that looks like it.
    fn lock(&self, word: &str, key: Option<&str>, forge: impl Fn(&Digest) -> String) -> CommitId {
        self.write(&[(LOCK, lockfile(word))], key, forge)
    }

    fn write(&self, files: &[(&str, String)], key: Option<&str>, forge: impl Fn(&Digest) -> String) -> CommitId {
        let mut larder = self.larder(key);
        let parent = tip(&mut larder);
        let changes = files.iter().map(|(path, text)| ((*path).to_owned(), Some(text.clone().into_bytes()))).collect();
        let digest = Self::digest(&larder.fetch(&parent).unwrap(), &changes);
        let message = forge(&digest);
        pushed(larder.commit_and_push(&Draft { parent, changes: &changes, message: &message, seconds: NOW }))
    }

    /// A person's commit.
    fn person(&self, files: &[(&str, &str)], config: &[String], message: &str) -> CommitId {
        let git = |arguments: &[&str]| self.world.git(&self.world.work(), arguments);
        git(&["fetch", "-q", "origin", "main"]);
        git(&["reset", "-q", "--hard", "FETCH_HEAD"]);
        for (path, text) in files {
            fs::write(self.world.work().join(path), text).unwrap();
        }
        git(&["add", "-A"]);
        let mut arguments: Vec<&str> = config.iter().flat_map(|one| ["-c", one.as_str()]).collect();
        arguments.extend(["commit", "-q", "-m", message]);
        if !config.is_empty() {
            arguments.push("-S");
        }
        git(&arguments);
        git(&["push", "-q", "origin", "HEAD:refs/heads/main"]);
        self.world.rev("main")
    }

    fn signs(&self, key: &str) -> Vec<String> {
        vec!["gpg.format=ssh".to_owned(), format!("user.signingKey={}", self.keys.private(key).display())]
    }

    fn verify(&self, more: &[&str]) -> Output {
        let controllers = self.world.root().join("controllers");
        let arguments = ["verify", "--branch", "main", "--controllers", controllers.to_str().unwrap()];
        run(&self.world.up(), &[&arguments, more].concat())
    }

    /// Whether all is well, and the commits with their outcomes, oldest first.
    fn outcomes(&self, more: &[&str]) -> (bool, Vec<(String, String)>, Value) {
        let output = self.verify(&[more, &["--output", "json"]].concat());
        let answer: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
        let text = |commit: &Value, key: &str| commit[key].as_str().unwrap_or_default().to_owned();
        let commits = answer["commits"].as_array().unwrap().iter().rev();
        let found = commits.map(|commit| (text(commit, "id"), text(commit, "outcome"))).collect();
        (output.status.success(), found, answer)
    }

    /// The outcome of the tip alone.
    fn last(&self, more: &[&str]) -> (String, String) {
        let (well, _, answer) = self.outcomes(&[more, &["main~1..main"]].concat());
        let commit = &answer["commits"][0];
        let outcome = commit["outcome"].as_str().unwrap().to_owned();
        assert_eq!(well, matches!(outcome.as_str(), "ok" | "person"), "{answer:#}");
        (outcome, commit["detail"].as_str().unwrap_or_default().to_owned())
    }
}

/// As larder writes it.
fn honest(digest: &Digest) -> String {
    with_manifests(&format!("lock: test\n\n- a\n\nLarder-Version: {}\n", env!("CARGO_PKG_VERSION")), digest)
}

#[test]
fn a_good_history_is_well() {
    let history = History::new();
    let one = history.lock("one", Some("controller"), honest);
    history.person(&[("environments/research/geo.yaml", &format!("{ENVIRONMENT}  suspend: false\n"))], &[], "change");
    let two = history.lock("two", Some("controller"), honest);
    history.person(&[("larder.yaml", &SETTINGS.replace("namespace: research", "namespace: other"))], &[], "move");
    let three = history.lock("three", Some("controller"), honest);
    let ok = |commit: CommitId| (commit.to_string(), "ok".to_owned());
    let (well, found, answer) = history.outcomes(&[]);
    assert_eq!((well, found), (true, vec![ok(one), ok(two), ok(three)]), "{answer:#}");
    assert_eq!((&answer["sound"], &answer["complete"], &answer["older"]), (&true.into(), &true.into(), &0.into()));
    let newest = &answer["commits"][0];
    assert_eq!(newest["signedBy"]["name"], "controller@example.com");
    assert!(newest["signedBy"]["key"].as_str().unwrap().contains(&history.keys.fingerprint("controller")));
    assert_eq!(newest["recorded"], newest["rendered"]);
    let digests: std::collections::BTreeSet<_> =
        answer["commits"].as_array().unwrap().iter().map(|commit| commit["recorded"].to_string()).collect();
    assert_eq!(digests.len(), 3, "each records its own");
    let (well, found, _) = history.outcomes(&[&format!("{one}..{two}")]);
    assert_eq!((well, found), (true, vec![ok(two)]));

    let output = history.verify(&[]);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(
        out.contains("ok") && out.contains("controller@example.com") && err.contains("3 of 3 lock commits verified"),
        "{out}{err}"
    );
    let csv = String::from_utf8(history.verify(&["--output", "csv"]).stdout).unwrap();
    assert_eq!(csv.lines().count(), 4, "{csv}");
    // The same from elsewhere, where the history has to be fetched first.
    let server = crate::git::server::Server::start(&history.world, None);
    let arguments = ["verify", "--repo", &server.url(), "--controllers", "controllers", "--output", "json"];
    let mut larder = std::process::Command::new(env!("CARGO_BIN_EXE_larder"));
    let output = larder.args(arguments).current_dir(history.world.root()).output().unwrap();
    let remote: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.success(), &remote), (true, &answer));
    // Nobody else's key will do.
    history.keys.allow("controllers", &["eve"]);
    let (well, found, _) = history.outcomes(&[]);
    assert!(!well && found.iter().all(|(_, outcome)| outcome == "untrusted"), "{found:?}");
}

/// The page of reference gives the digest without larder's own check.
#[test]
fn the_digest_can_be_computed_by_hand() {
    let history = History::new();
    history.lock("one", Some("controller"), honest);
    history.person(&[("README.md", "x")], &[], "a checkout");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/lock-commits.md");
    let text = fs::read_to_string(page).unwrap();
    let (_, script) = text.split_once("```sh\n").unwrap();
    let (script, _) = script.split_once("```").unwrap();
    let binary = Path::new(env!("CARGO_BIN_EXE_larder")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let mut shell = std::process::Command::new("bash");
    let shell = shell.args(["-euo", "pipefail", "-c", script]).current_dir(history.world.work()).env("PATH", path);
    let output = shell.output().unwrap();
    let found = String::from_utf8_lossy(&output.stdout).into_owned();
    let (_, _, answer) = history.outcomes(&[]);
    let recorded = answer["commits"][0]["recorded"].as_str().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(found.split(' ').next(), recorded.strip_prefix("sha256:"), "{errors}");
}

#[test]
fn forged_commits_are_found() {
    let history = History::new();
    history.lock("one", Some("controller"), honest);
    // Unsigned, with a trailer that even fits.
    history.lock("two", None, honest);
    assert_eq!(history.last(&[]).0, "unsigned");
    // Signed by somebody else, in larder's name.
    history.lock("three", Some("eve"), honest);
    let (outcome, detail) = history.last(&[]);
    assert_eq!(outcome, "untrusted");
    assert!(detail.contains(&history.keys.fingerprint("eve")), "{detail}");
    // The controller's signature from another commit.
    let good = history.lock("four", Some("controller"), honest);
    assert_eq!(history.last(&[]).0, "ok");
    let text = String::from_utf8(read_commit(&history.world, "main")).unwrap();
    let forged = write_commit(&history.world, text.replace("\n- a\n", "\n- b\n").as_bytes());
    history.world.git(&history.world.up(), &["update-ref", "refs/heads/main", &forged]);
    let (outcome, detail) = history.last(&[]);
    assert_eq!(outcome, "untrusted");
    assert!(detail.contains("does not fit its content"), "{detail}");
    history.world.git(&history.world.up(), &["update-ref", "refs/heads/main", &good.to_string()]);
    let (well, found, _) = history.outcomes(&[]);
    let words: Vec<&str> = found.iter().map(|(_, outcome)| outcome.as_str()).collect();
    assert_eq!((well, words), (false, vec!["ok", "unsigned", "untrusted", "ok"]));
    let output = history.verify(&[]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("unsigned: it is not signed") && text.contains("2 of 4 lock commits verified"), "{text}");
}

#[test]
fn what_a_controller_signed_has_to_be_what_it_records() {
    let history = History::new();
    let first = history.lock("one", Some("controller"), honest);
    let copied = read_commit(&history.world, &first.to_string());
    let copied = String::from_utf8(copied).unwrap();
    let trailer = copied.lines().find(|line| line.starts_with("Larder-Manifests: ")).unwrap().to_owned();
    // Another lock with a copied trailer.
    let version = env!("CARGO_PKG_VERSION");
    history.lock("two", Some("controller"), |_| format!("lock\n\nx\n\nLarder-Version: {version}\n{trailer}\n"));
    let (outcome, detail) = history.last(&[]);
    assert_eq!(outcome, "differs");
    assert!(detail.contains("it records sha256:") && detail.contains("renders to sha256:"), "{detail}");
    history.lock("three", Some("controller"), |_| format!("lock\n\nx\n\nLarder-Version: 0.0.1\n{trailer}\n"));
    let (outcome, detail) = history.last(&[]);
    assert_eq!(outcome, "other-version");
    assert!(detail.contains("made by larder 0.0.1"), "{detail}");
    // Another version that renders alike is no reason to worry.
    history.lock("four", Some("controller"), |digest| honest(digest).replace(version, "0.0.1"));
    assert_eq!(history.last(&[]).0, "ok");
    history.lock("five", Some("controller"), |_| "lock\n\nLarder-Version: 1\n".to_owned());
    assert_eq!(history.last(&[]).0, "no-digest");
    let environment = ("environments/research/geo.yaml", format!("{ENVIRONMENT}  suspend: false\n"));
    history.write(&[(LOCK, lockfile("six")), environment], Some("controller"), honest);
    let (outcome, detail) = history.last(&[]);
    assert_eq!(outcome, "changes-more");
    assert!(detail.contains("`environments`"), "{detail}");
    history.write(&[(LOCK, lockfile("seven")), ("README.md", "x".into())], Some("controller"), honest);
    assert_eq!(history.last(&[]).0, "changes-more");
}

#[test]
fn a_persons_change_of_the_lock_counts_when_the_person_does() {
    let history = History::new();
    history.lock("one", Some("controller"), honest);
    history.lock("two", Some("controller"), honest);
    let people = history.world.root().join("people");
    let people = ["--people", people.to_str().unwrap()];
    history.person(&[(LOCK, &lockfile("one"))], &[], "Revert");
    assert_eq!(history.last(&people).0, "unsigned");
    history.person(&[(LOCK, &lockfile("two"))], &history.signs("person"), "Revert");
    assert_eq!(history.last(&people).0, "person");
    assert_eq!(history.last(&[]).0, "untrusted", "nobody but controllers, unless people are named");
    history.person(&[(LOCK, &lockfile("three"))], &history.signs("eve"), "Revert");
    assert_eq!(history.last(&people).0, "untrusted");
    // With OpenPGP.
    let ada = Person::new(&history.world.root().join("Ada"), &[], "never");
    let keyring = history.world.root().join("keyring");
    ada.export(&keyring, &["--armor"]);
    history.person(&[(LOCK, &lockfile("four"))], &ada.config(), "Revert");
    assert_eq!(history.last(&["--people-keyring", keyring.to_str().unwrap()]).0, "person");
    assert_eq!(history.last(&people).0, "untrusted");
}

#[test]
fn a_history_is_checked_from_where_manifests_are_recorded() {
    let history = History::new();
    let old = |_: &Digest| "lock: old\n\nLarder-Version: 0.0.1\n".to_owned();
    history.lock("one", None, old);
    history.lock("two", None, old);
    let (well, found, answer) = history.outcomes(&[]);
    assert!(!well && found.is_empty() && answer["older"] == 2, "{answer:#}");
    history.lock("three", Some("controller"), honest);
    let (well, found, answer) = history.outcomes(&[]);
    assert!(well && found.len() == 1 && answer["older"] == 2, "{answer:#}");
    let (well, found, _) = history.outcomes(&["..main"]);
    assert!(!well && found.len() == 3);
    // What comes without a digest after that is not passed over.
    history.lock("four", None, old);
    let (well, found, _) = history.outcomes(&[]);
    assert!(!well && found.len() == 2 && found[1].1 == "unsigned", "{found:?}");

    // CI checks what was pushed, which mostly has nothing to do with the lock.
    let (well, found, _) = history.outcomes(&["main..main"]);
    assert!(well && found.is_empty());
    assert!(
        String::from_utf8_lossy(&history.verify(&["main..main"]).stderr)
            .contains("no commit in this range changes the lock")
    );

    let shallow = history.world.root().join("shallow");
    let url = format!("file://{}", history.world.up().display());
    history.world.git(&history.world.root(), &["clone", "-q", "--depth", "2", &url, "shallow"]);
    let controllers = history.world.root().join("controllers");
    let arguments = ["verify", "--controllers", controllers.to_str().unwrap(), "..HEAD", "--output", "json"];
    let answer: Value = serde_json::from_slice(&run(&shallow, &arguments).stdout).unwrap();
    assert_eq!((&answer["complete"], answer["commits"].as_array().unwrap().len()), (&false.into(), 1), "{answer:#}");
    for (range, words) in [("nothing..main", "has no commit"), ("main..main~1", "not among the first parents")] {
        let output = history.verify(&[range]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && text.contains(words), "{text}");
    }
}

#[test]
fn a_merge_stands_for_the_proposal_that_it_brings_and_for_nothing_else() {
    let history = History::new();
    history.lock("one", Some("controller"), honest);
    let merge = |message: &str, other: &str| {
        let git = |arguments: &[&str]| history.world.git(&history.world.work(), arguments);
        git(&["fetch", "-q", "origin", "main"]);
        git(&["reset", "-q", "--hard", "FETCH_HEAD"]);
        git(&["fetch", "-q", "origin", other]);
        let tree = git(&["rev-parse", "FETCH_HEAD:lock"]);
        git(&["read-tree", "--reset", "HEAD"]);
        git(&["rm", "-q", "-r", "--cached", "lock"]);
        git(&["read-tree", "--prefix=lock/", &tree]);
        let written = git(&["write-tree"]);
        let commit = git(&["commit-tree", &written, "-p", "HEAD", "-p", "FETCH_HEAD", "-m", message]);
        git(&["push", "-q", "origin", &format!("{commit}:refs/heads/main")]);
        commit
    };
    let propose = |word: &str| {
        let mut larder = history.larder(Some("controller"));
        let parent = tip(&mut larder);
        let changes = BTreeMap::from([(LOCK.to_owned(), Some(lockfile(word).into_bytes()))]);
        let message = honest(&History::digest(&larder.fetch(&parent).unwrap(), &changes));
        let draft = Draft { parent, changes: &changes, message: &message, seconds: NOW };
        match larder.rebuild("larder/lock", &draft) {
            Ok(Rebuilt::Commit(commit)) => commit,
            other => panic!("{other:?}"),
        }
    };
    let proposed = propose("two");
    // People's work on the branch meanwhile does no harm.
    history.person(&[("README.md", "x")], &[], "beside");
    let merged = merge("Merge", "larder/lock");
    let (_, found, answer) = history.outcomes(&[&format!("{merged}~1..{merged}")]);
    assert_eq!(found, [(proposed.to_string(), "ok".to_owned())], "{answer:#}");
    assert_eq!(answer["commits"][0]["mergedBy"], merged);
    // The same proposal again, after something newer: a rollback that no controller made.
    history.world.git(&history.world.up(), &["branch", "-f", "old", &proposed.to_string()]);
    history.lock("three", Some("controller"), honest);
    let again = merge("Merge again", "old");
    let (well, found, _) = history.outcomes(&[&format!("{again}~1..{again}")]);
    assert!(!well);
    assert_eq!(found, [(again, "unsigned".to_owned())]);
}

#[test]
fn lists_that_cannot_be_read_are_errors() {
    let history = History::new();
    history.lock("one", Some("controller"), honest);
    fs::write(history.world.root().join("controllers"), "a cert-authority ssh-ed25519 AAAA\n").unwrap();
    let output = history.verify(&[]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.code() == Some(1) && text.contains("its line 1: `cert-authority` is not supported"),
        "{text}"
    );
    let missing = Path::new("/nonexistent");
    let output = run(&history.world.up(), &["verify", "--controllers", missing.to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nonexistent cannot be used"));
}
