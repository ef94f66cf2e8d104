//! Signatures of commits, made and checked by git, ssh-keygen and gpg on the other side.

pub mod keys;
pub mod openpgp;
mod own;
mod refused;

use larder::io::git::{CommitId, GitError, Repository, Trust};

use self::keys::Keys;
use super::world::World;

const FILES: [(&str, &str); 2] = [("larder.yaml", "kind: Larder\n"), ("lock/a/x.yaml", "old\n")];

/// larder's view of the bare repository, where commits have to be signed by a key of that list.
fn strict(world: &World, signers: &str) -> Repository {
    let mut options = world.options(world.up().to_str().unwrap());
    options.trust = Trust { signers: Some(world.root().join(signers)), keyring: None };
    Repository::open(options).unwrap()
}

/// Why a commit is not read. That is all that is known of it then.
fn untrusted(result: Result<larder::model::snapshot::Snapshot, GitError>) -> String {
    match result {
        Err(error @ GitError::Untrusted { .. }) => {
            assert!(!error.hint().is_empty());
            error.to_string()
        }
        other => panic!("a commit that is not trusted was expected, not {other:?}"),
    }
}

/// A colleague's signed commit, pushed.
fn signed(world: &World, keys: &Keys, key: &str, message: &str) -> CommitId {
    let key = keys.private(key);
    let config = [format!("user.signingKey={}", key.display()), "gpg.format=ssh".to_owned()];
    commit(world, &config, message)
}

fn commit(world: &World, config: &[String], message: &str) -> CommitId {
    let mut command = world.git_command(&world.work());
    config.iter().for_each(|one| {
        command.args(["-c", one]);
    });
    let output = command.args(["commit", "-q", "--allow-empty", "-S", "-m", message]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    world.git(&world.work(), &["push", "-q", "-f", "origin", "HEAD:refs/heads/main"]);
    world.rev("refs/heads/main")
}

#[test]
fn what_git_signs_with_ssh_keys_is_accepted() {
    let world = World::new(&FILES);
    let keys = Keys::new(world.root());
    let names = keys.generate_each_kind();
    keys.allow("signers", &names);
    let mut repository = strict(&world, "signers");
    for name in names {
        let commit = signed(&world, &keys, name, name);
        assert!(repository.fetch(&commit).is_ok(), "{name}: {:?}", repository.fetch(&commit));
    }
    // Other headers and encodings around the signature.
    world.git(&world.work(), &["config", "i18n.commitEncoding", "ISO-8859-1"]);
    let latin = signed(&world, &keys, "ed", "grün");
    assert!(world.git(&world.up(), &["cat-file", "commit", "main"]).contains("\nencoding ISO-8859-1\n"));
    assert!(repository.fetch(&latin).is_ok());
    // A signed tag that is merged leaves a signature of its own in the commit.
    let ed = keys.private("ed");
    let config = ["-c".to_owned(), format!("user.signingKey={}", ed.display()), "-c".into(), "gpg.format=ssh".into()];
    let config: Vec<&str> = config.iter().map(String::as_str).collect();
    let git = |arguments: &[&str]| world.git(&world.work(), &[config.as_slice(), arguments].concat());
    git(&["checkout", "-q", "-b", "side", "HEAD~1"]);
    git(&["commit", "-q", "--allow-empty", "-m", "beside"]);
    git(&["tag", "-s", "-m", "a tag", "v1"]);
    git(&["checkout", "-q", "main"]);
    git(&["merge", "-q", "--no-ff", "-S", "-m", "merge", "v1"]);
    git(&["push", "-q", "origin", "HEAD:refs/heads/main"]);
    let merge = world.rev("main");
    assert!(world.git(&world.up(), &["cat-file", "commit", "main"]).contains("\nmergetag object "));
    assert!(repository.fetch(&merge).is_ok(), "{:?}", repository.fetch(&merge));
    // The tip counts; what is below it may be anything.
    assert!(repository.fetch(&world.rev("main~7")).is_err());
}

#[test]
fn the_list_is_read_anew_and_its_dates_and_namespaces_count() {
    let world = World::new(&FILES);
    let keys = Keys::new(world.root());
    keys.generate("ed", "ed25519", "");
    let mut repository = strict(&world, "signers");
    let commit = signed(&world, &keys, "ed", "signed in February 2026");
    assert!(matches!(repository.fetch(&commit), Err(GitError::Keys { .. })), "there is no list");
    for (options, expected) in [
        ("", None),
        ("namespaces=\"git\"", None),
        ("valid-after=\"20260101Z\",valid-before=\"20270101Z\"", None),
        ("valid-before=\"20260101Z\"", Some("not valid any more")),
        ("valid-after=\"20270101Z\"", Some("not valid yet")),
        ("namespaces=\"file\"", Some("other namespaces")),
    ] {
        keys.list("signers", &[("ed", options)]);
        let found = repository.fetch(&commit);
        match expected {
            None => assert!(found.is_ok(), "{options}: {found:?}"),
            Some(words) => assert!(untrusted(found).contains(words), "{options}"),
        }
        // git agrees.
        assert_eq!(keys.git_accepts(&world, "signers", "main"), expected.is_none(), "{options}");
    }
    keys.generate("other", "ed25519", "");
    keys.allow("signers", &["other"]);
    let error = untrusted(repository.fetch(&commit));
    let shown = keys.fingerprint("ed");
    assert!(error.contains(&shown) && error.contains("signed with the key of") && error.contains("signers"), "{error}");
}
