//! Docker config files and pull secrets, read into a keyring.

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use serde_json::{Map, Value};

use super::keyring::{Credential, Keyring};
use crate::model::failure::{Category, Problem};

/// Why a docker config cannot be read. Never holds a value of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DockerConfigError {
    /// No JSON.
    #[error("it is no JSON (line {line}, column {column})")]
    Json {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
    /// A byte order mark in front.
    #[error("it starts with a byte order mark")]
    Mark,
    /// Base64 where JSON should be.
    #[error("it is base64 text instead of JSON: it was encoded twice")]
    Base64Twice,
    /// JSON of another shape.
    #[error("`{place}` is no {expected}")]
    Shape {
        /// Where: `auths`, or a registry's key.
        place: String,
        /// What was expected there.
        expected: &'static str,
    },
    /// `auth` that is not base64 of `user:password`.
    #[error("the `auth` of `{key}` is not base64 of user:password")]
    Auth {
        /// The registry's key.
        key: String,
    },
    /// The current shape under the legacy type.
    #[error("it has an `auths` wrapper, which a legacy .dockercfg has not")]
    NotLegacy,
}

impl DockerConfigError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotLegacy => "use the type kubernetes.io/dockerconfigjson with the key .dockerconfigjson",
            Self::Base64Twice => "put the JSON itself under `stringData`, or its base64 once under `data`",
            _ => "make it with `larder secret NAME --tenant … --server … --username …`",
        }
    }
}

impl From<DockerConfigError> for Problem {
    fn from(error: DockerConfigError) -> Self {
        Problem::new(Category::Credentials, format!("the docker config cannot be read: {error}")).hint(error.hint())
    }
}

impl Keyring {
    /// Reads `.dockerconfigjson` of a Secret, or a docker config file.
    ///
    /// # Errors
    /// Whatever makes the kubelet refuse the whole Secret.
    pub fn parse_dockerconfigjson(bytes: &[u8]) -> Result<Self, DockerConfigError> {
        let config = object(bytes)?;
        let mut keyring = Self::default();
        let store = config.get("credsStore").and_then(Value::as_str).filter(|store| !store.is_empty());
        let helpers: Vec<&String> =
            config.get("credHelpers").and_then(Value::as_object).into_iter().flat_map(Map::keys).collect();
        if store.is_some() || !helpers.is_empty() {
            keyring.warn("credential helpers (credsStore, credHelpers) are not run, neither here nor by the kubelet; only `auths` are used");
        }
        store.iter().for_each(|_| keyring.add_helper("*"));
        helpers.iter().for_each(|host| keyring.add_helper(host));
        match config.get("auths") {
            None if config.keys().any(|key| key.contains('.')) => {
                keyring.warn(
                    "it has no `auths`; it looks like a legacy .dockercfg, whose type is kubernetes.io/dockercfg",
                );
            }
            None | Some(Value::Null) => {}
            Some(Value::Object(auths)) => add_all(&mut keyring, auths)?,
            Some(_) => return Err(shape("auths", "object")),
        }
        Ok(keyring)
    }

    /// Reads `.dockercfg` of a Secret of the legacy type, which has no `auths` wrapper.
    ///
    /// # Errors
    /// Whatever makes the kubelet refuse the whole Secret.
    pub fn parse_dockercfg(bytes: &[u8]) -> Result<Self, DockerConfigError> {
        let config = object(bytes)?;
        if config.contains_key("auths") {
            return Err(DockerConfigError::NotLegacy);
        }
        let mut keyring = Self::default();
        add_all(&mut keyring, &config)?;
        Ok(keyring)
    }
}

fn shape(place: &str, expected: &'static str) -> DockerConfigError {
    DockerConfigError::Shape { place: place.to_owned(), expected }
}

fn object(bytes: &[u8]) -> Result<Map<String, Value>, DockerConfigError> {
    if bytes.starts_with(b"\xef\xbb\xbf") {
        return Err(DockerConfigError::Mark);
    }
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(shape("the whole", "object")),
        // Not the parser's own words: they may quote a value.
        Err(error) => match decode(bytes) {
            Some(decoded) if decoded.starts_with(b"{") => Err(DockerConfigError::Base64Twice),
            _ => Err(DockerConfigError::Json { line: error.line(), column: error.column() }),
        },
    }
}

fn add_all(keyring: &mut Keyring, auths: &Map<String, Value>) -> Result<(), DockerConfigError> {
    for (key, entry) in auths {
        let entry = match entry {
            Value::Object(entry) => entry,
            Value::Null => continue,
            _ => return Err(shape(key, "object")),
        };
        let field = |name: &str| match entry.get(name) {
            None | Some(Value::Null) => Ok(""),
            Some(Value::String(text)) => Ok(text.as_str()),
            Some(_) => Err(DockerConfigError::Shape { place: format!("{key}.{name}"), expected: "text" }),
        };
        let (username, password) = match field("auth")? {
            "" => (field("username")?.to_owned(), field("password")?.to_owned()),
            auth => {
                let decoded = decode_auth(auth).ok_or_else(|| DockerConfigError::Auth { key: key.clone() })?;
                let written = (field("username")?, field("password")?);
                let differs = |written: &str, decoded: &str| !written.is_empty() && written != decoded;
                if differs(written.0, &decoded.0) || differs(written.1, &decoded.1) {
                    keyring.warn(format!(
                        "`{key}` has an `auth` that differs from its `username` and `password`; `auth` is used, as by the kubelet"
                    ));
                }
                decoded
            }
        };
        let identity_token = Some(field("identitytoken")?).filter(|token| !token.is_empty()).map(str::to_owned);
        if identity_token.is_some() {
            keyring.warn(format!(
                "`{key}` has an identity token, which the kubelet does not use: nodes may fail to pull with it"
            ));
        }
        if username.is_empty() && password.is_empty() && identity_token.is_none() {
            continue;
        }
        keyring.add(key, Credential { username, password, identity_token });
    }
    Ok(())
}

fn decode_auth(auth: &str) -> Option<(String, String)> {
    let decoded = String::from_utf8(decode(auth.as_bytes())?).ok()?;
    let (username, password) = decoded.split_once(':')?;
    // `docker login` of old versions ended the password with a NUL.
    Some((username.to_owned(), password.trim_end_matches('\0').to_owned()))
}

/// Base64 with or without padding; white space is skipped, as the kubelet does with line ends.
fn decode(text: &[u8]) -> Option<Vec<u8>> {
    const ENGINE: GeneralPurpose = GeneralPurpose::new(
        &alphabet::STANDARD,
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    let text: Vec<u8> = text.iter().copied().filter(|b| !b.is_ascii_whitespace()).collect();
    ENGINE.decode(text).ok().filter(|decoded| !decoded.is_empty())
}
