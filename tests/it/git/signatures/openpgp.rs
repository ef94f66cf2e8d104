//! Signatures with OpenPGP keys, made by gpg.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use larder::io::git::{CommitId, GitError, Repository, Trust};

use super::{
    super::world::World,
    FILES, commit,
    keys::{Keys, read_commit, run, write_commit},
    untrusted,
};

/// A person's gpg. Its agent ends with it.
pub struct Person(PathBuf);

impl Person {
    /// With one key that signs and never expires, unless the options say something else.
    pub fn new(folder: &Path, options: &[&str], expires: &str) -> Self {
        fs::create_dir_all(folder).unwrap();
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).unwrap();
        let person = Self(folder.to_owned());
        let id = format!("{} <ada@example.com>", folder.file_name().unwrap().display());
        let key = ["--passphrase", "", "--quick-generate-key", &id, "ed25519", "sign", expires];
        person.gpg(&[options, &key].concat());
        // git starts it by this name.
        let script = format!("#!/bin/sh\nexec gpg --homedir '{}' {} \"$@\"\n", folder.display(), options.join(" "));
        fs::write(folder.join("program"), script).unwrap();
        fs::set_permissions(folder.join("program"), fs::Permissions::from_mode(0o755)).unwrap();
        person
    }

    fn gpg(&self, arguments: &[&str]) -> String {
        run(Command::new("gpg").arg("--homedir").arg(&self.0).args(["--batch", "--quiet"]).args(arguments))
    }

    pub fn fingerprint(&self) -> String {
        let keys = self.gpg(&["--with-colons", "--list-keys"]);
        let line = keys.lines().find(|line| line.starts_with("fpr:")).unwrap();
        line.split(':').nth(9).unwrap().to_owned()
    }

    /// Exports the public key.
    pub fn export(&self, file: &Path, options: &[&str]) {
        let _ = fs::remove_file(file);
        self.gpg(&[options, &["--output", file.to_str().unwrap(), "--export"]].concat());
    }

    /// The configuration with which git signs.
    pub fn config(&self) -> Vec<String> {
        vec![
            format!("gpg.program={}", self.0.join("program").display()),
            format!("user.signingKey={}", self.fingerprint()),
        ]
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        let _ = Command::new("gpgconf").arg("--homedir").arg(&self.0).args(["--kill", "all"]).output();
    }
}

fn strict(world: &World) -> Repository {
    let mut options = world.options(world.up().to_str().unwrap());
    options.trust = Trust { signers: None, keyring: Some(world.root().join("keyring")) };
    Repository::open(options).unwrap()
}

#[test]
fn what_gpg_signs_is_accepted_and_a_change_is_seen() {
    let world = World::new(&FILES);
    let ada = Person::new(&world.root().join("Ada"), &[], "never");
    let keyring = world.root().join("keyring");
    let good = commit(&world, &ada.config(), "signed");
    let mut repository = strict(&world);
    for options in [&["--armor"][..], &[]] {
        ada.export(&keyring, options);
        assert_eq!(repository.check_keys(0), Ok(()));
        assert!(repository.fetch(&good).is_ok(), "{options:?}: {:?}", repository.fetch(&good));
    }
    let bytes = read_commit(&world, "main");
    let text = String::from_utf8(bytes).unwrap();
    let id: CommitId = write_commit(&world, text.replace("\nsigned", "\nsinged").as_bytes()).parse().unwrap();
    assert!(untrusted(repository.fetch(&id)).contains("does not fit its content"));
    // An SSH signature does not count where only a keyring was given, and the other way round.
    let keys = Keys::new(world.root());
    keys.generate("ed", "ed25519", "");
    let ssh = super::signed(&world, &keys, "ed", "with ssh");
    assert!(untrusted(repository.fetch(&ssh)).contains("not among the trusted ones"));
    // Where both were given, either does.
    keys.allow("signers", &["ed"]);
    let mut options = world.options(world.up().to_str().unwrap());
    options.trust = Trust { signers: Some(world.root().join("signers")), keyring: Some(keyring) };
    let mut both = Repository::open(options).unwrap();
    assert!(both.fetch(&ssh).is_ok() && both.fetch(&good).is_ok());
}

#[test]
fn keys_that_are_strange_expired_or_revoked_do_not_count() {
    let world = World::new(&FILES);
    let keyring = world.root().join("keyring");
    let mut repository = strict(&world);
    let ada = Person::new(&world.root().join("Ada"), &[], "never");
    ada.export(&keyring, &["--armor"]);

    let eve = Person::new(&world.root().join("Eve"), &[], "never");
    let stranger = commit(&world, &eve.config(), "stranger");
    let error = untrusted(repository.fetch(&stranger));
    assert!(error.contains(&eve.fingerprint()) && error.contains("not among"), "{error}");

    let old = Person::new(&world.root().join("Old"), &["--faked-system-time", "20200101T000000!"], "1d");
    let expired = commit(&world, &old.config(), "expired");
    old.export(&keyring, &["--armor"]);
    assert!(untrusted(repository.fetch(&expired)).contains("has expired"));

    let weak = Person::new(&world.root().join("Weak"), &["--digest-algo", "SHA1"], "never");
    let sha1 = commit(&world, &weak.config(), "sha1");
    weak.export(&keyring, &["--armor"]);
    let error = untrusted(repository.fetch(&sha1));
    assert!(error.contains("a digest that can be forged"), "{error}");

    ada.export(&keyring, &["--armor"]);
    let good = commit(&world, &ada.config(), "good");
    assert!(repository.fetch(&good).is_ok());
    let certificate = world.root().join(format!("Ada/openpgp-revocs.d/{}.rev", ada.fingerprint()));
    let text = fs::read_to_string(&certificate).unwrap().replace(":-----BEGIN", "-----BEGIN");
    fs::write(&certificate, text).unwrap();
    ada.gpg(&["--import", certificate.to_str().unwrap()]);
    ada.export(&keyring, &["--armor"]);
    assert!(untrusted(repository.fetch(&good)).contains("was revoked"));
}

#[test]
fn a_keyring_that_cannot_be_used_says_so_at_the_start() {
    let world = World::new(&FILES);
    let keyring = world.root().join("keyring");
    let repository = strict(&world);
    let ada = Person::new(&world.root().join("Ada"), &[], "never");
    let check = || match repository.check_keys(0) {
        Err(error @ GitError::Keys { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(check().contains("No such file"));
    fs::write(&keyring, "nothing").unwrap();
    assert!(check().contains("gpg reads no key in it"));
    ada.gpg(&[
        "--armor",
        "--pinentry-mode",
        "loopback",
        "--passphrase",
        "",
        "--output",
        keyring.to_str().unwrap(),
        "--yes",
        "--export-secret-keys",
    ]);
    assert!(check().contains("it holds private keys"));
}
