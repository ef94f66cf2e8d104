//! Requests about one repository at one place with one credential, answering challenges on the way.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use reqwest::{
    Method, StatusCode,
    header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue},
};

use super::{
    challenge::{self, Challenge},
    endpoint::Endpoint,
    error::{Kind, RegistryError},
    keyring::Credential,
    manifest::{ACCEPT as MANIFESTS, MAX_MANIFEST},
    token::{TokenKey, Tokens, basic, realm_of, scopes},
    transport::{Ask, Reply, Transport, shown},
};

/// The most places whose way of asking is remembered.
const MAX_REMEMBERED: usize = 512;

/// What was learned from challenges: how to ask at once the next time.
#[derive(Default)]
pub(super) struct Authentication {
    tokens: Tokens,
    /// What worked. User and password are good for all paths of an origin (path "").
    ways: Mutex<HashMap<Place, Way>>,
}

/// Origin, path and credential.
type Place = (String, String, Option<Arc<Credential>>);

#[derive(Clone)]
enum Way {
    Basic,
    Bearer(TokenKey),
}

impl Authentication {
    /// Forgets what has expired.
    pub(super) fn tidy(&self) {
        self.tokens.tidy();
    }
}

/// Requests about one repository at one place with one credential, or none.
pub(super) struct Session<'a> {
    pub(super) transport: &'a Transport,
    pub(super) authentication: &'a Authentication,
    pub(super) endpoint: &'a Endpoint,
    pub(super) credential: Option<&'a Arc<Credential>>,
}

impl Session<'_> {
    /// HEAD or GET of a manifest by tag or digest.
    pub(super) async fn manifest(&self, method: Method, name: &str) -> Result<Reply, RegistryError> {
        self.request(method, &format!("manifests/{name}"), MANIFESTS).await
    }

    /// GET of a small blob, a configuration.
    pub(super) async fn blob(&self, name: &str) -> Result<Reply, RegistryError> {
        self.request(Method::GET, &format!("blobs/{name}"), "*/*").await
    }

    /// An answer that is neither "too many requests" nor unauthorised.
    async fn request(&self, method: Method, what: &str, accept: &'static str) -> Result<Reply, RegistryError> {
        let remembered = self.remembered();
        let reply = self.send(&method, what, accept, remembered.as_ref()).await?;
        if reply.status != StatusCode::UNAUTHORIZED {
            return Ok(reply);
        }
        if reply.url.origin() != self.endpoint.url(what)?.origin() {
            let message =
                format!("it redirects to {}, which asks for credentials; they are not sent there", shown(&reply.url));
            return Err(RegistryError::new(Kind::Unauthenticated, &self.endpoint.host, message)
                .hint("if the registry has moved, write its new host into the image reference"));
        }
        let authorization = self.answer(&reply, remembered.as_ref()).await?;
        let reply = self.send(&method, what, accept, Some(&authorization)).await?;
        if reply.status == StatusCode::UNAUTHORIZED { Err(self.unauthorized(&reply.words())) } else { Ok(reply) }
    }

    async fn send(
        &self,
        method: &Method,
        what: &str,
        accept: &'static str,
        authorization: Option<&HeaderValue>,
    ) -> Result<Reply, RegistryError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        if let Some(authorization) = authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        let options_of = self.endpoint.options_of.as_str();
        let ask = Ask {
            method: method.clone(),
            url: self.endpoint.url(what)?,
            headers,
            form: None,
            options_of,
            limit: MAX_MANIFEST,
            named_by: None,
        };
        let mut reply = self.transport.send(ask).await?;
        if !reply.status.is_success() {
            reply.body = self.without_secrets(&reply.body, authorization);
        }
        Ok(reply)
    }

    /// What a server says, without what it was sent.
    fn without_secrets(&self, body: &[u8], authorization: Option<&HeaderValue>) -> Vec<u8> {
        let sent = authorization.and_then(|header| header.to_str().ok()?.split_once(' ')).map(|(_, token)| token);
        let secrets = self.credential.into_iter().flat_map(|credential| credential.secrets()).chain(sent);
        let text = String::from_utf8_lossy(body).into_owned();
        secrets.fold(text, |text, secret| text.replace(secret, "…")).into_bytes()
    }

    /// The error of an answer that means: not with these credentials.
    pub(super) fn unauthorized(&self, words: &str) -> RegistryError {
        let host = &self.endpoint.host;
        match self.credential {
            Some(_) => {
                RegistryError::refused(host, format!("authentication failed: invalid or expired credentials ({words})"))
            }
            None => RegistryError::unauthenticated(host, format!("it asks for credentials, and none match ({words})")),
        }
    }

    async fn answer(&self, reply: &Reply, refused: Option<&HeaderValue>) -> Result<HeaderValue, RegistryError> {
        let challenge = challenge::choose(&reply.headers);
        let challenge = challenge
            .map_err(|error| RegistryError::new(Kind::Unauthenticated, &self.endpoint.host, error.to_string()))?;
        match challenge {
            Challenge::Bearer { realm, service, scope } => {
                let key = TokenKey {
                    origin: self.endpoint.origin(),
                    realm: realm_of(&reply.url, &realm)
                        .map_err(|why| RegistryError::new(Kind::Invalid, &self.endpoint.host, why))?,
                    named_by: reply.reach,
                    service,
                    scopes: scopes(&scope, &self.endpoint.path),
                    credential: self.credential.cloned(),
                };
                self.remember(&self.endpoint.path, Way::Bearer(key.clone()));
                self.authentication.tokens.get(self.transport, self.endpoint, key, refused).await
            }
            Challenge::Basic => {
                let header = self.credential.and_then(|credential| basic(credential));
                let header =
                    header.filter(|header| Some(header) != refused).ok_or_else(|| self.unauthorized(&reply.words()))?;
                self.remember("", Way::Basic);
                Ok(header)
            }
        }
    }

    fn remembered(&self) -> Option<HeaderValue> {
        let ways = self.authentication.ways.lock().unwrap_or_else(PoisonError::into_inner);
        let way = |path: &str| ways.get(&(self.endpoint.origin(), path.to_owned(), self.credential.cloned()));
        match way(&self.endpoint.path).or_else(|| way(""))? {
            Way::Basic => basic(self.credential?),
            Way::Bearer(key) => self.authentication.tokens.kept(key),
        }
    }

    fn remember(&self, path: &str, way: Way) {
        let mut ways = self.authentication.ways.lock().unwrap_or_else(PoisonError::into_inner);
        if ways.len() >= MAX_REMEMBERED {
            ways.clear();
        }
        ways.insert((self.endpoint.origin(), path.to_owned(), self.credential.cloned()), way);
    }
}
