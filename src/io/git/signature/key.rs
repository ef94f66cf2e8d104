//! larder's own key: an OpenSSH private key in a file, re-read at each use so that it can be rotated.

use std::path::Path;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair},
};
use ssh_key::{
    Algorithm, EcdsaCurve, HashAlg, LineEnding, Mpint, PrivateKey, Signature, SshSig,
    private::{EcdsaKeypair, Ed25519Keypair, KeypairData},
};

use super::{GitError, ssh};

/// Signs a commit's bytes for Git; the signature as it stands in the header, without a final line break.
///
/// # Errors
/// [`GitError::Signing`]. No error holds anything of the key.
pub(in super::super) fn sign(file: &Path, payload: &[u8]) -> Result<String, GitError> {
    let key = read(file)?;
    let unusable = |detail: &str| refuse(file, detail, "create an ed25519 key: ssh-keygen -t ed25519 -N '' -f FILE");
    // The hash that ssh-keygen takes as well.
    let data = SshSig::signed_data(ssh::NAMESPACE, HashAlg::Sha512, payload);
    let data = data.map_err(|error| unusable(&error.to_string()))?;
    let (algorithm, bytes) = match key.key_data() {
        KeypairData::Ed25519(pair) => (Algorithm::Ed25519, ed25519(pair, &data)),
        KeypairData::Ecdsa(pair) => (Algorithm::Ecdsa { curve: pair.curve() }, ecdsa(pair, &data)),
        // OpenSSH does not store two of the numbers that `ring` needs; computing them by hand would leak the others.
        KeypairData::Rsa(_) => {
            return Err(unusable("larder does not sign with RSA keys; it signs with ed25519 or ecdsa"));
        }
        _ => return Err(unusable("larder signs with ed25519 and ecdsa (nistp256, nistp384) keys")),
    };
    let bytes = bytes.ok_or_else(|| unusable("it cannot sign; ed25519 and ecdsa (nistp256, nistp384) keys can"))?;
    let signature = Signature::new(algorithm, bytes)
        .and_then(|signature| {
            SshSig::new(key.public_key().key_data().clone(), ssh::NAMESPACE, HashAlg::Sha512, signature)
        })
        .and_then(|signature| signature.to_pem(LineEnding::LF));
    signature.map(|text| text.trim_end().to_owned()).map_err(|error| unusable(&error.to_string()))
}

/// Reads the key.
///
/// # Errors
/// [`GitError::Signing`].
pub(super) fn read(file: &Path) -> Result<PrivateKey, GitError> {
    let bytes = super::read(file)
        .map_err(|error| refuse(file, &error, "check that the file exists and is readable by larder"))?;
    let text = String::from_utf8(bytes).unwrap_or_default();
    // What came through an editor or a form may have other line ends, or none at the end.
    let text: String = text.trim().lines().map(|line| format!("{}\n", line.trim_end())).collect();
    let convert = "larder reads OpenSSH private keys; convert a copy with: ssh-keygen -p -N '' -f FILE";
    match text.lines().next().unwrap_or_default() {
        "-----BEGIN OPENSSH PRIVATE KEY-----" => {}
        first if first.starts_with("-----BEGIN") && first.contains("PRIVATE KEY") => {
            return Err(refuse(file, "it is a private key in another form", convert));
        }
        first if first.starts_with("ssh-") || first.starts_with("ecdsa-") || first.starts_with("sk-") => {
            return Err(refuse(file, "it is a public key", "give the private one, the file without .pub"));
        }
        _ => return Err(refuse(file, "it is no OpenSSH private key", convert)),
    }
    // The library's errors name fields, never values.
    let key = PrivateKey::from_openssh(&text)
        .or_else(|error| full_length(&text).map_or(Err(error), |bytes| PrivateKey::from_bytes(&bytes)))
        .map_err(|error| refuse(file, &error.to_string(), convert))?;
    if key.is_encrypted() {
        return Err(refuse(
            file,
            "it is protected by a passphrase, and there is nobody to type it",
            "give larder a key of its own without one: ssh-keygen -t ed25519 -N '' -f FILE",
        ));
    }
    Ok(key)
}

/// An ecdsa key with its number at full length: one in 256 begins with a zero byte, which OpenSSH leaves out and the
/// library does not expect to be. <https://github.com/openssh/openssh-portable/blob/master/PROTOCOL.key>
fn full_length(text: &str) -> Option<Vec<u8>> {
    let body: String = text.lines().filter(|line| !line.starts_with("-----")).collect();
    let bytes = STANDARD.decode(body).ok()?;
    // The magic, cipher and kdf (none) with its options, and that there is one key.
    let (head, mut rest) = bytes.split_at_checked(b"openssh-key-v1\0".len() + 8 + 8 + 4 + 4)?;
    let (public, mut private) = (field(&mut rest)?, field(&mut rest)?);
    let check = private.split_off(..8)?;
    let (kind, curve, point, number) =
        (field(&mut private)?, field(&mut private)?, field(&mut private)?, field(&mut private)?);
    let comment = field(&mut private)?;
    // The point is two numbers of full length, and a byte that says so.
    let size = point.len().checked_sub(1)? / 2;
    let zeros = size.checked_sub(number.len()).filter(|&zeros| zeros > 0 && kind.starts_with(b"ecdsa-sha2-"))?;
    let mut whole = check.to_vec();
    for part in [kind, curve, point, &[&vec![0; zeros], number].concat(), comment] {
        put(&mut whole, part)?;
    }
    let padding = (8 - whole.len() % 8) % 8;
    whole.extend((1_u8..).take(padding));
    let mut out = head.to_vec();
    put(&mut out, public)?;
    put(&mut out, &whole)?;
    Some(out)
}

/// Takes a field with its length before it.
fn field<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = bytes.split_off(..4)?;
    bytes.split_off(..usize::try_from(u32::from_be_bytes(length.try_into().ok()?)).ok()?)
}

fn put(out: &mut Vec<u8>, field: &[u8]) -> Option<()> {
    out.extend(u32::try_from(field.len()).ok()?.to_be_bytes());
    out.extend_from_slice(field);
    Some(())
}

fn refuse(file: &Path, detail: &str, hint: &str) -> GitError {
    GitError::Signing { detail: format!("the key {}: {detail}", file.display()), hint: hint.to_owned() }
}

fn ed25519(pair: &Ed25519Keypair, data: &[u8]) -> Option<Vec<u8>> {
    let key = Ed25519KeyPair::from_seed_and_public_key(pair.private.as_ref(), pair.public.as_ref()).ok()?;
    Some(key.sign(data).as_ref().to_vec())
}

fn ecdsa(pair: &EcdsaKeypair, data: &[u8]) -> Option<Vec<u8>> {
    let algorithm = match pair.curve() {
        EcdsaCurve::NistP256 => &ECDSA_P256_SHA256_FIXED_SIGNING,
        EcdsaCurve::NistP384 => &ECDSA_P384_SHA384_FIXED_SIGNING,
        EcdsaCurve::NistP521 => return None,
    };
    let random = SystemRandom::new();
    let (private, public) = (pair.private_key_bytes(), pair.public_key_bytes());
    let key = EcdsaKeyPair::from_private_key_and_public_key(algorithm, private, public, &random).ok()?;
    let signature = key.sign(&random, data).ok()?;
    let (r, s) = signature.as_ref().split_at(signature.as_ref().len() / 2);
    let mut bytes = Vec::new();
    for number in [r, s] {
        let number = Mpint::from_positive_bytes(number).ok()?;
        put(&mut bytes, number.as_bytes())?;
    }
    Some(bytes)
}
