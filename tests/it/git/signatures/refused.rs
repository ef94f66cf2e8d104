//! Commits that are not what someone signed.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use larder::io::git::{CommitId, GitError};

use super::{
    super::world::World,
    FILES,
    keys::{Keys, read_commit, write_commit},
    signed, strict, untrusted,
};

/// The commit without its signature, and that, unfolded.
fn parts(commit: &[u8]) -> (String, String) {
    let text = String::from_utf8(commit.to_vec()).unwrap();
    let (head, rest) = text.split_once("gpgsig ").unwrap();
    let end = rest.find("-----END SSH SIGNATURE-----\n").unwrap() + "-----END SSH SIGNATURE-----\n".len();
    (format!("{head}{}", &rest[end..]), rest[..end].replace("\n ", "\n"))
}

/// The commit with that signature.
fn with(payload: &str, signature: &str) -> String {
    let (head, message) = payload.split_once("\n\n").unwrap();
    format!("{head}\ngpgsig {}\n\n{message}", signature.trim_end().replace('\n', "\n "))
}

#[test]
fn whatever_was_changed_after_signing_is_seen() {
    let world = World::new(&FILES);
    let keys = Keys::new(world.root());
    for (name, kind) in [("ed", "ed25519"), ("rsa", "rsa"), ("p256", "ecdsa")] {
        keys.generate(name, kind, "");
    }
    keys.allow("signers", &["ed", "rsa", "p256"]);
    let other = world.git(&world.up(), &["rev-parse", "main^{tree}"]);
    world.commit(&[("lock/a/x.yaml", "evil\n")], "another tree");
    let mut repository = strict(&world, "signers");
    for name in ["ed", "rsa", "p256"] {
        let good = signed(&world, &keys, name, "Add notebook");
        assert!(repository.fetch(&good).is_ok(), "{name}");
        let (payload, signature) = parts(&read_commit(&world, "main"));
        assert_eq!(with(&payload, &signature).as_bytes(), read_commit(&world, "main"));
        let tree = world.git(&world.up(), &["rev-parse", "main^{tree}"]);
        let line = |start: &str| payload.lines().find(|line| line.starts_with(start)).unwrap().to_owned();
        for changed in [
            payload.replace("Add notebook", "Add notebooks"),
            payload.replace(&tree, &other),
            payload.replace(&line("author "), "author Eve <eve@example.com> 1770000000 +0100"),
            payload.replace("1770000000 +0100", "1770000001 +0100"),
            payload.replace(&format!("{}\n", line("parent ")), ""),
            payload.replace("\n\n", "\nencoding UTF-7\n\n"),
            payload.replace("\n\n", "\nx-more y\n\n"),
            format!("{payload}\n"),
        ] {
            let id: CommitId = write_commit(&world, with(&changed, &signature).as_bytes()).parse().unwrap();
            assert!(untrusted(repository.fetch(&id)).contains("does not fit its content"), "{name} {changed}");
        }
        // A signature with one bit less.
        let body: String = signature.lines().filter(|line| !line.starts_with("-----")).collect();
        let mut bytes = STANDARD.decode(body).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        let broken =
            format!("-----BEGIN SSH SIGNATURE-----\n{}\n-----END SSH SIGNATURE-----\n", STANDARD.encode(&bytes));
        let id: CommitId = write_commit(&world, with(&payload, &broken).as_bytes()).parse().unwrap();
        assert!(untrusted(repository.fetch(&id)).contains("does not fit its content"), "{name}");
        // The same signature in one long line is as good.
        *bytes.last_mut().unwrap() ^= 1;
        let long = format!("-----BEGIN SSH SIGNATURE-----\n{}\n-----END SSH SIGNATURE-----\n", STANDARD.encode(&bytes));
        let id: CommitId = write_commit(&world, with(&payload, &long).as_bytes()).parse().unwrap();
        assert!(repository.fetch(&id).is_ok(), "{name}");
    }
}

#[test]
fn signatures_that_are_none_do_not_count() {
    let world = World::new(&FILES);
    let keys = Keys::new(world.root());
    keys.generate("ed", "ed25519", "");
    keys.generate("rsa", "rsa", "3072");
    keys.generate("p521", "ecdsa", "521");
    keys.allow("signers", &["ed", "rsa", "p521"]);
    let mut repository = strict(&world, "signers");
    let unsigned = world.rev("main");
    assert!(untrusted(repository.fetch(&unsigned)).contains("it is not signed"));
    let big = signed(&world, &keys, "p521", "p521");
    assert!(untrusted(repository.fetch(&big)).contains("ecdsa-sha2-nistp521"));

    let good = signed(&world, &keys, "rsa", "signed");
    let (payload, signature) = parts(&read_commit(&world, &good.to_string()));
    // RSA with SHA-1, which OpenSSH calls `ssh-rsa`: the name of the algorithm stands before the signature.
    let body: String = signature.lines().filter(|line| !line.starts_with("-----")).collect();
    let mut bytes = STANDARD.decode(body).unwrap();
    let name = b"\0\0\0\x0crsa-sha2-512";
    let at = bytes.windows(name.len()).rposition(|window| window == name).unwrap();
    let length = u32::from_be_bytes(bytes[at - 4..at].try_into().unwrap()) - 5;
    bytes.splice(at - 4..at + name.len(), [&length.to_be_bytes()[..], b"\0\0\0\x07ssh-rsa"].concat());
    let sha1 = format!("-----BEGIN SSH SIGNATURE-----\n{}\n-----END SSH SIGNATURE-----\n", STANDARD.encode(bytes));
    let armor = |begin: &str| format!("-----BEGIN {begin}-----\nAAAA\n-----END {begin}-----\n");
    for (signature, expected) in [
        (keys.sign("ed", "file", payload.as_bytes()), "for `file`, not for Git"),
        (sha1, "SHA-1"),
        (armor("SSH SIGNATURE"), "cannot be read"),
        (armor("SIGNED MESSAGE"), "of a kind that larder does not check"),
        (armor("PGP SIGNATURE"), "no keyring was given"),
        (format!("{signature}{signature}"), "cannot be read"),
        ("x".to_owned(), "of a kind that larder does not check"),
    ] {
        let id: CommitId = write_commit(&world, with(&payload, &signature).as_bytes()).parse().unwrap();
        let error = untrusted(repository.fetch(&id));
        assert!(error.contains(expected), "{expected}: {error}");
    }
    // Two headers, of which one is good.
    let twice = with(&with(&payload, &signature), &keys.sign("ed", "git", payload.as_bytes()));
    let id: CommitId = write_commit(&world, twice.as_bytes()).parse().unwrap();
    assert!(untrusted(repository.fetch(&id)).contains("more than one signature"));
    // The signature of the commit's SHA-256 name is no content, as for git.
    let (head, message) =
        with(&payload, &signature).split_once("\n\n").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let id: CommitId =
        write_commit(&world, format!("{head}\ngpgsig-sha256 x\n y\n\n{message}").as_bytes()).parse().unwrap();
    assert!(repository.fetch(&id).is_ok());
    assert!(keys.git_accepts(&world, "signers", &id.to_string()));
}

#[test]
fn nothing_of_a_commit_is_read_before_its_signature() {
    let world = World::new(&FILES);
    let keys = Keys::new(world.root());
    keys.generate("ed", "ed25519", "");
    keys.allow("signers", &["ed"]);
    // Its tree is not there at all: anyone who looked for it would say so.
    let commit = String::from_utf8(read_commit(&world, "main")).unwrap();
    let tree = world.git(&world.up(), &["rev-parse", "main^{tree}"]);
    let id: CommitId = write_commit(&world, commit.replace(&tree, &"1".repeat(40)).as_bytes()).parse().unwrap();
    assert!(untrusted(strict(&world, "signers").fetch(&id)).contains("it is not signed"));
    assert!(matches!(world.local().fetch(&id), Err(GitError::Corrupt { .. })));
    // The same through a server, where the pack has come already.
    let server = super::super::server::Server::start(&world, None);
    let unsigned = world.rev("main");
    let mut options = world.options(&server.url());
    options.trust.signers = Some(world.root().join("signers"));
    let mut repository = larder::io::git::Repository::open(options).unwrap();
    assert!(untrusted(repository.fetch(&unsigned)).contains("it is not signed"));
    let good = signed(&world, &keys, "ed", "signed");
    assert!(repository.fetch(&good).is_ok());
}
