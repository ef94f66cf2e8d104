//! Addresses of repositories: a local path, `file://`, `http(s)://`, `ssh://` or `user@host:path`.

use std::path::PathBuf;

use gix::bstr::ByteSlice as _;
use gix::url::{ArgumentSafety, Scheme};

use super::{GitError, redact, shown};
use crate::model::text::is_unseen;

/// Where a repository is.
#[derive(Clone, Debug)]
pub(super) enum Address {
    /// On this machine.
    Local(PathBuf),
    /// Behind an HTTP server.
    Http {
        /// The address without user information.
        url: gix::Url,
        /// The user that the address names.
        user: Option<String>,
        /// Whether credentials may be sent: over TLS, or to this very machine.
        private: bool,
    },
    /// Behind an ssh server.
    Ssh {
        /// The user to log in as.
        user: Option<String>,
        /// The host.
        host: String,
        /// The port, if it is not the usual one.
        port: Option<u16>,
        /// The path at the host.
        path: String,
    },
}

const FORMS: &str = "write a path, https://host/path.git, ssh://user@host/path.git or user@host:path.git; a password or \
                     token goes into a file that is named with --git-password-file";

const TAKE_OUT: &str = "take passwords and tokens out of the address, write the secret into a file of its own, and name \
                        that file with --git-password-file";

/// What makes an address doubtful: places where people put secrets, and that could be read in two ways. Git would take
/// some of these for a host's name or a path, and send or show them.
fn doubt(text: &str) -> Option<(&'static str, &'static str)> {
    if shown::slashless_scheme(text).is_some() {
        return Some(("lacks the two slashes after its scheme", FORMS));
    }
    if let Some((_, rest)) = text.split_once("://") {
        let path = rest.find(['/', '\\']).map_or("", |slash| &rest[slash..]);
        return match () {
            () if text.starts_with("file://") => None,
            () if rest.contains(['?', '#']) => Some(("holds a query or a fragment", TAKE_OUT)),
            () if path.contains('@') => {
                Some(("holds an `@` behind a slash, as if a password had a slash in it", TAKE_OUT))
            }
            () => None,
        };
    }
    let is_path = ["./", "../", "/"].iter().any(|start| text.starts_with(start)) && !text.starts_with("//");
    let after_colon = text.split_once(':').map_or("", |(_, after)| after);
    match () {
        () if is_path => None,
        () if after_colon.contains('@') => Some(("holds a colon before an `@`, as if there was a password", TAKE_OUT)),
        () if text.contains('?') => Some(("holds a query", TAKE_OUT)),
        () => None,
    }
}

/// Whether a text can be a host's name or IP address.
fn is_host(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']'))
}

/// Reads an address.
///
/// # Errors
/// [`GitError::Address`] for what is not an address, for a password in it, and for transports that are not used.
pub(super) fn parse(text: &str) -> Result<Address, GitError> {
    let refuse = |problem, hint| GitError::Address { address: redact::address(text), problem, hint };
    let malformed = || refuse("cannot be read", FORMS);
    if text.trim().is_empty() || text.contains(is_unseen) {
        return Err(malformed());
    }
    if let Some((problem, hint)) = doubt(text) {
        return Err(refuse(problem, hint));
    }
    let mut url = gix::url::parse(text).map_err(|_| malformed())?;
    // A user with an encoded colon would become a password in the header of the request.
    if url.password().is_some() || url.user().is_some_and(|user| user.contains(':')) {
        return Err(refuse("holds a password", TAKE_OUT));
    }
    if url.host().is_some_and(|host| !is_host(host)) {
        return Err(refuse("has no host's name where one belongs", FORMS));
    }
    let user = url.user().filter(|user| !user.is_empty()).map(str::to_owned);
    match url.scheme {
        Scheme::File if url.host().is_none_or(|host| host == "localhost") => {
            let path = url.path.to_path().map_err(|_| malformed())?;
            let path =
                if text.starts_with("file://") { decoded(text).unwrap_or_else(|| path.into()) } else { path.into() };
            Ok(Address::Local(path))
        }
        Scheme::Http | Scheme::Https => {
            let host = url.host().ok_or_else(malformed)?;
            let private = url.scheme == Scheme::Https || crate::io::http::is_loopback(host);
            url.set_user(None);
            Ok(Address::Http { url, user, private })
        }
        Scheme::Ssh => {
            // A host, user or path that starts with a dash would be taken for an option by ssh or git.
            let dash = || refuse("starts a part of it with a dash", "write the address without that dash");
            let host = match url.host_as_argument() {
                ArgumentSafety::Usable(host) => host.to_owned(),
                ArgumentSafety::Dangerous(_) => return Err(dash()),
                ArgumentSafety::Absent => return Err(malformed()),
            };
            if matches!(url.user_as_argument(), ArgumentSafety::Dangerous(_)) || url.path.starts_with(b"-") {
                return Err(dash());
            }
            let path = gix::url::expand_path::for_shell(url.path.clone()).to_string();
            Ok(Address::Ssh { user, host, port: url.port, path })
        }
        _ => Err(refuse("uses a transport that larder does not", FORMS)),
    }
}

/// The path of a `file://` address, percent-encoding taken off, as git does it.
fn decoded(text: &str) -> Option<PathBuf> {
    let rest = text.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").filter(|path| path.starts_with('/')).unwrap_or(rest);
    percent_encoding::percent_decode_str(path).decode_utf8().ok().map(|path| PathBuf::from(path.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::{Address, GitError, parse};

    #[test]
    fn addresses_are_told_apart() {
        for (text, expected) in [
            ("/srv/envs.git", "local /srv/envs.git"),
            ("./envs", "local ./envs"),
            ("./a:b@c", "local ./a:b@c"),
            ("host-alias:team/x.git", "ssh @host-alias:0 team/x.git"),
            ("git:team/x.git", "ssh @git:0 team/x.git"),
            ("envs", "local envs"),
            ("file:///srv/my%20envs.git", "local /srv/my envs.git"),
            ("file://localhost/srv/envs.git", "local /srv/envs.git"),
            ("https://git.example.com/x.git", "https://git.example.com/x.git private"),
            ("https://bot@git.example.com:8443/x.git", "https://git.example.com:8443/x.git private bot"),
            ("http://git.example.com/x.git", "http://git.example.com/x.git"),
            ("http://127.0.0.1:8080/x.git", "http://127.0.0.1:8080/x.git private"),
            ("http://[::1]:8080/x.git", "http://[::1]:8080/x.git private"),
            ("http://localhost.example.com/x.git", "http://localhost.example.com/x.git"),
            ("ssh://git@host:2222/srv/x.git", "ssh git@host:2222 /srv/x.git"),
            ("git@host:team/x.git", "ssh git@host:0 team/x.git"),
            ("ssh://host/~/x.git", "ssh @host:0 ~/x.git"),
        ] {
            let shown = match parse(text).unwrap() {
                Address::Local(path) => format!("local {}", path.display()),
                Address::Http { url, user, private } => {
                    let private = if private { " private" } else { "" };
                    let user = user.map(|user| format!(" {user}")).unwrap_or_default();
                    format!("{}{private}{user}", url.to_bstring())
                }
                Address::Ssh { user, host, port, path } => {
                    format!("ssh {}@{host}:{} {path}", user.unwrap_or_default(), port.unwrap_or_default())
                }
            };
            assert_eq!(shown, expected, "{text}");
        }
    }

    #[test]
    fn dangerous_addresses_are_refused() {
        for text in [
            "",
            " ",
            "https://u:s3cr%40t@git.example.com/x.git",
            "ssh://git:s3cret@host/x",
            "ssh://-oProxyCommand=evil/x",
            "-oProxyCommand@host:x",
            "https://h/x.git?private_token=s3cret",
            "https://h/x.git#s3cret",
            "https:/bob:s3cret@h/x.git",
            "https:bob:s3cret@h/x.git",
            "https//bob:s3cret@h/x.git",
            "htps:/bob:s3cret@h/x.git",
            "//bob:s3cret@h/x.git",
            "https://bob:s3cret/x@h/x.git",
            "https://bob:123/s3cret@h/x.git",
            "https://bob:s3cr?et@h/x.git",
            "https://bob:s3cr#et@h/x.git",
            "https://bob:s3cret\\@h/x.git",
            "https://bob:s3cret",
            "https://bob:s3cret%40h/x.git",
            "https://bob%3As3cret@h/x.git",
            "ssh://git:s3cret/x@h/x",
            "ssh://h/x?token=s3cret",
            "bob:s3cret@h:x",
            "bob:s3cret@h/x",
            "bob:s3cret@h://x",
            "git@h:x.git?token=s3cret",
            "h/x.git?private_token=s3cret",
            "foo::https://bob:s3cret@h/x",
            "git@host:-u./evil",
            "ext::sh -c evil",
            "git://host/x",
            "file://other-host/x",
            "https:///x",
            "ssh://host/a\nb",
        ] {
            let error = parse(text).unwrap_err();
            assert!(matches!(error, GitError::Address { .. }), "{text}: {error}");
            assert!(!error.to_string().contains("s3cr") && !error.hint().is_empty(), "{error}");
            assert!(!text.contains("s3cr") || error.hint().contains("--git-password-file"), "{text}: {}", error.hint());
        }
    }
}
