//! Signatures that OpenSSH itself makes and checks.

use std::{fs, path::Path, process::Command};

use ring::signature::{Ed25519KeyPair, KeyPair as _};
use sha2::{Digest as _, Sha256};
use ssh_key::{
    Algorithm, HashAlg, LineEnding, PublicKey, Signature, SshSig,
    public::{Ed25519PublicKey, KeyData, SkEd25519},
};

use super::{key, ssh};

fn keygen(folder: &Path, arguments: &[&str]) -> bool {
    let output = Command::new("ssh-keygen").current_dir(folder).args(arguments).output();
    output.expect("ssh-keygen is needed: `make test` installs it").status.success()
}

/// Whether ssh-keygen takes a signature of `payload`.
fn accepted(folder: &Path, public: &str, payload: &[u8], signature: &str) -> bool {
    fs::write(folder.join("signers"), format!("a {public}\n")).unwrap();
    fs::write(folder.join("payload"), payload).unwrap();
    fs::write(folder.join("sig"), signature).unwrap();
    let verify = "ssh-keygen -Y verify -f signers -I a -n git -s sig <payload";
    Command::new("sh").current_dir(folder).args(["-c", verify]).output().unwrap().status.success()
}

#[test]
fn ssh_keygen_and_larder_agree() {
    let folder = tempfile::tempdir().unwrap();
    for (kind, bits) in [("ed25519", "256"), ("ecdsa", "384")] {
        let file = folder.path().join(kind);
        assert!(keygen(folder.path(), &["-q", "-t", kind, "-b", bits, "-N", "", "-f", kind]));
        let public = fs::read_to_string(folder.path().join(format!("{kind}.pub"))).unwrap();
        for payload in [&b""[..], b"tree\n", &[0xff; 3000]] {
            let signature = key::sign(&file, payload).unwrap();
            assert!(accepted(folder.path(), public.trim(), payload, &format!("{signature}\n")), "{kind}");
            let parsed = ssh::parse(signature.as_bytes()).unwrap();
            assert_eq!(ssh::holds(&parsed, payload), Ok(true));
            assert_eq!(ssh::holds(&parsed, b"other"), Ok(false));
        }
    }
}

/// A security key, played by its own rules: <https://github.com/openssh/openssh-portable/blob/master/PROTOCOL.u2f>.
#[test]
fn signatures_of_security_keys() {
    let folder = tempfile::tempdir().unwrap();
    let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
    let key = Ed25519PublicKey(pair.public_key().as_ref().try_into().unwrap());
    let public = KeyData::SkEd25519(SkEd25519::new(key, "ssh:"));
    let data = SshSig::signed_data("git", HashAlg::Sha512, b"payload").unwrap();
    let trailer = [1, 0, 0, 0, 9];
    let signed = [&Sha256::digest(b"ssh:")[..], &trailer, &Sha256::digest(&data)].concat();
    let bytes = [pair.sign(&signed).as_ref(), &trailer].concat();
    let signature = Signature::new(Algorithm::SkEd25519, bytes).unwrap();
    let signature = SshSig::new(public.clone(), "git", HashAlg::Sha512, signature).unwrap();
    let armored = signature.to_pem(LineEnding::LF).unwrap();
    let line = PublicKey::new(public, "").to_openssh().unwrap();
    assert!(accepted(folder.path(), line.trim(), b"payload", &armored), "as OpenSSH has it");
    let parsed = ssh::parse(armored.as_bytes()).unwrap();
    assert_eq!(ssh::holds(&parsed, b"payload"), Ok(true));
    assert_eq!(ssh::holds(&parsed, b"payloaf"), Ok(false));
}

proptest::proptest! {
    /// Whatever someone pushes: a commit with some bytes of its signature changed, or anything at all, is refused and
    /// nothing worse.
    #[test]
    fn no_bytes_pass_and_none_panic(
        any in proptest::collection::vec(proptest::num::u8::ANY, 0..400),
        changes in proptest::collection::vec((0_usize..400, proptest::num::u8::ANY), 1..6),
    ) {
        let trusted = super::Trust::default().load().unwrap();
        let mut bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, GOOD).unwrap();
        for (at, byte) in changes {
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
        }
        for body in [&any, &bytes] {
            let body = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, body);
            let armored = format!("-----BEGIN SSH SIGNATURE-----\n{body}\n-----END SSH SIGNATURE-----\n");
            if let Ok(signature) = ssh::parse(armored.as_bytes()) {
                assert_ne!(ssh::holds(&signature, &any), Ok(true));
            }
            let commit = format!("tree x\ngpgsig {}\n\nm", armored.trim_end().replace('\n', "\n "));
            assert!(trusted.check(commit.as_bytes()).is_err());
        }
        assert!(trusted.check(&any).is_err());
        let _ = ssh::parse(&any);
        let _ = super::allowed::Allowed::parse(Path::new("signers"), &any);
    }
}

/// A signature by ssh-keygen, of something else than what the test takes.
const GOOD: &str = "\
U1NIU0lHAAAAAQAAARcAAAAHc3NoLXJzYQAAAAMBAAEAAAEBAK2MLDiPBfX16gUiaKOXLv/Nx6TUnhW+OXVDNRFKRYr8oP1qUwNU\
Wmh52CD0lW4zxYr9thWaJ1+9p2NHNnPGv0uCD7RIvd50DrkTVSu0LcEniDDsmWEfLpMJu5D5HjbCSPWCmLgB/saBtoEun4rNtJFm\
bWhPvJWlbz0UQtFERFzaYRHx2ubktFEvwlgFugMlYG/8A3Ztvcx08qak6Xt9+ZHKEJNwo9cUvpZle3EDyRPdtZomoQVNpzS704tt\
YVJl6wnlxSGEWXw6zd14xho+18x1NiLkcoLdtzgzD0+74ZQDW+UoL2BXYbISBKBFoJCPmCfl8g29flHGGiOmCnu7SwEAAAADZ2l0\
AAAAAAAAAAZzaGE1MTIAAAEUAAAADHJzYS1zaGEyLTUxMgAAAQCo/F86gdTe7T8Ql6cT5yjYPZSPtHHph/0YnP4gxFgq9jdik/fY\
IP9oFwj9Q3TARNeqHDDaDnEDLWfy2f8aonGsXqm1z2iUJu+uNJ9C+abg750MgScshNTN8NKtAEb5gnEVtO7frXY9V8JLok5Gtcb+\
rZbR7Yo5PdvpdfZ6pz652rdSomNfHCTrqBMyrbXkFPGWG4LhG6qrKTYBMkd1vIY6bAj3iTjTvYD7xydRYpNZIYEY3k7eIxXrUJeg\
A3uoYNT9RYpWKbCrewDxanZjGQ8dN0jGwVeQSClPEwjOxNMvhwY6ZEhbIBBeRKyUYM+IB+7KQiJg9cLOUQflPySv7X+3";

/// One ecdsa key in 256 has a number that begins with a zero byte. This one does.
#[test]
fn a_short_number_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("short");
    let label = "OPENSSH PRIVATE KEY";
    let text = format!("-----BEGIN {label}-----\n{SHORT}\n-----END {label}-----\n");
    fs::write(&file, &text).unwrap();
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    assert!(ssh_key::PrivateKey::from_openssh(&text).is_err(), "the library can do it itself now");
    let signature = key::sign(&file, b"payload").unwrap();
    let public = Command::new("ssh-keygen").arg("-yf").arg(&file).output().unwrap().stdout;
    assert!(accepted(folder.path(), String::from_utf8(public).unwrap().trim(), b"payload", &format!("{signature}\n")));
}

/// Made for this test alone, and used nowhere.
const SHORT: &str = "\
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAaAAAABNlY2RzYS\n\
1zaGEyLW5pc3RwMjU2AAAACG5pc3RwMjU2AAAAQQT1hlKojtyMCHQjQlg8CvABeLH5poZJ\n\
MWM0o60SKxRXPVwwKNEe1lHw//Jw/E8ZYqUWenFDzm6Lrq0MyAzFvnfXAAAAmNWvzDPVr8\n\
wzAAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBPWGUqiO3IwIdCNC\n\
WDwK8AF4sfmmhkkxYzSjrRIrFFc9XDAo0R7WUfD/8nD8TxlipRZ6cUPObouurQzIDMW+d9\n\
cAAAAfGrQ6qC9QMr8RUyV7/64b++zsimTrWHQdN2b3KTwgeAAAAAAB";
