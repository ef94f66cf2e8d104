//! What larder signs itself.

use std::{collections::BTreeMap, fs, process::Command};

use larder::io::git::{Draft, GitError, PushError, Rebuilt, Repository, Trust};

use super::{
    super::{
        server::Server,
        world::{NOW, World, push, pushed, tip},
    },
    FILES,
    keys::{Keys, run},
    signed,
};

const CHANGE: [(&str, &str); 1] = [("lock/a/x.yaml", "new\n")];

/// larder with that key.
fn with_key(world: &World, url: &str, key: &str) -> Repository {
    let mut options = world.options(url);
    options.signing_key = Some(world.root().join(key));
    Repository::open(options).unwrap()
}

#[test]
fn git_accepts_what_larder_signs() {
    let world = World::new(&FILES);
    let keys = Keys::new(world.root());
    let server = Server::start(&world, None);
    let names = keys.generate_signing_kinds();
    keys.allow("signers", &names);
    for (at, name) in names.into_iter().enumerate() {
        let url = if at % 2 == 0 { world.up().display().to_string() } else { server.url() };
        let mut repository = with_key(&world, &url, name);
        assert_eq!(repository.check_keys(NOW), Ok(()), "{name}");
        let parent = tip(&mut repository);
        let commit = pushed(push(&mut repository, parent, &[("lock/a/x.yaml", name)]));
        assert!(keys.git_accepts(&world, "signers", &commit.to_string()), "{name}");
        keys.allow("alone", &[name]);
        assert!(keys.git_accepts(&world, "alone", "main"), "it is this key that signed");
        assert!(super::strict(&world, "alone").fetch(&commit).is_ok(), "{name}");
    }
    assert_eq!(
        world.git(&world.up(), &["log", "-1", "--format=%an %cn %at %B"]),
        format!("larder larder bot {NOW} lock: test")
    );
    world.git(&world.up(), &["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn a_key_is_rotated_by_writing_its_file() {
    let world = World::new(&FILES);
    let keys = Keys::new(world.root());
    let (one, two) = (keys.generate("one", "ed25519", ""), keys.generate("two", "ecdsa", "256"));
    fs::copy(one, world.root().join("key")).unwrap();
    let mut repository = with_key(&world, world.up().to_str().unwrap(), "key");
    let first = tip(&mut repository);
    let second = pushed(push(&mut repository, first, &CHANGE));
    fs::copy(two, world.root().join("key")).unwrap();
    let third = pushed(push(&mut repository, second, &[("lock/a/x.yaml", "newer\n")]));
    for (name, commit, other) in [("one", second, third), ("two", third, second)] {
        keys.allow("signers", &[name]);
        assert!(keys.git_accepts(&world, "signers", &commit.to_string()));
        assert!(!keys.git_accepts(&world, "signers", &other.to_string()));
    }
}

#[test]
fn a_key_that_cannot_sign_says_why_and_shows_nothing_of_itself() {
    let world = World::new(&FILES);
    let keys = Keys::new(world.root());
    keys.generate("good", "ed25519", "");
    run(Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "secret", "-f"])
        .arg(world.root().join("locked")));
    run(Command::new("ssh-keygen")
        .args(["-q", "-t", "rsa", "-m", "PEM", "-N", "", "-f"])
        .arg(world.root().join("pem")));
    keys.generate("p521", "ecdsa", "521");
    keys.generate("rsa", "rsa", "2048");
    let text = fs::read_to_string(world.root().join("good")).unwrap();
    fs::write(world.root().join("cut"), text.replace("\n-----END", "AAAA\n-----END")).unwrap();
    fs::write(world.root().join("empty"), "").unwrap();
    for (key, detail, hint) in [
        ("locked", "protected by a passphrase", "ssh-keygen -t ed25519"),
        ("pem", "another form", "ssh-keygen -p"),
        ("good.pub", "a public key", "without .pub"),
        ("missing", "No such file", "readable by larder"),
        ("empty", "no OpenSSH private key", "ssh-keygen -p"),
        ("cut", "the key", "ssh-keygen -p"),
        ("p521", "the key", "ssh-keygen -t ed25519"),
        ("rsa", "does not sign with RSA keys", "ssh-keygen -t ed25519"),
    ] {
        let mut repository = with_key(&world, world.up().to_str().unwrap(), key);
        let error = repository.check_keys(NOW).unwrap_err();
        assert!(matches!(error, GitError::Signing { .. }), "{key}: {error}");
        assert!(error.to_string().contains(detail) && error.hint().contains(hint), "{key}: {error} {}", error.hint());
        let first = tip(&mut repository);
        let pushed = push(&mut repository, first, &CHANGE).unwrap_err();
        assert_eq!(pushed, PushError::Git(error.clone()), "nothing is pushed unsigned");
        let body = fs::read_to_string(world.root().join(key)).unwrap_or_default();
        let said = format!("{error} {error:?} {} {repository:?}", error.hint());
        for line in body.lines().filter(|line| line.len() > 20 && !line.starts_with("-----")) {
            assert!(!said.contains(&line[..20]), "{key}: {said}");
        }
    }
    // What came through a form is a key still.
    fs::write(world.root().join("form"), text.trim_end().replace('\n', "\r\n")).unwrap();
    assert_eq!(with_key(&world, world.up().to_str().unwrap(), "form").check_keys(NOW), Ok(()));
}

#[test]
fn larder_does_not_lock_itself_out() {
    let world = World::new(&FILES);
    let keys = Keys::new(world.root());
    for name in ["ours", "theirs"] {
        keys.generate(name, "ed25519", "");
    }
    keys.allow("signers", &["theirs"]);
    let start = signed(&world, &keys, "theirs", "signed");
    let open = |key: Option<&str>| {
        let mut options = world.options(world.up().to_str().unwrap());
        options.signing_key = key.map(|key| world.root().join(key));
        options.trust = Trust { signers: Some(world.root().join("signers")), keyring: None };
        Repository::open(options).unwrap()
    };
    // Not listed: it is said at the start, and nothing is pushed.
    let mut repository = open(Some("ours"));
    let error = repository.check_keys(NOW).unwrap_err();
    assert!(error.to_string().contains(&keys.fingerprint("ours")), "{error}");
    assert!(error.hint().contains(&keys.public("ours")), "{}", error.hint());
    tip(&mut repository);
    assert_eq!(push(&mut repository, start, &CHANGE), Err(PushError::Git(error)));
    // No key: reading is fine, pushing is not.
    let mut reader = open(None);
    assert_eq!(reader.check_keys(NOW), Ok(()));
    assert!(reader.fetch(&start).is_ok());
    tip(&mut reader);
    let error = push(&mut reader, start, &CHANGE).unwrap_err();
    assert!(error.hint().contains("--signing-key-file"), "{error} {}", error.hint());
    assert_eq!(world.rev("main"), start);
    // Listed: both.
    keys.allow("signers", &["theirs", "ours"]);
    assert_eq!(repository.check_keys(NOW), Ok(()));
    let commit = pushed(push(&mut repository, start, &CHANGE));
    assert!(repository.fetch(&commit).is_ok());
}

/// An ecdsa signature differs each time that it is made; what is proposed does not.
#[test]
fn a_proposal_is_not_made_again_for_its_signature() {
    let world = World::new(&FILES);
    let keys = Keys::new(world.root());
    for name in ["one", "two"] {
        keys.generate(name, "ecdsa", "256");
    }
    let server = Server::start(&world, None);
    for (at, url) in [server.url(), world.up().display().to_string()].into_iter().enumerate() {
        let branch = format!("larder/lock-{at}");
        let changes = BTreeMap::from([("lock/a/x.yaml".to_owned(), Some(b"new\n".to_vec()))]);
        let rebuild = |key: Option<&str>, seconds: i64| {
            let mut options = world.options(&url);
            options.signing_key = key.map(|key| world.root().join(key));
            let mut repository = Repository::open(options).unwrap();
            let parent = tip(&mut repository);
            let message = "lock: test\n\nLarder-Version: 1\n";
            repository.rebuild(&branch, &Draft { parent, changes: &changes, message, seconds })
        };
        let Ok(Rebuilt::Commit(unsigned)) = rebuild(None, NOW) else { panic!("unsigned") };
        let Ok(Rebuilt::Commit(made)) = rebuild(Some("one"), NOW) else { panic!("made") };
        assert_ne!(made, unsigned);
        assert_eq!(rebuild(Some("one"), NOW + 60), Ok(Rebuilt::Unchanged(made)));
        let Ok(Rebuilt::Commit(_)) = rebuild(Some("two"), NOW + 60) else { panic!("signed again with another key") };
        keys.allow("signers", &["two"]);
        assert!(keys.git_accepts(&world, "signers", &branch));
    }
}
