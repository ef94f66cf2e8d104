//! Signatures with OpenPGP keys, checked by the program `gpg` as git does it; see docs/decisions/0008.
//!
//! What it says is read from its machine interface: <https://github.com/gpg/gnupg/blob/master/doc/DETAILS>.

use std::{
    cell::OnceCell,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use tempfile::TempDir;

use super::{super::redact::printable, GitError, Signer, Untrusted};

/// How an armored signature begins.
pub(super) const BEGIN: &str = "-----BEGIN PGP SIGNATURE-----";

/// Digest algorithms that count, by OpenPGP's numbers: SHA-256, SHA-384, SHA-512, SHA-224.
/// <https://www.rfc-editor.org/rfc/rfc9580#section-9.5>
const DIGESTS: [&str; 4] = ["8", "9", "10", "11"];

/// A file of public keys. They are imported into a directory of their own when they are needed first; no other keys and
/// no configuration are used, and nothing is asked of a network.
#[derive(Debug)]
pub(super) struct Keyring {
    file: PathBuf,
    home: OnceCell<Result<TempDir, (String, String)>>,
}

impl Keyring {
    pub(super) fn new(file: PathBuf) -> Self {
        Self { file, home: OnceCell::new() }
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// Imports the keys.
    ///
    /// # Errors
    /// [`GitError::Keys`].
    pub(super) fn ready(&self) -> Result<(), GitError> {
        self.home().map(drop).map_err(|(detail, hint)| GitError::Keys {
            path: self.file.display().to_string(),
            detail,
            hint,
        })
    }

    fn home(&self) -> Result<&Path, (String, String)> {
        let home = self.home.get_or_init(|| import(&self.file));
        home.as_ref().map(TempDir::path).map_err(Clone::clone)
    }

    /// Who signed `payload`.
    ///
    /// # Errors
    /// [`Untrusted`].
    pub(super) fn check(&self, payload: &[u8], signature: &[u8]) -> Result<Signer, Untrusted> {
        let unchecked = |(detail, hint)| Untrusted::Unchecked { detail, hint };
        let home = self.home().map_err(unchecked)?;
        let write = |name: &str, bytes: &[u8]| {
            let file = home.join(name);
            fs::write(&file, bytes).map(|()| file).map_err(|error| unchecked(disk(&error)))
        };
        let (data, signature) = (write("commit", payload)?, write("commit.sig", signature)?);
        let output = gpg(home, &["--verify"], &[&signature, &data]).map_err(unchecked)?;
        judge(&String::from_utf8_lossy(&output.stdout))
    }
}

/// What gpg's status lines come to.
fn judge(status: &str) -> Result<Signer, Untrusted> {
    let words = |name: &str| {
        let lines = status.lines().filter_map(|line| line.strip_prefix("[GNUPG:] "));
        let lines: Vec<Vec<&str>> = lines
            .map(|line| line.split(' ').collect::<Vec<_>>())
            .filter(|words| words.first() == Some(&name))
            .collect();
        lines
    };
    let key = |id: &str| format!("OpenPGP {}", printable(id));
    let signatures = words("NEWSIG").len();
    if signatures > 1 || words("VALIDSIG").len() > 1 {
        return Err(Untrusted::Several);
    }
    for (name, why) in
        [("REVKEYSIG", "was revoked"), ("EXPKEYSIG", "has expired"), ("EXPSIG", "made a signature that has expired")]
    {
        if let Some([_, id, ..]) = words(name).first().map(Vec::as_slice) {
            return Err(Untrusted::Unfit { key: key(id), why: why.to_owned() });
        }
    }
    if let Some([_, id, ..]) = words("BADSIG").first().map(Vec::as_slice) {
        return Err(Untrusted::Bad { key: key(id) });
    }
    if let Some(words) = words("ERRSIG").first() {
        // ERRSIG <keyid> <pkalgo> <hashalgo> <sig_class> <time> <rc> [<fpr>]; rc 9 is a missing public key.
        let id = words.get(7).filter(|fingerprint| fingerprint.len() >= 40).or(words.get(1)).copied();
        let id = id.unwrap_or_default();
        return Err(match words.get(6) {
            Some(&"9") => Untrusted::Unknown { key: key(id) },
            _ => Untrusted::Unsupported(format!(
                "{} with public key algorithm {}",
                key(id),
                words.get(2).unwrap_or(&"?")
            )),
        });
    }
    let (Some(valid), Some(good)) = (words("VALIDSIG").pop(), words("GOODSIG").pop()) else {
        return Err(Untrusted::Malformed("gpg finds no signature in it".into()));
    };
    // VALIDSIG <fpr> <date> <time> <expires> <version> <reserved> <pkalgo> <hashalgo> <class> <primary fpr>
    let (Some(used), Some(digest)) = (valid.get(1), valid.get(8)) else {
        return Err(Untrusted::Malformed("gpg says too little about it".into()));
    };
    let shown = key(valid.get(10).unwrap_or(used));
    if !DIGESTS.contains(digest) {
        let why = "signed with a digest that can be forged (SHA-1 or older)".to_owned();
        return Err(Untrusted::Unfit { key: shown, why });
    }
    let name = good.get(2..).unwrap_or_default().join(" ");
    Ok(Signer { name: printable(&name), key: shown })
}

fn import(file: &Path) -> Result<TempDir, (String, String)> {
    let home = tempfile::Builder::new().prefix("larder-gpg-").tempdir().map_err(|error| disk(&error))?;
    let hint = "export the public keys of those whose commits count: gpg --export --armor NAME… > FILE";
    let bytes = super::read(file)
        .map_err(|error| (error, "check that the file exists and is readable by larder".to_owned()))?;
    // gpg would take the secret halves as well, which have no business here.
    if String::from_utf8_lossy(&bytes).contains("PRIVATE KEY BLOCK") {
        return Err(("it holds private keys".into(), hint.into()));
    }
    let keys = home.path().join("keys");
    fs::write(&keys, bytes).map_err(|error| disk(&error))?;
    let output = gpg(home.path(), &["--import"], &[&keys])?;
    let status = String::from_utf8_lossy(&output.stdout);
    let count = status.lines().filter(|line| line.starts_with("[GNUPG:] IMPORT_OK ")).count();
    if count == 0 || !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().next().map(printable).unwrap_or_default();
        return Err((format!("gpg reads no key in it ({said})"), hint.into()));
    }
    Ok(home)
}

/// Runs gpg with nothing but the keys in `home`.
fn gpg(home: &Path, action: &[&str], files: &[&Path]) -> Result<Output, (String, String)> {
    let mut command = Command::new("gpg");
    command.env_clear().env("LC_ALL", "C").env("HOME", home).env("GNUPGHOME", home);
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command.args(["--homedir"]).arg(home);
    command.args(["--batch", "--no-tty", "--no-options", "--no-autostart", "--disable-dirmngr"]);
    command.args(["--no-auto-key-retrieve", "--no-auto-check-trustdb", "--trust-model", "always"]);
    command.args(["--status-fd", "1"]).args(action).arg("--").args(files).stdin(Stdio::null());
    command.output().map_err(|error| {
        let hint = "install GnuPG (the program gpg), or have commits signed with SSH keys";
        (format!("the program `gpg` cannot be started: {error}"), hint.to_owned())
    })
}

fn disk(error: &std::io::Error) -> (String, String) {
    (format!("a temporary directory cannot be used: {error}"), "check that the disk is not full".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Untrusted, judge};

    const VALID: &str = "[GNUPG:] VALIDSIG AA 2026-11-30 1 0 4 0 1 10 00 BB\n";
    const GOOD: &str = "[GNUPG:] NEWSIG\n[GNUPG:] GOODSIG 11 Ada <ada@example.com>\n";

    #[test]
    fn one_good_signature_of_a_strong_digest_counts() {
        let signer = judge(&format!("{GOOD}{VALID}")).unwrap();
        assert_eq!((signer.name.as_str(), signer.key.as_str()), ("Ada <ada@example.com>", "OpenPGP BB"));
        for (status, expected) in [
            (String::new(), "gpg finds no signature"),
            (GOOD.to_owned(), "gpg finds no signature"),
            (VALID.to_owned(), "gpg finds no signature"),
            (format!("{GOOD}{VALID}{GOOD}{VALID}"), "more than one"),
            (format!("{GOOD}{}", VALID.replace(" 10 00 ", " 2 00 ")), "SHA-1"),
            (format!("[GNUPG:] REVKEYSIG 11 Ada\n{VALID}"), "was revoked"),
            (format!("[GNUPG:] EXPKEYSIG 11 Ada\n{VALID}"), "has expired"),
            (format!("[GNUPG:] EXPSIG 11 Ada\n{VALID}"), "a signature that has expired"),
            ("[GNUPG:] BADSIG 11 Ada\n".to_owned(), "does not fit"),
            ("[GNUPG:] ERRSIG 11 1 8 00 1 9 -\n".to_owned(), "OpenPGP 11, which is not among"),
            ("[GNUPG:] ERRSIG 11 99 8 00 1 4 -\n".to_owned(), "of a kind"),
            // A user id cannot forge a status line of its own.
            ("[GNUPG:] BADSIG 11 x [GNUPG:] GOODSIG\n".to_owned(), "does not fit"),
        ] {
            let error: Untrusted = judge(&status).unwrap_err();
            assert!(error.to_string().contains(expected), "{status}: {error}");
        }
    }
}
