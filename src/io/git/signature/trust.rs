//! Whose signatures count, and why another one does not.

use std::path::PathBuf;

use ssh_key::public::KeyData;

use super::{GitError, allowed::Allowed, header, openpgp, openpgp::Keyring, split, ssh};

/// The files that say whose signatures count. They are re-read at each use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// SSH keys, in OpenSSH's form of allowed signers (ssh-keygen(1), ALLOWED SIGNERS).
    pub signers: Option<PathBuf>,
    /// OpenPGP public keys, armored or not.
    pub keyring: Option<PathBuf>,
}

/// The keys whose signatures count.
#[derive(Debug)]
pub struct Trusted {
    signers: Option<(PathBuf, Allowed)>,
    keyring: Option<Keyring>,
}

/// Who signed a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signer {
    /// As the list of signers, or the key itself, names its owner.
    pub name: String,
    /// The key: `ED25519 SHA256:…`, or `OpenPGP` and a fingerprint.
    pub key: String,
}

/// Why a commit's signature does not count. Holds no control characters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Untrusted {
    /// There is no signature.
    #[error("it is not signed")]
    Unsigned,
    /// There are several, and it could depend on the reader which one counts.
    #[error("it has more than one signature")]
    Several,
    /// Something that is not a signature.
    #[error("its signature cannot be read: {0}")]
    Malformed(String),
    /// A kind of signature that is not checked.
    #[error("its signature is of a kind that larder does not check: {0}")]
    Unsupported(String),
    /// A key that is not among the trusted ones.
    #[error("it is signed with the key {key}, which is not among the trusted ones")]
    Unknown {
        /// The key.
        key: String,
    },
    /// A signature of something else.
    #[error("its signature with the key {key} does not fit its content: something was changed after signing")]
    Bad {
        /// The key.
        key: String,
    },
    /// A trusted key that does not count here: expired, revoked, for another purpose.
    #[error("it is signed with the key {key}, which {why}")]
    Unfit {
        /// The key.
        key: String,
        /// A clause that begins with a verb.
        why: String,
    },
    /// It is not known whether it counts.
    #[error("its signature could not be checked: {detail}")]
    Unchecked {
        /// What is in the way.
        detail: String,
        /// What to do about it.
        hint: String,
    },
}

impl Untrusted {
    /// What its reader can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Unsigned | Self::Several | Self::Malformed(_) => {
                "put a signed commit on top, which vouches for it (`git commit --allow-empty -S`), or revert it with one"
                    .into()
            }
            Self::Unsupported(_) => {
                "sign with an ed25519, ecdsa (nistp256, nistp384), rsa or security key, or with OpenPGP".into()
            }
            Self::Unknown { .. } => {
                "if this is someone who may commit, add the key to the trusted ones; if not, find \
                                     out who pushed it"
                    .into()
            }
            Self::Bad { .. } => "do not trust this commit; find out who pushed it".into(),
            Self::Unfit { .. } => "sign with a key that is valid, or bring the list of trusted keys up to date".into(),
            Self::Unchecked { hint, .. } => hint.clone(),
        }
    }
}

impl Trust {
    /// Whether signatures do not matter.
    pub fn is_empty(&self) -> bool {
        self.signers.is_none() && self.keyring.is_none()
    }

    /// Reads the list of SSH keys; the OpenPGP keys are read when they are needed.
    ///
    /// # Errors
    /// [`GitError::Keys`].
    pub fn load(&self) -> Result<Trusted, GitError> {
        let read = |file: &PathBuf| -> Result<_, GitError> {
            let bytes = super::read(file).map_err(|detail| GitError::Keys {
                path: file.display().to_string(),
                detail,
                hint: "check that the file exists and is readable by larder".into(),
            })?;
            Ok((file.clone(), Allowed::parse(file, &bytes)?))
        };
        let signers = self.signers.as_ref().map(read).transpose()?;
        Ok(Trusted { signers, keyring: self.keyring.clone().map(Keyring::new) })
    }
}

impl Trusted {
    /// Who signed the commit whose bytes these are. The commit's own time decides whether an SSH key was valid, as it
    /// does for Git: a commit does not become wrong because its key is retired.
    ///
    /// # Errors
    /// [`Untrusted`].
    pub fn check(&self, commit: &[u8]) -> Result<Signer, Untrusted> {
        let parts = split(commit)?;
        let signature = parts.signature.ok_or(Untrusted::Unsigned)?;
        if signature.starts_with(ssh::BEGIN.as_bytes()) {
            let signature = ssh::parse(&signature)?;
            let key = ssh::shown(signature.public_key());
            let name = self.name(signature.public_key(), header::time(commit))?;
            return if ssh::holds(&signature, &parts.payload)? {
                Ok(Signer { name, key })
            } else {
                Err(Untrusted::Bad { key })
            };
        }
        if signature.starts_with(openpgp::BEGIN.as_bytes()) {
            return match &self.keyring {
                Some(keyring) => keyring.check(&parts.payload, &signature),
                None => Err(Untrusted::Unfit {
                    key: "OpenPGP".into(),
                    why: "is of a kind of which none is trusted: no keyring was given".into(),
                }),
            };
        }
        let first = String::from_utf8_lossy(&signature).lines().next().unwrap_or_default().to_owned();
        Err(Untrusted::Unsupported(format!("`{}`", super::super::redact::printable(&first))))
    }

    /// Whether a signature with that key would count at that time.
    ///
    /// # Errors
    /// [`Untrusted`].
    pub(super) fn accepts(&self, key: &KeyData, seconds: i64) -> Result<(), Untrusted> {
        self.name(key, seconds).map(drop)
    }

    fn name(&self, key: &KeyData, seconds: i64) -> Result<String, Untrusted> {
        match &self.signers {
            Some((_, signers)) => signers.find(key, seconds),
            None => Err(Untrusted::Unknown { key: ssh::shown(key) }),
        }
    }

    /// What commits have to be signed with, in words.
    pub(super) fn expected(&self) -> String {
        let signers = self.signers.as_ref();
        let signers = signers.map(|(file, keys)| match keys.len() {
            1 => format!("the key of {}", file.display()),
            count => format!("one of the {count} keys of {}", file.display()),
        });
        let keyring = self.keyring.as_ref().map(|keyring| format!("a key of the keyring {}", keyring.file().display()));
        let expected: Vec<String> = signers.into_iter().chain(keyring).collect();
        expected.join(" or ")
    }

    /// Reads what [`Trust::load`] has left for later.
    ///
    /// # Errors
    /// [`GitError::Keys`].
    pub fn ready(&self) -> Result<(), GitError> {
        self.keyring.as_ref().map_or(Ok(()), Keyring::ready)
    }
}
