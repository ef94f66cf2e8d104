//! The manifest of a pull secret.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Map, Value, json};

use crate::model::reference::DOCKER_HUB;

/// What Docker Hub is called in docker configs, for historical reasons. Source:
/// <https://kubernetes.io/docs/tasks/configure-pod-container/pull-image-private-registry/>.
const DOCKER_HUB_KEY: &str = "https://index.docker.io/v1/";

/// Credentials for a registry. Has no `Debug`, so that nothing shows them.
pub struct Login {
    /// The registry's host.
    pub server: String,
    /// The user.
    pub username: String,
    /// The password.
    pub password: String,
    /// An e-mail address.
    pub email: Option<String>,
}

/// A Secret of the type `kubernetes.io/dockerconfigjson`, as `kubectl create secret docker-registry` makes it.
pub fn manifest(namespace: &str, name: &str, login: &Login) -> Value {
    let key = if login.server == DOCKER_HUB { DOCKER_HUB_KEY } else { &login.server };
    let mut entry = Map::new();
    entry.insert("username".to_owned(), json!(login.username));
    entry.insert("password".to_owned(), json!(login.password));
    if let Some(email) = &login.email {
        entry.insert("email".to_owned(), json!(email));
    }
    entry.insert("auth".to_owned(), json!(BASE64_STANDARD.encode(format!("{}:{}", login.username, login.password))));
    let config = json!({"auths": {key: entry}}).to_string();
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": BASE64_STANDARD.encode(config)},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::registry::Keyring;

    #[test]
    fn larder_reads_what_it_makes() {
        for (server, image) in
            [("docker.io", "debian"), ("quay.io", "quay.io/a/b"), ("r.example.com:5000", "r.example.com:5000/a")]
        {
            let login = Login { server: server.into(), username: "u".into(), password: "p\"ä:".into(), email: None };
            let secret = manifest("ns", "n", &login);
            let data = secret["data"][".dockerconfigjson"].as_str().unwrap();
            let keyring = Keyring::parse_dockerconfigjson(&BASE64_STANDARD.decode(data).unwrap()).unwrap();
            assert!(keyring.matches(&image.parse().unwrap()), "{server}");
            assert!(!keyring.matches(&"other.example.com/a".parse().unwrap()), "{server}");
        }
    }
}
