//! Who sends webhooks, and how each shows that it knows the secret.

use base64::Engine as _;
use http::HeaderMap;

/// A kind of sender. Each has a path of its own below `/hooks/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Sender {
    GitHub,
    GitLab,
    Gitea,
    Registry,
    Harbor,
    Quay,
    DockerHub,
    Ghcr,
}

/// What a request shows as a proof that its sender knows the secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// The HMAC-SHA256 of `before` and the body.
    Signature {
        /// The bytes that stand before the body.
        before: Vec<u8>,
        /// Signatures, one of which has to be right.
        any_of: Vec<Vec<u8>>,
    },
    /// The secret itself.
    Token(String),
}

impl Sender {
    pub(super) const ALL: [Self; 8] = [
        Self::GitHub,
        Self::GitLab,
        Self::Gitea,
        Self::Registry,
        Self::Harbor,
        Self::Quay,
        Self::DockerHub,
        Self::Ghcr,
    ];

    /// Its word in paths and metrics.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::GitHub => "github",
            Self::GitLab => "gitlab",
            Self::Gitea => "gitea",
            Self::Registry => "registry",
            Self::Harbor => "harbor",
            Self::Quay => "quay",
            Self::DockerHub => "dockerhub",
            Self::Ghcr => "ghcr",
        }
    }

    /// The sender of a path, and what stands behind its word, decoded: `/hooks/quay/TOKEN`.
    pub(super) fn of_path(path: &str) -> Option<(Self, Option<String>)> {
        let rest = path.strip_prefix("/hooks/")?;
        let (word, token) = rest.split_once('/').map_or((rest, None), |(word, token)| (word, Some(token)));
        let sender = Self::ALL.into_iter().find(|sender| sender.as_str() == word)?;
        // Only those two cannot send a header of their own. Elsewhere a secret in a path would be one in a log.
        match token.filter(|token| !token.is_empty()) {
            Some(_) if !sender.has_token_in_path() => None,
            token => {
                let token = token.map(|token| percent_encoding::percent_decode_str(token).decode_utf8()).transpose();
                Some((sender, token.ok()?.map(std::borrow::Cow::into_owned)))
            }
        }
    }

    fn has_token_in_path(self) -> bool {
        matches!(self, Self::Quay | Self::DockerHub)
    }

    /// Whether its news are of a branch: then a body too large to be read is not a loss.
    pub(super) fn is_forge(self) -> bool {
        matches!(self, Self::GitHub | Self::GitLab | Self::Gitea)
    }

    /// What the request shows. None when it shows nothing that counts: a SHA-1 signature does not.
    ///
    /// Sources: <https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries>,
    /// <https://docs.gitea.com/usage/webhooks>, <https://docs.gitlab.com/user/project/integrations/webhooks/>,
    /// <https://distribution.github.io/distribution/about/notifications/>.
    pub(super) fn proof(self, headers: &HeaderMap, in_path: Option<&str>) -> Option<Proof> {
        let signed = |signature: Vec<u8>| Proof::Signature { before: Vec::new(), any_of: vec![signature] };
        let hub = || hex(header(headers, "x-hub-signature-256")?.strip_prefix("sha256=")?).map(signed);
        let gitea = |name| header(headers, name).and_then(hex).map(signed);
        match self {
            Self::GitHub | Self::Ghcr => hub(),
            Self::Gitea => gitea("x-gitea-signature").or_else(|| gitea("x-forgejo-signature")).or_else(hub),
            Self::GitLab => gitlab_signature(headers)
                .or_else(|| header(headers, "x-gitlab-token").map(|token| Proof::Token(token.to_owned()))),
            Self::Registry | Self::Harbor => {
                let value = header(headers, "authorization")?;
                // Harbor sends what was entered as it is.
                let (scheme, rest) = value.split_once(' ').unwrap_or(("", value));
                let token = if scheme.eq_ignore_ascii_case("bearer") { rest } else { value };
                Some(Proof::Token(token.trim().to_owned()))
            }
            Self::Quay | Self::DockerHub => in_path.map(|token| Proof::Token(token.to_owned())),
        }
    }

    /// The header that says what happened.
    pub(super) fn event(self, headers: &HeaderMap) -> Option<&str> {
        match self {
            Self::GitHub | Self::Ghcr => header(headers, "x-github-event"),
            Self::Gitea => header(headers, "x-gitea-event").or_else(|| header(headers, "x-forgejo-event")),
            Self::GitLab => header(headers, "x-gitlab-event"),
            _ => None,
        }
    }

    /// The identity of the delivery, which stays when it is sent again.
    pub(super) fn delivery(self, headers: &HeaderMap) -> Option<&str> {
        let names: &[&str] = match self {
            Self::GitHub | Self::Ghcr => &["x-github-delivery"],
            Self::Gitea => &["x-gitea-delivery", "x-forgejo-delivery"],
            Self::GitLab => &["webhook-id", "idempotency-key"],
            _ => &[],
        };
        names.iter().find_map(|name| header(headers, name)).filter(|id| !id.is_empty() && id.len() <= 200)
    }
}

/// GitLab's signature, which is that of Standard Webhooks: over `id.timestamp.body`, in Base64, perhaps several.
/// Source: <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>.
fn gitlab_signature(headers: &HeaderMap) -> Option<Proof> {
    let (id, time) = (header(headers, "webhook-id")?, header(headers, "webhook-timestamp")?);
    let signatures = header(headers, "webhook-signature")?.split(' ');
    let decode = |text: &str| base64::engine::general_purpose::STANDARD.decode(text.strip_prefix("v1,")?).ok();
    let any_of: Vec<Vec<u8>> = signatures.take(8).filter_map(decode).collect();
    Some(Proof::Signature { before: format!("{id}.{time}.").into_bytes(), any_of })
}

pub(super) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The bytes of a SHA-256 in hexadecimal digits.
fn hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let is_sha256 = digits.len() == 64 && digits.iter().all(u8::is_ascii_hexdigit);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    is_sha256.then(|| digits.chunks(2).map(byte).collect()).flatten()
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue};

    use super::{Proof, Sender};

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&str, &str)| {
            (HeaderName::try_from(*name).unwrap(), HeaderValue::from_str(value).unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn paths_name_senders() {
        for (path, expected) in [
            ("/hooks/github", Some((Sender::GitHub, None))),
            ("/hooks/quay", Some((Sender::Quay, None))),
            ("/hooks/quay/", Some((Sender::Quay, None))),
            ("/hooks/quay/abc", Some((Sender::Quay, Some("abc")))),
            ("/hooks/dockerhub/a/b", Some((Sender::DockerHub, Some("a/b")))),
            ("/hooks/dockerhub/a%2Fb+c%3d", Some((Sender::DockerHub, Some("a/b+c=")))),
            ("/hooks/dockerhub/%ff", None),
            ("/hooks/github/abc", None),
            ("/hooks/GitHub", None),
            ("/hooks/", None),
            ("/hooks", None),
            ("/", None),
            ("/metrics", None),
        ] {
            let found = Sender::of_path(path);
            assert_eq!(found.as_ref().map(|(sender, token)| (*sender, token.as_deref())), expected, "{path}");
        }
    }

    #[test]
    fn each_sender_shows_its_own_proof() {
        let hex = "ab".repeat(32);
        let bytes = vec![0xab; 32];
        let signed = |before: &str, any_of: &[&Vec<u8>]| {
            let any_of = any_of.iter().map(|bytes| (*bytes).clone()).collect();
            Some(Proof::Signature { before: before.as_bytes().to_vec(), any_of })
        };
        let token = |text: &str| Some(Proof::Token(text.to_owned()));
        let hub = format!("sha256={hex}");
        let base64 = "q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=";
        let two = format!("v1,AAAA v1a,xx v1,{base64}");
        let empty: Vec<u8> = vec![0; 3];
        for (sender, sent, in_path, expected) in [
            (Sender::GitHub, vec![("x-hub-signature-256", hub.as_str())], None, signed("", &[&bytes])),
            (Sender::GitHub, vec![("x-hub-signature", "sha1=00")], None, None),
            (Sender::GitHub, vec![("x-hub-signature-256", hex.as_str())], None, None),
            (Sender::GitHub, vec![("x-hub-signature-256", "sha256=abcd")], None, None),
            (Sender::GitHub, vec![("x-hub-signature-256", "sha256=")], None, None),
            (Sender::GitHub, vec![("x-gitlab-token", "secret")], None, None),
            (Sender::GitHub, vec![], Some("secret"), None),
            (Sender::Ghcr, vec![("x-hub-signature-256", hub.as_str())], None, signed("", &[&bytes])),
            (Sender::Gitea, vec![("x-gitea-signature", hex.as_str())], None, signed("", &[&bytes])),
            (Sender::Gitea, vec![("x-forgejo-signature", hex.as_str())], None, signed("", &[&bytes])),
            (Sender::Gitea, vec![("x-hub-signature-256", hub.as_str())], None, signed("", &[&bytes])),
            // Gitea without a secret sends the header all the same.
            (Sender::Gitea, vec![("x-gitea-signature", "")], None, None),
            (Sender::GitLab, vec![("x-gitlab-token", "secret")], None, token("secret")),
            (
                Sender::GitLab,
                vec![("webhook-id", "7"), ("webhook-timestamp", "8"), ("webhook-signature", two.as_str())],
                None,
                signed("7.8.", &[&empty, &bytes]),
            ),
            (Sender::GitLab, vec![("webhook-signature", two.as_str())], None, None),
            (Sender::Registry, vec![("authorization", "Bearer secret")], None, token("secret")),
            (Sender::Registry, vec![], None, None),
            (Sender::Harbor, vec![("authorization", "secret")], None, token("secret")),
            (Sender::Harbor, vec![("authorization", "bearer secret")], None, token("secret")),
            (Sender::Quay, vec![], Some("secret"), token("secret")),
            (Sender::Quay, vec![("authorization", "secret")], None, None),
            (Sender::DockerHub, vec![], None, None),
        ] {
            assert_eq!(sender.proof(&headers(&sent), in_path), expected, "{sender:?} {sent:?}");
        }
    }
}
