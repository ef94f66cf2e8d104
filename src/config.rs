//! Flags and environment variables, read once. Groups of flags are shared by the commands.

use std::{
    io::IsTerminal,
    net::SocketAddr,
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;

use crate::{
    io::{
        forge::{self, Forge},
        git,
    },
    model::failure::{Category, Problem},
};

/// The controller's name and address.
const AUTHOR: (&str, &str) = ("larder", "larder@larder.dev");

/// The environment repository: a directory, or a Git repository at a commit.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Environment repository")]
pub struct SourceOptions {
    /// The Git repository: a local path, file://, http(s):// or ssh://. Without it, the current directory (or the nearest
    /// parent with a larder.yaml), uncommitted files included.
    #[arg(long, value_name = "URL", env = "LARDER_REPO", hide_env_values = true)]
    pub repo: Option<String>,
    /// The branch; by default the remote's HEAD.
    #[arg(long, value_name = "NAME")]
    pub branch: Option<String>,
    /// The directory of the environment repository within a larger repository.
    #[arg(long, value_name = "DIR")]
    pub path: Option<String>,
    /// User name for HTTP(S); by default the URL's, or one that forges expect with a token.
    #[arg(long, value_name = "NAME")]
    pub git_username: Option<String>,
    /// File containing the HTTP(S) password or token; re-read on each use, so it can be rotated.
    #[arg(long, value_name = "FILE")]
    pub git_password_file: Option<PathBuf>,
    /// PEM bundle of additional CA certificates to trust for HTTPS.
    #[arg(long, value_name = "FILE", env = "LARDER_GIT_CA_FILE")]
    pub git_ca_file: Option<PathBuf>,
    /// HTTP(S) proxy for Git only: http://HOST:PORT. By default HTTPS_PROXY and NO_PROXY are honored. Requests to the API
    /// server never use either.
    #[arg(long, value_name = "URL", env = "LARDER_GIT_PROXY", hide_env_values = true)]
    pub git_proxy: Option<String>,
    /// File containing USER:PASSWORD for that proxy; re-read on each use, so it can be rotated.
    #[arg(long, value_name = "FILE")]
    pub git_proxy_login_file: Option<PathBuf>,
    /// File containing the SSH private key.
    #[arg(long, value_name = "FILE")]
    pub ssh_key_file: Option<PathBuf>,
    /// File containing the trusted SSH host keys; all others are refused.
    #[arg(long, value_name = "FILE")]
    pub known_hosts_file: Option<PathBuf>,
    /// Directory that keeps fetched objects; by default a temporary one, removed on exit.
    #[arg(long, value_name = "DIR", env = "LARDER_CACHE_DIR")]
    pub cache_dir: Option<PathBuf>,
    /// Refuse commits that are not signed by an SSH key in this file (OpenSSH's allowed signers format).
    #[arg(long, value_name = "FILE")]
    pub verify_signers: Option<PathBuf>,
    /// Refuse commits that are not signed by an OpenPGP key in this file. Requires the program gpg.
    #[arg(long, value_name = "FILE")]
    pub verify_keyring: Option<PathBuf>,
}

impl SourceOptions {
    /// The options of the Git adapter, when `--repo` is given; `cache` is where fetched objects go.
    pub fn git(&self, cache: PathBuf, commits: &CommitOptions) -> Option<git::Options> {
        let (author, committer) = commits.identities();
        Some(git::Options {
            url: self.repo.clone()?,
            branch: self.branch.clone(),
            path: self.path.clone(),
            cache,
            credentials: git::Credentials {
                username: self.git_username.clone(),
                password_file: self.git_password_file.clone(),
                ssh_key: self.ssh_key_file.clone(),
                known_hosts: self.known_hosts_file.clone(),
            },
            network: git::Network {
                ca_file: self.git_ca_file.clone(),
                proxy: self.git_proxy.clone(),
                proxy_login_file: self.git_proxy_login_file.clone(),
            },
            author,
            committer,
            signing_key: commits.signing_key_file.clone(),
            trust: git::Trust { signers: self.verify_signers.clone(), keyring: self.verify_keyring.clone() },
            checkout: git::Checkout::default(),
        })
    }

    /// The local repository, of which the environment repository is the directory `path`.
    pub fn with_local(mut self, repository: &Path, path: Option<String>) -> Self {
        self.repo = Some(repository.display().to_string());
        self.path = self.path.or(path);
        self
    }

    /// A local repository's branch `main`.
    pub fn of_local(repository: &Path) -> Self {
        let repo = Some(repository.display().to_string());
        Self { repo, branch: Some("main".to_owned()), ..Self::default() }
    }
}

/// Who commits, and with which key.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Commits")]
pub struct CommitOptions {
    /// Author and committer name. `run` commits as `larder` by default, the other commands as your Git configuration says.
    #[arg(long, value_name = "NAME")]
    pub author_name: Option<String>,
    /// E-mail address of the author and committer.
    #[arg(long, value_name = "ADDRESS")]
    pub author_email: Option<String>,
    /// Committer name, if different from the author.
    #[arg(long, value_name = "NAME")]
    pub committer_name: Option<String>,
    /// E-mail address of the committer, if different from the author's.
    #[arg(long, value_name = "ADDRESS")]
    pub committer_email: Option<String>,
    /// OpenSSH private key, without passphrase, that signs the commits; re-read on each use, so it can be rotated.
    #[arg(long, value_name = "FILE")]
    pub signing_key_file: Option<PathBuf>,
}

impl CommitOptions {
    /// The same for a person's own commit: identity and SSH signing key are those of Git in `directory`, unless given.
    ///
    /// # Errors
    /// When Git has no identity.
    pub fn as_person(mut self, directory: &Path) -> Result<Self, Problem> {
        if self.author_name.is_none() && self.author_email.is_none() {
            let person = git::person(directory).ok_or_else(|| {
                Problem::new(Category::Git, "no Git identity is configured")
                    .hint("give --author-name and --author-email, or set `git config user.name` and `user.email`")
            })?;
            (self.author_name, self.author_email) = (Some(person.name), Some(person.email));
        }
        if self.signing_key_file.is_none()
            && let git::Signing::SshKey(key) = git::signing(directory)
        {
            self.signing_key_file = Some(key);
        }
        Ok(self)
    }

    /// Author and committer.
    fn identities(&self) -> (git::Identity, git::Identity) {
        let or = |given: &Option<String>, default: &str| given.clone().unwrap_or_else(|| default.to_owned());
        let author = git::Identity { name: or(&self.author_name, AUTHOR.0), email: or(&self.author_email, AUTHOR.1) };
        let committer = git::Identity {
            name: or(&self.committer_name, &author.name),
            email: or(&self.committer_email, &author.email),
        };
        (author, committer)
    }
}

/// Where manifests go.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Target")]
pub struct TargetOptions {
    /// `cluster`, or `dir:PATH` for a directory of manifests to be applied by Argo CD, Flux or manually.
    #[arg(long, value_name = "TARGET", default_value = "cluster")]
    pub target: Target,
    /// The kubeconfig; by default $KUBECONFIG, ~/.kube/config, or the pod's own service account.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The kubeconfig's context; by default its current one.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Instance name; lets several larders share a cluster without touching each other's objects.
    #[arg(long, value_name = "NAME", default_value = "default", value_parser = parse_instance)]
    pub instance: String,
    /// The namespace of the ConfigMap `larder-status`, with the result of the last pass; by default the pod's own or
    /// the kubeconfig's.
    #[arg(long, value_name = "NAME", env = "LARDER_NAMESPACE")]
    pub status_namespace: Option<String>,
}

/// Where manifests go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The API server of the kubeconfig.
    Cluster,
    /// A directory.
    Directory(PathBuf),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "cluster" => Ok(Self::Cluster),
            Some(("dir", path)) if !path.is_empty() => Ok(Self::Directory(path.into())),
            _ => Err("`cluster` or `dir:PATH` is expected".to_owned()),
        }
    }
}

/// A label value that is a DNS label of at most 40 characters.
fn parse_instance(text: &str) -> Result<String, String> {
    let letters = text.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '-'));
    match text.len() {
        1..=40 if letters && !text.starts_with('-') && !text.ends_with('-') => Ok(text.to_owned()),
        _ => Err("at most 40 of a-z, 0-9 and `-` are expected, with no `-` at an end".to_owned()),
    }
}

/// How registries are reached, beyond `larder.yaml`.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Registries")]
pub struct RegistryOptions {
    /// Docker config.json with credentials for images without a pull secret.
    #[arg(long, value_name = "FILE", env = "LARDER_REGISTRY_CONFIG")]
    pub registry_config: Option<PathBuf>,
}

/// The forge that holds the repository: Gitea, GitHub or GitLab.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Forge")]
pub struct ForgeOptions {
    /// Which forge holds the repository.
    #[arg(long, value_enum, value_name = "KIND", requires = "forge_repo", requires = "forge_token_file")]
    pub forge: Option<forge::Kind>,
    /// The forge's base URL; by default github.com or gitlab.com.
    #[arg(long, value_name = "URL", requires = "forge")]
    pub forge_url: Option<String>,
    /// The repository on the forge: owner/name.
    #[arg(long, value_name = "OWNER/NAME", requires = "forge")]
    pub forge_repo: Option<String>,
    /// File containing an API token for the forge; re-read on each use, so it can be rotated.
    #[arg(long, value_name = "FILE", requires = "forge")]
    pub forge_token_file: Option<PathBuf>,
    /// PEM bundle of additional CA certificates to trust.
    #[arg(long, value_name = "FILE", requires = "forge")]
    pub forge_ca_file: Option<PathBuf>,
}

impl ForgeOptions {
    /// The forge, if one is named.
    ///
    /// # Errors
    /// When an option cannot be used.
    pub fn open(&self) -> Result<Option<Forge>, Problem> {
        let Some(kind) = self.forge else { return Ok(None) };
        let missing = |flag: &str| {
            Problem::new(Category::Forge, format!("{flag} is missing"))
                .hint("--forge needs --forge-repo and --forge-token-file")
        };
        Forge::new(forge::Options {
            kind,
            url: self.forge_url.clone(),
            repository: self.forge_repo.clone().ok_or_else(|| missing("--forge-repo"))?,
            token_file: self.forge_token_file.clone().ok_or_else(|| missing("--forge-token-file"))?,
            ca_file: self.forge_ca_file.clone(),
        })
        .map(Some)
    }
}

/// Webhooks of forges and registries.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Webhooks")]
pub struct WebhookOptions {
    /// Receive webhooks on this address, for example 0.0.0.0:8081: POST /hooks/github, gitlab, gitea, registry, harbor, quay/SECRET,
    /// dockerhub/SECRET or ghcr.
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        env = "LARDER_WEBHOOK_LISTEN",
        conflicts_with = "once",
        requires = "webhook_secret_file"
    )]
    pub webhook_listen: Option<SocketAddr>,
    /// File containing the webhook secrets, one per line; any of them is accepted. Re-read on each use, so it can be
    /// rotated.
    #[arg(long, value_name = "FILE", env = "LARDER_WEBHOOK_SECRET_FILE", requires = "webhook_listen")]
    pub webhook_secret_file: Option<PathBuf>,
}

/// How data is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// Human-readable.
    #[default]
    Text,
    /// Machine-readable.
    Json,
}

/// Logs go to standard error.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Logs")]
pub struct LogOptions {
    /// Log filter: a level, or `target=level,…`; by default `info` for the controller and `warn` for all other commands.
    #[arg(long, global = true, value_name = "FILTER", env = "LARDER_LOG")]
    pub log: Option<String>,
    /// Log format.
    #[arg(long, global = true, value_enum, default_value_t = OutputFormat::Text, env = "LARDER_LOG_FORMAT")]
    pub log_format: OutputFormat,
}

impl LogOptions {
    /// Sends events to standard error from now on; `default` is the filter when none was given.
    pub fn install(&self, default: &str) {
        let wanted = self.log.as_deref().unwrap_or(default);
        // Libraries speak up at warnings only: at their own info level they repeat each retry. The client logs each
        // error that it returns, and larder says it itself.
        let quiet = ["kube", "kube_runtime", "hyper", "hyper_util", "reqwest", "rustls", "tower", "h2"];
        let quiet = quiet.into_iter().map(|library| (library, "warn")).chain([("kube_client", "off")]);
        let mut filter = EnvFilter::try_new(wanted).unwrap_or_else(|_| EnvFilter::new(default));
        for (library, level) in quiet {
            if !wanted.contains(library)
                && let Ok(directive) = format!("{library}={level}").parse()
            {
                filter = filter.add_directive(directive);
            }
        }
        let builder = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(std::io::stderr)
            .with_target(false)
            .with_ansi(std::io::stderr().is_terminal());
        // A second subscriber (tests that call a command twice in a process) does no harm.
        let _ = match self.log_format {
            OutputFormat::Text => builder.try_init(),
            OutputFormat::Json => builder.json().flatten_event(true).try_init(),
        };
    }
}

/// Reads `90s`, `5m`, `1h 30m`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let hint = || "a duration such as 30s, 5m or 1h is expected".to_owned();
    let span: jiff::SignedDuration = text.parse().map_err(|_| hint())?;
    Duration::try_from(span).ok().filter(|duration| !duration.is_zero()).ok_or_else(hint)
}
