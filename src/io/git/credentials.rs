//! Credentials of one repository, read from their files again at each use, so that they can be rotated.

use std::{fs, io::Read as _, path::PathBuf};

use super::{GitError, redact::Redactor};

/// The user name for tokens, where none is given; the forges take any, or this one.
const TOKEN_USER: &str = "x-access-token";

/// The largest password file, in bytes.
const MAX_SECRET: u64 = 64 * 1024;

/// Where the credentials for a repository are. Never holds a secret itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    /// The user name for http(s); without one it is taken from the address, or is one that forges expect with a token.
    pub username: Option<String>,
    /// A file that holds a password or token for http(s), in its first line.
    pub password_file: Option<PathBuf>,
    /// A file that holds a private key for ssh. Without one, an ssh agent may be used.
    pub ssh_key: Option<PathBuf>,
    /// A file in the form of OpenSSH's `known_hosts`. Without one, ssh's usual files are used. A host that is in none of
    /// them is always refused.
    pub known_hosts: Option<PathBuf>,
}

/// A user name and password, as they are right now.
pub(super) struct Login {
    pub(super) user: String,
    pub(super) password: String,
}

impl Credentials {
    /// The login for http(s), if a password file is given. `user` is the one that the address names.
    ///
    /// # Errors
    /// [`GitError::Credentials`] when the file cannot be read or holds nothing.
    pub(super) fn login(&self, remote: &str, user: Option<&str>) -> Result<Option<Login>, GitError> {
        let Some(path) = &self.password_file else {
            return Ok(None);
        };
        let refuse = |problem: String| GitError::Credentials {
            remote: remote.to_owned(),
            detail: format!("{}: {problem}", path.display()),
        };
        let mut text = String::new();
        fs::File::open(path)
            .and_then(|file| file.take(MAX_SECRET).read_to_string(&mut text))
            .map_err(|error| refuse(error.to_string()))?;
        let password = text.lines().next().unwrap_or_default().trim();
        if password.is_empty() {
            return Err(refuse("its first line is empty".into()));
        }
        let user = self.username.as_deref().or(user).unwrap_or(TOKEN_USER);
        Ok(Some(Login { user: user.to_owned(), password: password.to_owned() }))
    }
}

impl Login {
    /// What must not be seen of it.
    pub(super) fn redactor(&self) -> Redactor {
        Redactor::new(&self.user, &self.password)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Credentials, TOKEN_USER};

    #[test]
    fn a_password_file_is_read_at_each_use() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let credentials = Credentials { password_file: Some(file.clone()), ..Credentials::default() };
        assert!(credentials.login("r", None).is_err_and(|error| error.to_string().contains("token")));
        fs::write(&file, "\n").unwrap();
        assert!(credentials.login("r", None).is_err());
        fs::write(&file, "first\r\nrest\n").unwrap();
        let login = credentials.login("r", None).unwrap().unwrap();
        assert_eq!((login.user.as_str(), login.password.as_str()), (TOKEN_USER, "first"));
        fs::write(&file, "second").unwrap();
        let login = credentials.login("r", Some("bot")).unwrap().unwrap();
        assert_eq!((login.user.as_str(), login.password.as_str()), ("bot", "second"));
        assert!(Credentials::default().login("r", None).unwrap().is_none());
    }
}
