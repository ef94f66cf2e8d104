//! Pull secrets, read for their credentials and never shown.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use kube::{
    api::{GetParams, PostParams},
    core::Request,
};
use serde_json::Value;

use super::{
    KubeCluster,
    problem::{Attempt, problem},
};
use crate::{
    io::registry::Keyring,
    model::failure::{Category, Failure, Problem},
};

impl KubeCluster {
    /// The credentials of a pull secret. One that does not exist is an empty keyring with a warning: the image may be
    /// public, and the kubelet pulls it then as well.
    ///
    /// # Errors
    /// When it cannot be read, has another type, lacks its key, or holds no docker config. The error shows no value.
    pub async fn pull_secret(&self, namespace: &str, name: &str) -> Result<Keyring, Failure> {
        let what = format!("Secret/{namespace}/{name}");
        let attempt = Attempt { what: &what, verb: "get", resource: "secrets", namespace };
        let request = Request::new(format!("/api/v1/namespaces/{namespace}/secrets")).get(name, &GetParams::default());
        match self.send::<Value>(request).await {
            Ok(secret) => {
                let mut keyring = keyring(&what, &secret)?;
                keyring.note_secret(&what, true);
                Ok(keyring)
            }
            Err(kube::Error::Api(status)) if status.is_not_found() => {
                let mut keyring = Keyring::default();
                keyring.note_secret(&what, false);
                keyring.warn(format!(
                    "the pull secret {what} does not exist; make it with `larder secret {name} --namespace {namespace} --server … \
                     --username … --create`"
                ));
                Ok(keyring)
            }
            Err(error) => Err(problem(attempt, &error).into()),
        }
    }

    /// Makes a Secret. One that is there is left as it is. What is sent is never shown, and neither is the answer.
    ///
    /// # Errors
    /// When there is one of that name, or when the API server refuses it.
    pub async fn create_secret(&self, namespace: &str, name: &str, secret: &Value) -> Result<(), Problem> {
        let what = format!("Secret/{namespace}/{name}");
        let attempt = Attempt { what: &what, verb: "create", resource: "secrets", namespace };
        let body = secret.to_string().into_bytes();
        let params = PostParams { field_manager: Some(self.identity.manager.clone()), ..PostParams::default() };
        let request = Request::new(format!("/api/v1/namespaces/{namespace}/secrets")).create(&params, body);
        match self.send::<serde::de::IgnoredAny>(request).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                Err(Problem::new(Category::Conflict, format!("{what} exists already, and is left as it is")).hint(
                    format!("choose another name, or run `kubectl --namespace {namespace} delete secret {name}` first"),
                ))
            }
            Err(error) => Err(problem(attempt, &error)),
        }
    }
}

/// The keyring of a Secret as the API server gives it.
fn keyring(what: &str, secret: &Value) -> Result<Keyring, Problem> {
    let says = |message: String| Problem::new(Category::Credentials, format!("{what} {message}"));
    let kind = secret["type"].as_str().unwrap_or("Opaque");
    let (key, parse): (&str, fn(&[u8]) -> _) = match kind {
        "kubernetes.io/dockerconfigjson" => (".dockerconfigjson", Keyring::parse_dockerconfigjson),
        "kubernetes.io/dockercfg" => (".dockercfg", Keyring::parse_dockercfg),
        other => {
            return Err(says(format!("has the type `{other}`, which is not a pull secret's")).hint(
                "the kubelet uses only kubernetes.io/dockerconfigjson (and the legacy kubernetes.io/dockercfg); \
                 make it with `larder secret`",
            ));
        }
    };
    let Some(data) = secret["data"][key].as_str() else {
        return Err(says(format!("lacks the key `{key}`")).hint("make it with `larder secret`"));
    };
    let bytes = BASE64_STANDARD.decode(data).map_err(|_| says(format!("has no base64 under `{key}`")))?;
    parse(&bytes).map_err(|error| {
        let problem = Problem::from(error);
        Problem { message: format!("{what}: {}", problem.message), ..problem }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CANARY: &str = "c4n4ry-v4lue";

    #[test]
    fn a_pull_secret_is_read_or_says_what_it_lacks() {
        let auths = json!({"auths": {"quay.io": {"username": "u", "password": CANARY}}}).to_string();
        let legacy = json!({"quay.io": {"username": "u", "password": CANARY}}).to_string();
        let encode = |text: &str| BASE64_STANDARD.encode(text);
        let good = [
            json!({"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": encode(&auths)}}),
            json!({"type": "kubernetes.io/dockercfg", "data": {".dockercfg": encode(&legacy)}}),
        ];
        for secret in good {
            let keyring = keyring("Secret/a/b", &secret).unwrap();
            assert!(keyring.matches(&"quay.io/x/y:1".parse().unwrap()));
            assert!(!format!("{keyring:?}").contains(CANARY));
        }
        let bad = [
            (json!({"type": "Opaque", "data": {"password": encode(CANARY)}}), "has the type `Opaque`"),
            (json!({"data": {"password": encode(CANARY)}}), "has the type `Opaque`"),
            (
                json!({"type": "kubernetes.io/dockerconfigjson", "data": {"config.json": encode(&auths)}}),
                "lacks the key `.dockerconfigjson`",
            ),
            (json!({"type": "kubernetes.io/dockerconfigjson"}), "lacks the key `.dockerconfigjson`"),
            (json!({"type": "kubernetes.io/dockercfg", "data": {".dockercfg": encode(&auths)}}), "auths"),
            (
                json!({"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": encode(CANARY)}}),
                "docker config cannot be read",
            ),
            (json!({"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": CANARY}}), "no base64"),
        ];
        for (secret, expected) in bad {
            let text = keyring("Secret/a/b", &secret).unwrap_err().to_string();
            assert!(text.contains(expected) && text.contains("Secret/a/b"), "{text}");
            assert!(!text.contains(CANARY) && !text.contains(&encode(CANARY)), "{text}");
        }
    }
}
