//! Credentials for registries, found by the kubelet's rule.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use crate::model::reference::{DOCKER_HUB, ImageReference};

/// The key under which `docker login` keeps Docker Hub's credentials, without its path.
const HUB_KEY: &str = "index.docker.io";

/// A user's name and password, or an identity token, for one registry. Shown by `Debug` without any value.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Credential {
    pub(super) username: String,
    pub(super) password: String,
    pub(super) identity_token: Option<String>,
}

impl Credential {
    /// A user's name and password.
    pub fn basic(username: impl Into<String>, password: impl Into<String>) -> Self {
        Self { username: username.into(), password: password.into(), identity_token: None }
    }

    /// The texts that must not be shown.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &str> {
        [self.password.as_str()].into_iter().chain(self.identity_token.as_deref()).filter(|text| !text.is_empty())
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(hidden)")
    }
}

/// Credentials by registry, as docker config files and pull secrets hold them.
///
/// Matching is the kubelet's, so that what works here works on the nodes too: `pkg/credentialprovider/keyring.go` of
/// Kubernetes. Keys are compared label by label with `*` as a glob, ports must be equal, and a key's path is a textual
/// prefix. `Debug` shows keys, never values.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Keyring {
    /// `host[:port][/path]` → credentials, in the order in which they were added.
    entries: BTreeMap<String, Vec<Arc<Credential>>>,
    /// Hosts for which a credential helper is configured; `*` for all.
    helpers: BTreeSet<String>,
    warnings: Vec<String>,
    /// The pull secrets that it was read from → whether each exists.
    secrets: BTreeMap<String, bool>,
}

impl Keyring {
    /// Adds a credential under a key as docker config files have it: `registry.example.com`,
    /// `https://index.docker.io/v1/`, `*.example.com/team`.
    pub fn add(&mut self, key: &str, credential: Credential) {
        match normalize(key) {
            Some(key) => self.entries.entry(key).or_default().push(Arc::new(credential)),
            None => self.warn(format!("the key {key:?} is not a registry's address and is not used")),
        }
    }

    /// Adds all of another keyring; its credentials come after those of the same key.
    pub fn merge(&mut self, other: Self) {
        for (key, credentials) in other.entries {
            self.entries.entry(key).or_default().extend(credentials);
        }
        self.helpers.extend(other.helpers);
        self.secrets.extend(other.secrets);
        for warning in other.warnings {
            self.warn(warning);
        }
    }

    /// Notes something for the user that does not make the keyring unusable. Never holds a secret.
    pub fn warn(&mut self, warning: impl Into<String>) {
        let warning = warning.into();
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Notes the pull secret that it was read from, and whether that exists.
    pub fn note_secret(&mut self, what: &str, exists: bool) {
        self.secrets.insert(what.to_owned(), exists);
    }

    /// Why the kubelet has no credential for a reference in the pull secrets that it is given; none when it has one, or
    /// when this keyring comes from no pull secret.
    pub fn unusable(&self, reference: &ImageReference) -> Option<String> {
        if self.secrets.is_empty() || self.matches(reference) {
            return None;
        }
        let named: Vec<&str> = self.secrets.keys().map(String::as_str).collect();
        let absent: Vec<&str> =
            self.secrets.iter().filter(|(_, exists)| !**exists).map(|(name, _)| name.as_str()).collect();
        if !absent.is_empty() {
            return Some(format!("the pull secret {} does not exist", absent.join(", ")));
        }
        let why = self.near_miss(reference).map(|why| format!(": {why}")).unwrap_or_default();
        Some(format!("the pull secret {} has no key for `{}`{why}", named.join(", "), reference.repository()))
    }

    /// Which pull secrets and which keys of theirs the credentials for a reference are from; none when it has none, or
    /// when this keyring comes from no pull secret.
    pub(super) fn used(&self, reference: &ImageReference) -> Option<String> {
        let matched = |key: &&String| key_matches(key, reference.host(), reference.path());
        let mut keys: Vec<&str> = self.entries.keys().filter(matched).map(String::as_str).collect();
        if keys.is_empty() && reference.host() == DOCKER_HUB && self.entries.contains_key(HUB_KEY) {
            keys.push(HUB_KEY);
        }
        if keys.is_empty() || self.secrets.is_empty() {
            return None;
        }
        let named: Vec<&str> = self.secrets.keys().map(String::as_str).collect();
        Some(format!("the login is that of the key `{}` in {}", keys.join("`, `"), named.join(", ")))
    }

    pub(super) fn add_helper(&mut self, host: &str) {
        self.helpers.insert(host.to_owned());
    }

    /// What was ignored or looks wrong, for the user.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Whether there is no credential at all.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The credentials to try for a reference, in this order.
    pub fn matching(&self, reference: &ImageReference) -> Vec<&Credential> {
        self.lookup(reference.host(), reference.path()).iter().map(|credential| &***credential).collect()
    }

    /// Whether there is a credential for a reference.
    pub fn matches(&self, reference: &ImageReference) -> bool {
        !self.lookup(reference.host(), reference.path()).is_empty()
    }

    /// The credentials for a repository: all keys that match, the most specific (by reverse order of their texts)
    /// first; Docker Hub's only if no key matched.
    pub(super) fn lookup(&self, host: &str, path: &str) -> Vec<&Arc<Credential>> {
        let matched: Vec<_> = self
            .entries
            .iter()
            .rev()
            .filter(|(key, _)| key_matches(key, host, path))
            .flat_map(|(_, found)| found)
            .collect();
        if matched.is_empty() && host == DOCKER_HUB {
            return self.entries.get(HUB_KEY).into_iter().flatten().collect();
        }
        matched
    }

    /// Why nothing matches although something looks as if it should: a sentence for a hint.
    pub fn near_miss(&self, reference: &ImageReference) -> Option<String> {
        let host = reference.host();
        let (name, port) = split_port(host);
        let near = |key: &&String| {
            let (key_host, key_path) = key.split_once('/').unwrap_or((key, ""));
            let (key_name, key_port) = split_port(key_host);
            let hub = host == DOCKER_HUB && key_name.ends_with(".docker.io");
            let same_host = glob_labels(key_name, name) && (key_port != port || !key_path.is_empty());
            hub || same_host
        };
        if let Some(key) = self.entries.keys().find(near) {
            return Some(format!(
                "the key `{key}` does not match `{}` by the kubelet's rule: host and port must be equal (no port is not 443), the path is a prefix",
                reference.repository()
            ));
        }
        let helped =
            self.helpers.iter().any(|helper| helper == "*" || normalize(helper).is_some_and(|key| key == host));
        helped.then(|| {
            "a credential helper is configured for it; helpers are not run, neither here nor by the kubelet".to_owned()
        })
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyring").field("keys", &self.entries.keys()).finish_non_exhaustive()
    }
}

/// A key without scheme, and without `/v1/` or `/v2/` at its path's start; None where the kubelet ignores it.
fn normalize(key: &str) -> Option<String> {
    let rest = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://")).unwrap_or(key);
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash));
    let host = host.rsplit('@').next().unwrap_or_default();
    let allowed = |c: char| c.is_ascii_alphanumeric() || "*.-_:[]~".contains(c);
    if host.is_empty() || !host.chars().all(allowed) || split_port(host).1.is_some_and(|port| !is_number(port)) {
        return None;
    }
    let path = if path.starts_with("/v1/") || path.starts_with("/v2/") { &path[3..] } else { path };
    Some(if path == "/" { host.to_owned() } else { format!("{host}{path}") })
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

fn split_port(host: &str) -> (&str, Option<&str>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !host.ends_with(']') => (name, Some(port)),
        _ => (host, None),
    }
}

fn key_matches(key: &str, host: &str, path: &str) -> bool {
    let (key_host, key_path) = key.split_once('/').unwrap_or((key, ""));
    let ((key_name, key_port), (name, port)) = (split_port(key_host), split_port(host));
    key_port == port && path.starts_with(key_path) && glob_labels(key_name, name)
}

fn glob_labels(glob: &str, name: &str) -> bool {
    glob.split('.').count() == name.split('.').count()
        && glob.split('.').zip(name.split('.')).all(|(g, n)| glob_label(g, n))
}

/// `*` stands for any characters of one label.
fn glob_label(glob: &str, label: &str) -> bool {
    let Some((before, mut rest)) = glob.split_once('*') else { return glob == label };
    let Some(mut label) = label.strip_prefix(before) else { return false };
    while let Some((part, after)) = rest.split_once('*') {
        let Some(found) = label.find(part) else { return false };
        label = &label[found + part.len()..];
        rest = after;
    }
    label.ends_with(rest)
}
