//! The secrets of senders, re-read for each request so that they can be rotated, and compared in constant time.

use std::{fmt, path::PathBuf};

use base64::Engine as _;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq as _};
use tokio::io::AsyncReadExt as _;

use super::sender::Sender;
use crate::model::failure::{Category, Problem};

/// A shorter secret could be guessed.
const SHORTEST: usize = 16;

/// Secrets in a file at most: each of them costs a hash of every body.
const MOST: usize = 32;

/// A file of secrets is no longer than this, in bytes.
const LONGEST_FILE: u64 = 64 << 10;

/// What marks a signing token of GitLab; its key follows in Base64.
const SIGNING_TOKEN: &str = "whsec_";

/// A file with a secret on each line; any of them is good.
#[derive(Clone, Debug)]
pub struct SecretFile(PathBuf);

/// The secrets of a file. Their values are never shown.
pub(super) struct Secrets(Vec<String>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

impl SecretFile {
    /// Names the file; it is read at each use.
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Whether the file can be used now.
    ///
    /// # Errors
    /// When it cannot be read, holds no secret, or one that is too short.
    pub async fn check(&self) -> Result<(), Problem> {
        self.read().await.map(drop)
    }

    pub(super) async fn read(&self) -> Result<Secrets, Problem> {
        let path = self.0.display();
        let fail = |error: std::io::Error| {
            Problem::new(Category::Io, format!("the webhook secrets in {path} cannot be read: {error}"))
                .hint("check --webhook-secret-file and that larder may read it")
        };
        let mut text = String::new();
        let file = tokio::fs::File::open(&self.0).await.map_err(fail)?;
        file.take(LONGEST_FILE).read_to_string(&mut text).await.map_err(fail)?;
        Secrets::parse(&text).map_err(|message| {
            Problem::new(Category::Credentials, format!("{path} {message}"))
                .hint("write one secret a line; `openssl rand -hex 32` makes one")
        })
    }
}

impl Secrets {
    fn parse(text: &str) -> Result<Self, String> {
        let secrets: Vec<String> =
            // Some editors begin a file with a byte order mark, which nobody sees.
            text.trim_start_matches('\u{feff}').lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
        match secrets.iter().position(|secret| secret.len() < SHORTEST) {
            _ if secrets.len() > MOST => Err(format!("holds more than {MOST} webhook secrets")),
            _ if secrets.is_empty() => Err("holds no webhook secret".to_owned()),
            Some(index) => {
                Err(format!("holds a webhook secret of less than {SHORTEST} characters (number {})", index + 1))
            }
            None => Ok(Self(secrets)),
        }
    }

    /// Whether the token is one of them. Takes as long for a wrong one as for a right one.
    pub(super) fn hold(&self, token: &str) -> bool {
        // Hashes are of one length, so that not even the secrets' lengths show.
        let hash = |text: &str| Sha256::digest(text.as_bytes());
        let token = hash(token);
        let found = self.0.iter().fold(Choice::from(0), |found, secret| found | hash(secret).ct_eq(&token));
        found.into()
    }

    /// Begins to check signatures of a sender.
    pub(super) fn verifier(&self, sender: Sender, before: &[u8]) -> Verifier {
        let keys = self.0.iter().map(|secret| match secret.strip_prefix(SIGNING_TOKEN) {
            Some(key) if sender == Sender::GitLab => {
                base64::engine::general_purpose::STANDARD.decode(key).unwrap_or_else(|_| secret.clone().into_bytes())
            }
            _ => secret.clone().into_bytes(),
        });
        // A key of any length is taken.
        let mut macs: Vec<Hmac<Sha256>> = keys.filter_map(|key| Hmac::new_from_slice(&key).ok()).collect();
        macs.iter_mut().for_each(|mac| mac.update(before));
        Verifier(macs)
    }
}

/// Checks the signature of a body piece by piece.
pub(super) struct Verifier(Vec<Hmac<Sha256>>);

impl Verifier {
    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.0.iter_mut().for_each(|mac| mac.update(bytes));
    }

    /// Whether one of the signatures was made with one of the secrets.
    pub(super) fn accept(self, any_of: &[Vec<u8>]) -> bool {
        let mut found = Choice::from(0);
        for mac in self.0 {
            let right = mac.finalize().into_bytes();
            for signature in any_of {
                found |= right.as_slice().ct_eq(signature);
            }
        }
        found.into()
    }
}

#[cfg(test)]
mod tests {
    use super::{Secrets, Sender};

    const OLD: &str = "0123456789abcdef-old";
    const NEW: &str = "0123456789abcdef-new";

    #[test]
    fn files_of_secrets() {
        for (text, expected) in [
            ("", Err("holds no webhook secret")),
            ("\n \n", Err("holds no webhook secret")),
            ("short\n", Err("less than 16 characters (number 1)")),
            ("0123456789abcdef\nshort", Err("less than 16 characters (number 2)")),
            ("0123456789abcdef", Ok(1)),
            ("\u{feff}fedcba9876543210", Ok(1)),
            ("0123456789abcdef\r\n\n  fedcba9876543210  \n", Ok(2)),
        ] {
            match (Secrets::parse(text), expected) {
                (Ok(secrets), Ok(count)) => assert_eq!(secrets.0.len(), count, "{text:?}"),
                (Err(message), Err(part)) => assert!(message.contains(part), "{text:?}: {message}"),
                (found, _) => panic!("{text:?}: {found:?}"),
            }
        }
        let secrets = Secrets::parse("\u{feff}0123456789abcdef\r\n").unwrap();
        assert!(secrets.hold("0123456789abcdef"));
        assert_eq!(format!("{secrets:?}"), "Secrets(1)");
    }

    #[test]
    fn any_of_the_secrets_is_good_and_nothing_else() {
        let secrets = Secrets::parse(&format!("{OLD}\n{NEW}\n")).unwrap();
        for (token, expected) in [
            (OLD, true),
            (NEW, true),
            ("", false),
            ("0123456789abcdef", false),
            ("0123456789abcdef-new ", false),
            (&format!("{OLD}\n{NEW}"), false),
        ] {
            assert_eq!(secrets.hold(token), expected, "{token}");
        }
    }

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    #[test]
    fn signatures_are_those_of_the_senders() {
        // The example of GitHub's documentation.
        let secret = "It's a Secret to Everybody";
        let right = bytes("757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17");
        let secrets = Secrets::parse(&format!("{OLD}\n{secret}")).unwrap();
        let accept = |body: &[&str], any_of: &[Vec<u8>]| {
            let mut verifier = secrets.verifier(Sender::GitHub, b"");
            body.iter().for_each(|part| verifier.update(part.as_bytes()));
            verifier.accept(any_of)
        };
        assert!(accept(&["Hello, World!"], std::slice::from_ref(&right)));
        assert!(accept(&["Hello", ", World!"], &[vec![], vec![0; 32], right.clone()]));
        assert!(!accept(&["Hello, World"], std::slice::from_ref(&right)));
        assert!(!accept(&["Hello, World!"], &[right[..31].to_vec()]));
        assert!(!accept(&["Hello, World!"], &[vec![]]));
        assert!(!accept(&["Hello, World!"], &[]));

        // The example of the Standard Webhooks specification, as GitLab signs: the key is the token's Base64.
        let secrets = Secrets::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let right = base64::Engine::decode(
            &base64::engine::general_purpose::STANDARD,
            "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        )
        .unwrap();
        let mut verifier = secrets.verifier(Sender::GitLab, b"msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.");
        verifier.update(br#"{"test": 2432232314}"#);
        assert!(verifier.accept(&[right]));
    }
}
