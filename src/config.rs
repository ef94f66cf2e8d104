//! Flags and environment variables, read once. Groups of flags are shared by the verbs.

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
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Environment repository")]
pub struct SourceOptions {
    /// The Git repository: a local path, file://, http(s):// or ssh://. Without it, the directory that larder is started
    /// in (or the nearest one above it with a larder.yaml), uncommitted files included.
    #[arg(long, value_name = "URL", env = "LARDER_REPO", hide_env_values = true)]
    pub repo: Option<String>,
    #[command(flatten)]
    git: GitOptions,
}

/// How a Git repository is reached.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Environment repository")]
pub struct GitOptions {
    /// The branch; by default the one that the remote's HEAD names.
    #[arg(long, value_name = "NAME")]
    pub branch: Option<String>,
    /// The environment repository is this directory of a larger repository.
    #[arg(long, value_name = "DIR")]
    pub path: Option<String>,
    /// User name for http(s); by default the URL's, or one that forges expect with a token.
    #[arg(long, value_name = "NAME")]
    pub git_username: Option<String>,
    /// A file with the password or token for http(s). It is re-read at each use, so that it can be rotated.
    #[arg(long, value_name = "FILE")]
    pub git_password_file: Option<PathBuf>,
    /// A file of certificates that are trusted for https in addition to the system's.
    #[arg(long, value_name = "FILE", env = "LARDER_GIT_CA_FILE")]
    pub git_ca_file: Option<PathBuf>,
    /// The proxy for http(s), for Git alone: http://HOST:PORT. Without it, HTTPS_PROXY and NO_PROXY are honored; the API
    /// server is never asked through either.
    #[arg(long, value_name = "URL", env = "LARDER_GIT_PROXY", hide_env_values = true)]
    pub git_proxy: Option<String>,
    /// A file with USER:PASSWORD for that proxy. It is re-read at each use, so that it can be rotated.
    #[arg(long, value_name = "FILE")]
    pub git_proxy_login_file: Option<PathBuf>,
    /// A file with the private key for ssh.
    #[arg(long, value_name = "FILE")]
    pub ssh_key_file: Option<PathBuf>,
    /// A file with the host keys that are trusted for ssh; others are refused.
    #[arg(long, value_name = "FILE")]
    pub known_hosts_file: Option<PathBuf>,
    /// A directory that keeps fetched objects; by default a temporary one, removed at the end.
    #[arg(long, value_name = "DIR", env = "LARDER_CACHE_DIR")]
    pub cache_dir: Option<PathBuf>,
    /// Author and committer of lock commits.
    #[arg(long, value_name = "NAME", default_value = AUTHOR.0)]
    pub author_name: String,
    /// E-mail address of the author and committer of lock commits.
    #[arg(long, value_name = "ADDRESS", default_value = AUTHOR.1)]
    pub author_email: String,
    /// Committer of lock commits, where it is not the author.
    #[arg(long, value_name = "NAME")]
    pub committer_name: Option<String>,
    /// E-mail address of the committer, where it is not the author's.
    #[arg(long, value_name = "ADDRESS")]
    pub committer_email: Option<String>,
    /// A file with an OpenSSH private key, without passphrase, that signs the commits that larder makes. It is re-read
    /// at each use, so that it can be rotated.
    #[arg(long, value_name = "FILE")]
    pub signing_key_file: Option<PathBuf>,
    /// Read no commit that is not signed by a key of this file: SSH keys in the form of OpenSSH's allowed signers.
    #[arg(long, value_name = "FILE")]
    pub verify_signers: Option<PathBuf>,
    /// Read no commit that is not signed by a key of this file: OpenPGP public keys. It needs the program gpg.
    #[arg(long, value_name = "FILE")]
    pub verify_keyring: Option<PathBuf>,
}

impl SourceOptions {
    /// The options of the Git adapter, when `--repo` is given; `cache` is where fetched objects go.
    pub fn git(&self, cache: PathBuf) -> Option<git::Options> {
        self.repo.as_ref().map(|url| self.git.options(url.clone(), cache))
    }

    /// The directory for fetched objects, when one was asked for.
    pub fn cache_dir(&self) -> Option<&PathBuf> {
        self.git.cache_dir.as_ref()
    }

    /// The directory of a larger repository that is the environment repository, when one was given.
    pub fn path(&self) -> Option<&str> {
        self.git.path.as_deref()
    }

    /// The local repository, of which the environment repository is the directory `path`.
    pub fn with_local(mut self, repository: &Path, path: Option<String>) -> Self {
        self.repo = Some(repository.display().to_string());
        self.git.path = self.git.path.or(path);
        self
    }

    /// The same for a person's own commit: unless another author is named, it is whom Git takes for one in `folder`; and
    /// it is signed with the SSH key that Git would sign it with.
    ///
    /// # Errors
    /// When Git knows none.
    pub fn as_person(mut self, folder: &Path) -> Result<Self, Problem> {
        let git = &mut self.git;
        if (git.author_name.as_str(), git.author_email.as_str()) == AUTHOR {
            let person = git::person(folder).ok_or_else(|| {
                Problem::new(Category::Git, "it is not known in whose name to commit")
                    .hint("give --author-name and --author-email, or set `git config user.name` and `user.email`")
            })?;
            (git.author_name, git.author_email) = (person.name, person.email);
        }
        if git.signing_key_file.is_none()
            && let git::Signing::SshKey(key) = git::signing(folder)
        {
            git.signing_key_file = Some(key);
        }
        Ok(self)
    }

    /// Whether commits are signed.
    pub fn signs(&self) -> bool {
        self.git.signing_key_file.is_some()
    }

    /// A local repository, everything else by default.
    pub fn of_local(repository: &Path) -> Self {
        let git = GitOptions {
            branch: Some("main".to_owned()),
            path: None,
            git_username: None,
            git_password_file: None,
            git_ca_file: None,
            git_proxy: None,
            git_proxy_login_file: None,
            ssh_key_file: None,
            known_hosts_file: None,
            cache_dir: None,
            author_name: AUTHOR.0.to_owned(),
            author_email: AUTHOR.1.to_owned(),
            committer_name: None,
            committer_email: None,
            signing_key_file: None,
            verify_signers: None,
            verify_keyring: None,
        };
        Self { repo: Some(repository.display().to_string()), git }
    }
}

impl GitOptions {
    fn options(&self, url: String, cache: PathBuf) -> git::Options {
        let author = git::Identity { name: self.author_name.clone(), email: self.author_email.clone() };
        let committer = git::Identity {
            name: self.committer_name.clone().unwrap_or_else(|| author.name.clone()),
            email: self.committer_email.clone().unwrap_or_else(|| author.email.clone()),
        };
        git::Options {
            url,
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
            signing_key: self.signing_key_file.clone(),
            trust: git::Trust { signers: self.verify_signers.clone(), keyring: self.verify_keyring.clone() },
            checkout: git::Checkout::default(),
        }
    }
}

/// Where manifests go.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Target")]
pub struct TargetOptions {
    /// `cluster`, or `dir:PATH` for a directory of manifests that Argo CD, Flux or a person applies.
    #[arg(long, value_name = "TARGET", default_value = "cluster")]
    pub target: Target,
    /// The kubeconfig; by default $KUBECONFIG, ~/.kube/config, or the pod's own service account.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The kubeconfig's context; by default its current one.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Tells several larders of one cluster apart: each keeps to its own objects.
    #[arg(long, value_name = "NAME", default_value = "default", value_parser = parse_instance)]
    pub instance: String,
    /// The namespace of the ConfigMap `larder-status`, with what the last pass came to; by default the pod's own or the
    /// kubeconfig's.
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
    /// A docker config.json with credentials for images that name no pull secret.
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
    /// The forge's address, as a browser has it; by default GitHub's or GitLab's own.
    #[arg(long, value_name = "URL", requires = "forge")]
    pub forge_url: Option<String>,
    /// The repository at the forge: owner/name.
    #[arg(long, value_name = "OWNER/NAME", requires = "forge")]
    pub forge_repo: Option<String>,
    /// A file with a token for the forge. It is re-read at each use, so that it can be rotated.
    #[arg(long, value_name = "FILE", requires = "forge")]
    pub forge_token_file: Option<PathBuf>,
    /// A file of certificates to be trusted in addition to the system's.
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
    /// Take webhooks here, for example 0.0.0.0:8081: POST /hooks/github, gitlab, gitea, registry, harbor, quay/SECRET,
    /// dockerhub/SECRET or ghcr.
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        env = "LARDER_WEBHOOK_LISTEN",
        conflicts_with = "once",
        requires = "webhook_secret_file"
    )]
    pub webhook_listen: Option<SocketAddr>,
    /// A file with the secret that senders of webhooks know; several lines are several secrets, any of which is good. It
    /// is re-read at each use, so that it can be rotated.
    #[arg(long, value_name = "FILE", env = "LARDER_WEBHOOK_SECRET_FILE", requires = "webhook_listen")]
    pub webhook_secret_file: Option<PathBuf>,
}

/// How data is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// Logs go to standard error.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Logs")]
pub struct LogOptions {
    /// What is logged: a level, or `target=level,…`; by default `info` of a controller and `warn` of all other verbs.
    #[arg(long, global = true, value_name = "FILTER", env = "LARDER_LOG")]
    pub log: Option<String>,
    /// The form of the logs.
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
        // A second subscriber (tests that call a verb twice in a process) is no harm.
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
