//! Credentials in Submarine's files: the name of a Secret, or a password that is refused with the command that makes a
//! Secret of it.

use crate::model::{
    failure::{Category, Problem},
    redact::holds_user,
    reference::ImageReference,
};

use super::{
    super::{check::Check, located::Located},
    Folder,
};

/// Credentials as a file gives them.
pub struct Given {
    /// The field that they are in.
    pub field: &'static str,
    /// The name of a Secret.
    pub secret: Option<Located<String>>,
    /// A user's name.
    pub username: Option<Located<String>>,
    /// A password.
    pub password: Option<Located<String>>,
}

impl Given {
    /// The name of the Secret, if that is all there is.
    pub fn secret(
        self,
        check: &mut Check<'_>,
        name: &Located<String>,
        image: &Located<String>,
        folder: Folder<'_>,
    ) -> Option<Located<String>> {
        let place = match (&self.password, &self.username) {
            (None, None) => return self.secret,
            (Some(password), _) => password.place,
            (None, Some(username)) => username.place,
        };
        let message = match self.password {
            Some(_) => "the file contains a password; do not put credentials in Git",
            None => "the file contains a user name; do not put credentials in Git",
        };
        let changed =
            if self.password.is_some() { "; change the password as well, since the history keeps it" } else { "" };
        let (command, secret) = self.command(&name.value, &image.value, folder);
        let problem = Problem::new(Category::Credentials, message).hint(format!(
            "run `{command}` (it reads the password from standard input), and write only `secret: {secret}` into `{field}`{changed}",
            field = self.field
        ));
        check.report_secret(place, problem);
        None
    }

    /// The command that makes the Secret, and the Secret's name. It repeats nothing that may be secret.
    fn command(&self, name: &str, image: &str, folder: Folder<'_>) -> (String, String) {
        let secret = match &self.secret {
            Some(secret) => secret.value.clone(),
            None => secret_name(name),
        };
        let server =
            image.parse::<ImageReference>().map_or_else(|_| "HOST".to_owned(), |image| image.host().to_owned());
        let username = self.username.as_ref().map(|username| username.value.as_str());
        let username = username.filter(|name| is_plain(name) && !self.repeats_password(name)).unwrap_or("USER");
        let tenant = Some(folder.name.as_str()).filter(|name| is_plain(name));
        let tenant = tenant
            .map_or_else(|| format!("--namespace {}", folder.tenant.namespace), |tenant| format!("--tenant {tenant}"));
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
