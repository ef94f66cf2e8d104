//! Credentials: named by Secret, never written.

use crate::model::reference::ImageReference;

use super::{cursor::Cursor, names};

/// The command that makes a pull secret. It takes the credentials from a file, so that none is in the shell's history.
///
/// Source: <https://kubernetes.io/docs/tasks/configure-pod-container/pull-image-private-registry/>.
pub fn command(secret: &str, namespace: &str) -> String {
    format!(
        "kubectl create secret docker-registry {secret} --namespace {namespace} --from-file=.dockerconfigjson=config.json"
    )
}

/// What is said about a password that was found.
pub fn password(secret: &str, host: &str, namespace: &str) -> String {
    format!(
        "credentials are never written: `docker --config . login {host}`, then `{}`; change the password, since this file has it",
        command(secret, namespace)
    )
}

/// What Submarine writes as `auth` or `dockerAuthSpec`: the name of a Secret, or credentials and the name that a Secret of
/// them gets, with what is said about it.
pub fn submarine(
    auth: Option<&Cursor<'_>>,
    environment: &str,
    reference: &ImageReference,
    namespace: &str,
) -> (Option<String>, Vec<String>) {
    let Some(auth) = auth else { return (None, Vec::new()) };
    let has = |key: &str| auth.text_of(key).is_some();
    match auth.text_of("secret") {
        Some(secret) => {
            let notes = if has("password") { vec![password(&secret, reference.host(), namespace)] } else { Vec::new() };
            (Some(secret), notes)
        }
        None if has("password") || has("username") => {
            let host = names::slug(reference.host()).unwrap_or_else(|| "registry".to_owned());
            let secret = format!("{environment}-{host}");
            let note = password(&secret, reference.host(), namespace);
            (Some(secret), vec![note])
        }
        None => (None, Vec::new()),
    }
}

/// Names of Secrets: a list of texts or of mappings with `name`.
pub fn secrets(list: Option<&Cursor<'_>>) -> Vec<String> {
    let items = list.map(Cursor::values).unwrap_or_default();
    items
        .iter()
        .filter_map(|item| item.text_of("name").or_else(|| item.text()))
        .filter(|name| !name.is_empty())
        .collect()
}

/// The one Secret that an image can name, and what is said about the others.
pub fn first(secrets: &[String]) -> (Option<String>, Vec<String>) {
    let notes = match secrets {
        [_, others @ ..] if !others.is_empty() => {
            vec![format!("an image names one pull secret; left out: {}", others.join(", "))]
        }
        _ => Vec::new(),
    };
    (secrets.first().cloned(), notes)
}
