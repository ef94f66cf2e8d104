//! Signatures with SSH keys (SSHSIG), as `ssh-keygen -Y sign -n git` makes them. ring computes; it is there for TLS.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA512,
    RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use sha2::{Digest as _, Sha256};
use ssh_key::{Algorithm, EcdsaCurve, HashAlg, PublicKey, SshSig, public::KeyData};

use super::Untrusted;

/// What signatures of commits are for, so that none that was made for something else passes as one.
pub(super) const NAMESPACE: &str = "git";

/// How an armored signature begins and ends.
pub(super) const BEGIN: &str = "-----BEGIN SSH SIGNATURE-----";
const END: &str = "-----END SSH SIGNATURE-----";

/// What follows a security key's signature: flags and counter.
const TRAILER: usize = 5;

/// A key, as `ssh-keygen -l` shows it: `ED25519 SHA256:…`.
pub(super) fn shown(key: &KeyData) -> String {
    let kind = match key.algorithm() {
        Algorithm::Ed25519 => "ED25519",
        Algorithm::Ecdsa { .. } => "ECDSA",
        Algorithm::Rsa { .. } => "RSA",
        Algorithm::SkEd25519 => "ED25519-SK",
        Algorithm::SkEcdsaSha2NistP256 => "ECDSA-SK",
        Algorithm::Dsa => "DSA",
        _ => "SSH",
    };
    format!("{kind} {}", key.fingerprint(HashAlg::Sha256))
}

/// A public key as it stands in a file, without a comment.
pub(super) fn line(key: &KeyData) -> String {
    PublicKey::new(key.clone(), "").to_openssh().unwrap_or_default().trim_end().to_owned()
}

/// Reads an armored signature, whatever the length of its lines.
///
/// # Errors
/// [`Untrusted::Malformed`], [`Untrusted::Unfit`] for one that was made for something else than Git.
pub(super) fn parse(armored: &[u8]) -> Result<SshSig, Untrusted> {
    let malformed = |what: &str| Untrusted::Malformed(what.to_owned());
    let text = std::str::from_utf8(armored).map_err(|_| malformed("it is no text"))?;
    let body = text.trim().strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END));
    let body: String = body.ok_or_else(|| malformed("its armor is broken"))?.split_ascii_whitespace().collect();
    STANDARD.decode(&body).map_err(|_| malformed("its armor holds no base64"))?;
    let lines: Vec<&str> = body.as_bytes().chunks(70).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    let signature = SshSig::from_pem(format!("{BEGIN}\n{}\n{END}\n", lines.join("\n"))).map_err(|error| {
        // The one cause that someone meets: `ssh-rsa`, which is RSA with SHA-1.
        Untrusted::Malformed(format!("{error}; signatures with SHA-1 (`ssh-rsa`) are not accepted"))
    })?;
    if signature.namespace() != NAMESPACE {
        let (key, namespace) = (shown(signature.public_key()), signature.namespace().escape_debug());
        return Err(Untrusted::Unfit { key, why: format!("signed something for `{namespace}`, not for Git") });
    }
    Ok(signature)
}

/// Whether the signature is that of `payload` with its key.
///
/// # Errors
/// [`Untrusted::Unsupported`] for kinds of keys that are not checked.
pub(super) fn holds(signature: &SshSig, payload: &[u8]) -> Result<bool, Untrusted> {
    let key = signature.public_key();
    let malformed = |error: ssh_key::Error| Untrusted::Malformed(error.to_string());
    let data = SshSig::signed_data(NAMESPACE, signature.hash_alg(), payload).map_err(malformed)?;
    let bytes = signature.signature_bytes();
    let unsupported = || Untrusted::Unsupported(format!("`{}` with {}", signature.algorithm(), shown(key)));
    let found = match (key, signature.algorithm()) {
        (KeyData::Ed25519(key), Algorithm::Ed25519) => verify(&ED25519, key.as_ref(), &data, bytes),
        (KeyData::Ecdsa(key), Algorithm::Ecdsa { curve }) if curve == key.curve() => {
            match curve {
                EcdsaCurve::NistP256 => pair(bytes, 32)
                    .is_some_and(|pair| verify(&ECDSA_P256_SHA256_FIXED, key.as_sec1_bytes(), &data, &pair)),
                EcdsaCurve::NistP384 => pair(bytes, 48)
                    .is_some_and(|pair| verify(&ECDSA_P384_SHA384_FIXED, key.as_sec1_bytes(), &data, &pair)),
                EcdsaCurve::NistP521 => return Err(unsupported()),
            }
        }
        (KeyData::Rsa(key), Algorithm::Rsa { hash: Some(hash) }) => {
            let (Some(n), Some(e)) = (key.n.as_positive_bytes(), key.e.as_positive_bytes()) else { return Ok(false) };
            let parameters = match hash {
                HashAlg::Sha256 => &RSA_PKCS1_2048_8192_SHA256,
                HashAlg::Sha512 => &RSA_PKCS1_2048_8192_SHA512,
                _ => return Err(unsupported()),
            };
            // https://datatracker.ietf.org/doc/html/rfc8332#section-3: leading zeros may be left out.
            let bytes = padded(bytes, n.len());
            bytes.is_some_and(|bytes| RsaPublicKeyComponents { n, e }.verify(parameters, &data, &bytes).is_ok())
        }
        (KeyData::SkEd25519(key), Algorithm::SkEd25519) => token(key.application(), &data, bytes)
            .is_some_and(|(data, bytes)| verify(&ED25519, key.public_key().as_ref(), &data, bytes)),
        (KeyData::SkEcdsaSha2NistP256(key), Algorithm::SkEcdsaSha2NistP256) => token(key.application(), &data, bytes)
            .is_some_and(|(data, bytes)| {
                pair(bytes, 32)
                    .is_some_and(|pair| verify(&ECDSA_P256_SHA256_FIXED, key.ec_point().as_bytes(), &data, &pair))
            }),
        _ => return Err(unsupported()),
    };
    Ok(found)
}

fn verify(algorithm: &'static dyn VerificationAlgorithm, key: &[u8], data: &[u8], signature: &[u8]) -> bool {
    UnparsedPublicKey::new(algorithm, key).verify(data, signature).is_ok()
}

/// What a security key has signed, and its signature alone.
/// <https://github.com/openssh/openssh-portable/blob/master/PROTOCOL.u2f>
fn token<'a>(application: &str, data: &[u8], bytes: &'a [u8]) -> Option<(Vec<u8>, &'a [u8])> {
    let (signature, trailer) = bytes.split_at_checked(bytes.len().checked_sub(TRAILER)?)?;
    let mut signed = Sha256::digest(application.as_bytes()).to_vec();
    signed.extend_from_slice(trailer);
    signed.extend_from_slice(&Sha256::digest(data));
    Some((signed, signature))
}

/// Two numbers of at most `size` bytes in SSH's form, as two numbers of `size` bytes.
fn pair(mut bytes: &[u8], size: usize) -> Option<Vec<u8>> {
    let mut both = Vec::with_capacity(2 * size);
    for _ in 0..2 {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (number, rest) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
        both.extend(padded(number.strip_prefix(&[0]).unwrap_or(number), size)?);
        bytes = rest;
    }
    bytes.is_empty().then_some(both)
}

/// A number with zeros before it.
fn padded(number: &[u8], size: usize) -> Option<Vec<u8>> {
    let zeros = size.checked_sub(number.len())?;
    Some([&vec![0; zeros], number].concat())
}
