//! Credentials in Submarine's files: the name of a Secret, or a password that is refused with the command that makes a
//! Secret of it.

use schemars::JsonSchema;
use serde::{Deserialize, de::IgnoredAny};

use crate::model::{
    failure::{Category, Problem},
    redact::holds_user,
    reference::ImageReference,
};

use super::super::{file::ImageEntry, limits::Tenancy};
use crate::stages::source::{
    check::Check,
    located::{Located, anything},
};

/// Credentials, by the name of a Secret. A password in Git is refused, with the command that makes a Secret of it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Auth {
    /// `secret`; `password` is refused.
    #[serde(rename = "type")]
    pub kind: Option<Located<AuthType>>,
    /// A Secret of the tenant's namespace with registry credentials.
    pub secret: Option<Located<String>>,
    /// Refused, like the password that it comes with.
    pub username: Option<Located<String>>,
    /// Refused: credentials must not be committed to Git.
    pub password: Option<Located<String>>,
    /// Not used.
    #[serde(default)]
    #[schemars(schema_with = "anything")]
    #[expect(dead_code, reason = "documents a field that is not used")]
    pub email: IgnoredAny,
}

/// How the credentials are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AuthType {
    /// By the name of a Secret.
    Secret,
    /// By user name and password.
    Password,
}

impl Auth {
    /// The name of the Secret, if that is all there is. `field` is where the credentials are, `image` what they are for.
    pub fn secret(
        self,
        check: &mut Check<'_>,
        field: &str,
        image: &ImageEntry,
        tenancy: Tenancy<'_>,
    ) -> Option<Located<String>> {
        let place = match (&self.password, &self.username) {
            (None, None) => match self.kind {
                Some(kind) if kind.value == AuthType::Password => {
                    let problem = Problem::new(Category::Schema, "there is no password, and there should be none");
                    check.report(
                        kind.place,
                        problem.hint(format!(
                            "write `\"type\": \"secret\"` and the name of a Secret as `secret`, or remove `{field}`"
                        )),
                    );
                    return None;
                }
                _ => return self.secret,
            },
            (Some(password), _) => password.place,
            (None, Some(username)) => username.place,
        };
        let message = match self.password {
            Some(_) => "the file contains a password; do not put credentials in Git",
            None => "the file contains a user name; do not put credentials in Git",
        };
        let changed =
            if self.password.is_some() { "; change the password as well, since the history keeps it" } else { "" };
        let (command, secret) = self.command(&image.name.value, &image.image.value, tenancy);
        let problem = Problem::new(Category::Credentials, message).hint(format!(
            "run `{command}` (it reads the password from standard input), and write only `secret: {secret}` into `{field}`{changed}",
        ));
        check.report_secret(place, problem);
        None
    }

    /// The command that makes the Secret, and the Secret's name. It repeats nothing that may be secret.
    fn command(&self, name: &str, image: &str, tenancy: Tenancy<'_>) -> (String, String) {
        let secret = match &self.secret {
            Some(secret) => secret.value.clone(),
            None => secret_name(name),
        };
        let server =
            image.parse::<ImageReference>().map_or_else(|_| "HOST".to_owned(), |image| image.host().to_owned());
        let username = self.username.as_ref().map(|username| username.value.as_str());
        let username = username.filter(|name| is_plain(name) && !self.repeats_password(name)).unwrap_or("USER");
        let tenant = Some(tenancy.name.as_str()).filter(|name| is_plain(name));
        let tenant = tenant
            .map_or_else(|| format!("--namespace {}", tenancy.tenant.namespace), |tenant| format!("--tenant {tenant}"));
        (format!("larder secret {secret} {tenant} --server {server} --username {username} --create"), secret)
    }

    fn repeats_password(&self, text: &str) -> bool {
        let password = self.password.as_ref().map_or("", |password| password.value.as_str());
        !password.is_empty() && (text.contains(password) || password.contains(text))
    }
}

/// Whether a text is one word for a shell and no address with a password.
fn is_plain(text: &str) -> bool {
    const MOST: usize = 64;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.@+".contains(c);
    !text.is_empty() && text.len() <= MOST && !text.starts_with('-') && text.chars().all(plain) && !holds_user(text)
}

/// A Secret's name after an image's.
fn secret_name(image: &str) -> String {
    let slug: String = image.to_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let slug: String = slug.trim_matches('-').chars().take(50).collect();
    match slug.trim_matches('-') {
        "" => "image-pull".to_owned(),
        slug => format!("{slug}-pull"),
    }
}

#[cfg(test)]
mod tests {
    use super::{is_plain, secret_name};

    #[test]
    fn commands_need_no_quotes() {
        for (text, plain) in [
            ("robot", true),
            ("a.b@example.com", true),
            ("robot$team", false),
            ("a b", false),
            ("$(id)", false),
            ("-x", false),
            ("", false),
        ] {
            assert_eq!(is_plain(text), plain, "{text}");
        }
        assert_eq!(secret_name("Jupyter GPU"), "jupyter-gpu-pull");
        assert_eq!(secret_name("ünï"), "n-pull");
        assert_eq!(secret_name("--"), "image-pull");
    }
}
