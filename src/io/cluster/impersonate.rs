//! Writes in the name of a tenant's service account.

use http::{HeaderValue, Request};
use kube::core::request::Error;

/// The header that names the user. Groups are left to the API server, which adds those of service accounts itself:
/// <https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation>.
const USER: &str = "Impersonate-User";

/// The same request, in the name of that user if there is one. A name that is not a header's value refuses the request, so
/// that it is never sent in larder's own name.
pub(super) fn in_the_name_of(
    user: Option<&str>,
    request: Result<Request<Vec<u8>>, Error>,
) -> Result<Request<Vec<u8>>, Error> {
    let Some(user) = user else { return request };
    let mut request = request?;
    let value = HeaderValue::from_str(user).map_err(|error| Error::BuildRequest(error.into()))?;
    request.headers_mut().insert(USER, value);
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_named_or_the_request_is_refused() {
        let request = || Ok(Request::new(Vec::new()));
        let user = |user| in_the_name_of(user, request()).map(|request| request.headers().get(USER).cloned());
        assert_eq!(user(None).unwrap(), None);
        assert_eq!(user(Some("system:serviceaccount:a:b")).unwrap().unwrap(), "system:serviceaccount:a:b");
        assert!(user(Some("a\r\nImpersonate-Group: system:masters")).is_err());
    }
}
