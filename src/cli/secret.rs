//! `larder secret`: a pull secret out of a password that never enters the environment repository.

mod manifest;

use std::{
    fs,
    io::{IsTerminal as _, Read as _},
    path::PathBuf,
};

use clap::Args;

use self::manifest::{Login, manifest};
use super::{CliError, Exit, Printer, session};
use crate::{
    config::{SourceOptions, TargetOptions},
    model::{
        failure::{Category, Problem},
        name::Name,
        registries::registry_host,
        yaml::to_yaml,
    },
    stages::source::values,
};

/// The longest password that is read, in bytes: tokens have a few thousand at most.
const MAX_PASSWORD: u64 = 64 << 10;

/// Create a Secret with registry credentials: print its manifest, or create it in the cluster
///
/// The password is read from a file or from standard input, never from an argument, and is never written into the
/// environment repository. Environments name the Secret in `pullSecret`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pass show quay | larder secret quay-pull --tenant research --create \\
    --server quay.io --username robot
  larder secret quay-pull --namespace research --server quay.io --username robot \\
    --password-file token | kubeseal > sealed.yaml

The manifest contains the password: pipe it to kubectl or a sealing tool; never commit it.")]
pub struct Secret {
    /// The Secret's name, as in `pullSecret`.
    name: String,
    /// The tenant whose namespace it is created in, from larder.yaml.
    #[arg(long, required_unless_present = "namespace", conflicts_with = "namespace")]
    tenant: Option<Name>,
    /// The namespace it is created in.
    #[arg(long)]
    namespace: Option<String>,
    /// The registry's host, as in image references: `quay.io`, `registry.example.com:5000`, `docker.io`.
    #[arg(long, value_name = "HOST")]
    server: String,
    /// User name at the registry.
    #[arg(long, value_name = "NAME")]
    username: String,
    /// File containing the password; by default it is read from standard input. A trailing newline is ignored.
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// An e-mail address, for registries that require one.
    #[arg(long, value_name = "ADDRESS")]
    email: Option<String>,
    /// Create it in the cluster instead of printing it; an existing Secret is left unchanged.
    #[arg(long)]
    create: bool,
    #[command(flatten)]
    source: SourceOptions,
    #[command(flatten)]
    target: TargetOptions,
}

impl Secret {
    pub(super) async fn run(self, printer: &mut Printer) -> Result<Exit, CliError> {
        is_object_name(&self.name)?;
        let namespace = self.namespace().await?;
        let server = registry_host(&self.server).map_err(Problem::from)?;
        let password = self.password()?;
        let login = Login { server, username: self.username, password, email: self.email };
        let secret = manifest(&namespace, &self.name, &login);
        if !self.create {
            printer.text(&to_yaml(&secret));
            printer.note("note: this contains the password; pipe it to `kubectl apply --filename -` or a sealing tool, and never commit it");
            return Ok(Exit::Success);
        }
        session::cluster(&self.target).await?.create_secret(&namespace, &self.name, &secret).await?;
        printer.line(&format!("Secret/{namespace}/{} created", self.name));
        printer.note(&format!("Next: write `pullSecret: {}` for the images that need it.", self.name));
        Ok(Exit::Success)
    }

    async fn namespace(&self) -> Result<String, CliError> {
        let Some(tenant) = &self.tenant else {
            let namespace = self.namespace.clone().unwrap_or_default();
            is_object_name(&namespace)?;
            return Ok(namespace);
        };
        let source = session::source(&self.source).await?;
        let environments = session::load(&source)?;
        let found = environments.settings.tenants.get(tenant).map(|tenant| tenant.namespace.clone());
        found.ok_or_else(|| {
            let names: Vec<&str> = environments.settings.tenants.keys().map(Name::as_str).collect();
            Problem::new(Category::Policy, format!("the tenant `{tenant}` is not in larder.yaml"))
                .hint(format!("its tenants are: {}", names.join(", ")))
                .into()
        })
    }

    fn password(&self) -> Result<String, CliError> {
        let mut bytes = Vec::new();
        let says = |message: String, hint: &str| Problem::new(Category::Credentials, message).hint(hint);
        match &self.password_file {
            Some(path) => {
                let file = fs::File::open(path).map_err(|error| CliError::io(path.display(), &error))?;
                file.take(MAX_PASSWORD + 1)
                    .read_to_end(&mut bytes)
                    .map_err(|error| CliError::io(path.display(), &error))?;
            }
            None if std::io::stdin().is_terminal() => {
                return Err(says(
                    "the password would show on this terminal".to_owned(),
                    "pipe it in, as in `pass show quay | larder secret …`, or give --password-file",
                )
                .into());
            }
            None => {
                std::io::stdin()
                    .take(MAX_PASSWORD + 1)
                    .read_to_end(&mut bytes)
                    .map_err(|error| CliError::io("standard input", &error))?;
            }
        }
        if bytes.len() as u64 > MAX_PASSWORD {
            return Err(
                says("this is too long for a password".to_owned(), "give a file with the password alone").into()
            );
        }
        // The bytes are in the error, so it is not shown.
        let text = String::from_utf8(bytes).map_err(|_| {
            says("the password is not UTF-8 text".to_owned(), "give it as UTF-8, without anything else")
        })?;
        let password = text.strip_suffix('\n').unwrap_or(&text);
        let password = password.strip_suffix('\r').unwrap_or(password);
        if password.is_empty() || password.contains('\n') {
            let place =
                self.password_file.as_ref().map_or("standard input".to_owned(), |path| path.display().to_string());
            let what = if password.is_empty() { "holds no password" } else { "holds several lines" };
            let hint = "give the password alone, on one line: from a file with --password-file, or piped in";
            return Err(says(format!("{place} {what}"), hint).into());
        }
        Ok(password.to_owned())
    }
}

/// The API server would refuse others, and they would be part of a request's path.
fn is_object_name(text: &str) -> Result<(), Problem> {
    values::object_name(text).map(|_| ())
}
