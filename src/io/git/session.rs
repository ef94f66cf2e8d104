//! One conversation with a repository over Git's protocol.

use std::time::Duration;

use gix::protocol::{Handshake, handshake, handshake::Ref};
use gix_transport::{
    Protocol, Service,
    client::{Account, blocking_io::Transport},
};

use super::{
    GitError, Options, PushError, address::Address, process, process::Process, redact, redact::Redactor, remote_error,
};

/// How larder names itself to a remote.
pub(super) const AGENT: &str = concat!("larder/", env!("CARGO_PKG_VERSION"));

/// How long it takes until what is refused with a login is tried once more. Forges need a moment to know a new token, and a
/// mounted Secret a moment to hold it.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// A conversation after its handshake. Ends when it is dropped.
pub(super) struct Session {
    /// What is spoken over; goes first, so that a program sees the end of its input.
    pub(super) transport: Box<dyn Transport + Send>,
    /// What the remote said of itself; with an old protocol its references too.
    pub(super) handshake: Handshake,
    process: Option<Process>,
    remote: String,
    redactor: Redactor,
}

impl Session {
    /// Connects and shakes hands.
    ///
    /// # Errors
    /// Everything that [`GitError`] knows of remotes.
    pub(super) fn open(options: &Options, address: &Address, service: Service) -> Result<Self, GitError> {
        let remote = options.remote();
        let version = if service == Service::UploadPack { Protocol::V2 } else { Protocol::V1 };
        let mut redactor = Redactor::default();
        let (transport, process) = match address {
            Address::Local(folder) => {
                let (transport, process) = process::receive_pack(folder, options.checkout)?;
                (transport, Some(process))
            }
            Address::Ssh { user, host, port, path } => {
                let place = (user.as_deref(), host.as_str(), *port, path.as_str());
                let (transport, process) = process::ssh(&remote, place, &options.credentials, service, version)?;
                (transport, Some(process))
            }
            Address::Http { url, user, private } => {
                let login = options.credentials.login(&remote, user.as_deref())?;
                let exposed = !private || (url.scheme == gix::url::Scheme::Http && !options.network.stays_here());
                if login.is_some() && exposed {
                    return Err(GitError::Address {
                        address: remote,
                        problem: "would send the credentials unencrypted",
                        hint: "use https, or leave the credentials away",
                    });
                }
                let (mut transport, secrets) = options.network.transport(url, version)?;
                redactor = secrets;
                if let Some(login) = login {
                    redactor = redactor.and(login.redactor());
                    let identity =
                        Account { username: login.user, password: login.password, oauth_refresh_token: None };
                    // Sent at once instead of after a 401, which saves a round trip at each poll.
                    if let Err(error) = transport.set_identity(identity) {
                        return Err(remote_error::classify(&remote, &redactor, &error, ""));
                    }
                }
                (transport, None)
            }
        };
        let mut session = Self { transport, handshake: Handshake::default(), process, remote, redactor };
        let nobody = |_| Ok(None);
        match handshake(&mut session.transport, service, nobody, Vec::new(), &mut gix::progress::Discard) {
            Ok(handshake) => session.handshake = handshake,
            Err(error) => {
                let error = session.fail(&error);
                return Err(offered(options, address, service, error));
            }
        }
        session.check_format()?;
        Ok(session)
    }

    /// Only SHA-1 is read.
    fn check_format(&self) -> Result<(), GitError> {
        let format = self.handshake.capabilities.capability("object-format");
        match format.as_ref().and_then(gix_transport::client::capabilities::Capability::value).map(ToString::to_string)
        {
            Some(format) if format != "sha1" => {
                Err(GitError::UnsupportedObjectFormat { remote: self.remote.clone(), format })
            }
            _ => Ok(()),
        }
    }

    /// The references that an old protocol sends unasked.
    pub(super) fn advertised(&self) -> Option<&[Ref]> {
        self.handshake.refs.as_deref()
    }

    /// An error, in the words of the remote where there are any.
    pub(super) fn fail(mut self, error: &(dyn std::error::Error + 'static)) -> GitError {
        drop(self.transport);
        let words = self.process.as_mut().map(Process::last_words).unwrap_or_default();
        remote_error::classify(&self.remote, &self.redactor, error, &words)
    }

    /// A text of the remote, fit to be shown.
    pub(super) fn clean(&self, text: &str) -> String {
        self.redactor.clean(text)
    }

    /// Lets the other side finish.
    pub(super) fn close(mut self) {
        drop(self.transport);
        if let Some(process) = &mut self.process {
            process.last_words();
        }
    }
}

/// Adds the key that an ssh host has offered, where ssh has not said so itself, and those that are expected.
fn offered(options: &Options, address: &Address, service: Service, error: GitError) -> GitError {
    match (error, address) {
        (GitError::HostKey { remote, mut detail }, Address::Ssh { user, host, port, path }) => {
            if !detail.contains("SHA256:") {
                let place = (user.as_deref(), host.as_str(), *port, path.as_str());
                let key = process::offered_key(&remote, place, &options.credentials, service);
                detail.extend(key.map(|key| format!("\nThe host offers the key {}", redact::printable(&key))));
            }
            if let Some(file) = &options.credentials.known_hosts {
                let known = process::known_keys(host, *port, file);
                let known = if known.is_empty() { "no key of this host".to_owned() } else { known.join(", ") };
                detail.push_str(&format!("\n{} lists {}", file.display(), redact::printable(&known)));
            }
            GitError::HostKey { remote, detail }
        }
        (error, _) => error,
    }
}

/// An error of a conversation, or one that may be.
pub(super) trait Said {
    /// What the remote said, if that is what it is.
    fn git(&self) -> Option<&GitError>;
}

impl Said for GitError {
    fn git(&self) -> Option<&GitError> {
        Some(self)
    }
}

impl Said for PushError {
    fn git(&self) -> Option<&GitError> {
        match self {
            Self::Git(error) => Some(error),
            Self::Raced { .. } | Self::Refused { .. } | Self::CheckedOut { .. } | Self::Uncommitted { .. } => None,
        }
    }
}

/// Asks a remote something; and once more where it refuses the login (401, 403, or 404, as forges hide what one may not
/// see): by then the file may hold another one.
///
/// # Errors
/// Those of `ask`.
pub(super) fn once_more<T, E: Said>(
    options: &Options,
    address: &Address,
    mut ask: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let has_login = matches!(address, Address::Http { .. }) && options.credentials.password_file.is_some();
    match ask() {
        Err(error)
            if has_login
                && matches!(error.git(), Some(GitError::Authentication { .. } | GitError::NotFound { .. })) =>
        {
            std::thread::sleep(AGAIN_AFTER);
            ask()
        }
        result => result,
    }
}
