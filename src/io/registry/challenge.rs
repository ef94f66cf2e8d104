//! `WWW-Authenticate`: how a registry wants to be asked.

use http_auth::ChallengeParser;
use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

/// What a registry asks for, the best of what it offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// A token from `realm`.
    Bearer {
        realm: String,
        service: Option<String>,
        /// As it came; empty when the registry named none.
        scope: String,
    },
    /// User and password.
    Basic,
}

/// Why there is no way to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ChallengeError {
    #[error("it asks for credentials without saying how (no usable WWW-Authenticate header)")]
    Missing,
    #[error("it asks for a bearer token without saying where to get one (no realm)")]
    NoRealm,
    #[error("it asks for a kind of credentials that is not supported")]
    Unsupported,
}

/// The challenge to answer: a bearer token where one is offered, else user and password. All headers and all
/// challenges in them are read.
pub(super) fn choose(headers: &HeaderMap) -> Result<Challenge, ChallengeError> {
    let mut best = Err(ChallengeError::Missing);
    for value in headers.get_all(WWW_AUTHENTICATE) {
        let Ok(text) = value.to_str() else { continue };
        for found in parse(text) {
            best = match (best, found) {
                (Ok(bearer @ Challenge::Bearer { .. }), _) | (_, Ok(bearer @ Challenge::Bearer { .. })) => Ok(bearer),
                (Ok(basic), _) | (_, Ok(basic)) => Ok(basic),
                (Err(ChallengeError::NoRealm), _) => Err(ChallengeError::NoRealm),
                (Err(_), Err(error)) => Err(error),
            };
        }
    }
    best
}

fn parse(text: &str) -> Vec<Result<Challenge, ChallengeError>> {
    let text = repair(text);
    let mut challenges = Vec::new();
    // The parser stops at the first thing it does not understand; what came before it counts.
    for challenge in ChallengeParser::new(&text).map_while(Result::ok) {
        let param = |name: &str| {
            challenge
                .params
                .iter()
                .find(|(key, _)| key.eq_ignore_ascii_case(name))
                .map(|(_, value)| value.to_unescaped())
        };
        challenges.push(if challenge.scheme.eq_ignore_ascii_case("bearer") {
            match param("realm").filter(|realm| !realm.is_empty()) {
                Some(realm) => Ok(Challenge::Bearer {
                    realm,
                    service: param("service").filter(|service| !service.is_empty()),
                    scope: param("scope").unwrap_or_default(),
                }),
                None => Err(ChallengeError::NoRealm),
            }
        } else if challenge.scheme.eq_ignore_ascii_case("basic") {
            Ok(Challenge::Basic)
        } else {
            Err(ChallengeError::Unsupported)
        });
    }
    challenges
}

/// Makes what registries send fit for a parser that follows RFC 9110 closely: values that need quotes get them
/// (`realm=https://…`), white space runs become one space.
fn repair(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut rest = text.trim();
    while let Some(c) = rest.chars().next() {
        let taken = match c {
            '"' => quoted_length(rest),
            c if c.is_ascii_whitespace() => {
                rest = rest.trim_start();
                if !rest.starts_with([',', '=']) && !out.ends_with([',', '=', ' ']) {
                    out.push(' ');
                }
                continue;
            }
            _ => c.len_utf8(),
        };
        out.push_str(&rest[..taken]);
        rest = &rest[taken..];
        if c == '=' {
            rest = rest.trim_start();
            let value = &rest[..rest.find(|c: char| c == ',' || c.is_ascii_whitespace()).unwrap_or(rest.len())];
            if !value.is_empty() && !value.starts_with('"') {
                out.push('"');
                out.push_str(&value.replace('\\', "\\\\").replace('"', "\\\""));
                out.push('"');
                rest = &rest[value.len()..];
            }
        }
    }
    out
}

/// The length of the quoted text at the start, its quotes counted.
fn quoted_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderMap, HeaderValue, WWW_AUTHENTICATE};

    use super::{Challenge, ChallengeError, choose};

    fn of(values: &[&str]) -> Result<Challenge, ChallengeError> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(WWW_AUTHENTICATE, HeaderValue::from_str(value).unwrap());
        }
        choose(&headers)
    }

    fn bearer(service: &str, scope: &str) -> Result<Challenge, ChallengeError> {
        Ok(Challenge::Bearer {
            realm: "https://auth.example.com/token".to_owned(),
            service: Some(service.to_owned()).filter(|s| !s.is_empty()),
            scope: scope.to_owned(),
        })
    }

    #[test]
    fn challenges() {
        const REALM: &str = "realm=\"https://auth.example.com/token\"";
        let cases: Vec<(Vec<String>, Result<Challenge, ChallengeError>)> = vec![
            // two headers, and both in one
            (
                vec!["Basic realm=\"r\"".into(), format!("Bearer {REALM},service=\"registry.example.com\"")],
                bearer("registry.example.com", ""),
            ),
            (vec![format!("Bearer {REALM},service=\"s\""), "Basic realm=\"r\"".into()], bearer("s", "")),
            (vec![format!("Basic realm=\"a, b\", Bearer {REALM},service=\"s\"")], bearer("s", "")),
            (vec![format!("Bearer {REALM},service=\"s\", Basic realm=\"a\"")], bearer("s", "")),
            (vec![format!("Negotiate, Bearer {REALM}")], bearer("", "")),
            (vec!["bearer REALM = https://auth.example.com/token , Service=\"s\"".into()], bearer("s", "")),
            (vec!["bEaReR realm=https://auth.example.com/token".into()], bearer("", "")),
            (vec![format!("Bearer  {REALM} ,  service =  \"s\"")], bearer("s", "")),
            (vec![format!("Bearer {REALM},service=\"a \\\"b\\\" c\"")], bearer("a \"b\" c", "")),
            (vec!["Basic".into()], Ok(Challenge::Basic)),
            (vec!["Basic realm=".into()], Err(ChallengeError::Missing)),
            (vec!["Basic realm=x y=z".into(), "Basic realm=\"r\"".into()], Ok(Challenge::Basic)),
            (vec!["Bearer service=\"s\"".into()], Err(ChallengeError::NoRealm)),
            (vec!["Bearer".into()], Err(ChallengeError::NoRealm)),
            (vec!["Bearer realm=\"\"".into()], Err(ChallengeError::NoRealm)),
            (vec!["Bearer service=\"s\"".into(), "Basic realm=\"r\"".into()], Ok(Challenge::Basic)),
            // no scope, and a scope of another kind
            (
                vec![format!("Bearer {REALM},service=\"public.example.com\",scope=\"aws\"")],
                bearer("public.example.com", "aws"),
            ),
            (
                vec![format!("Bearer {REALM},service=\"s\",scope=\"repository:team/app:pull,push\"")],
                bearer("s", "repository:team/app:pull,push"),
            ),
            (
                vec!["Basic realm=\"https://1.dkr.ecr.example.com/\",service=\"ecr.amazonaws.com\"".into()],
                Ok(Challenge::Basic),
            ),
            (vec!["Digest realm=\"r\", nonce=\"n\"".into()], Err(ChallengeError::Unsupported)),
            (vec![], Err(ChallengeError::Missing)),
            (vec!["".into()], Err(ChallengeError::Missing)),
            (vec![",,,".into()], Err(ChallengeError::Missing)),
            (vec!["Bearer realm=\"https://auth.example.com/token".into()], Err(ChallengeError::Missing)),
        ];
        for (values, expected) in cases {
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            assert_eq!(of(&values), expected, "{values:?}");
        }
    }
}
