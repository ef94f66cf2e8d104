//! One conversation with a repository over Git's protocol.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use gix::protocol::{Handshake, handshake, handshake::Ref};
use gix_transport::{
    Protocol, Service,
    client::{
        Account, TransportWithoutIO as _,
        blocking_io::{Transport, http},
    },
};

use super::{GitError, Options, address::Address, process, process::Process, redact::Redactor, remote_error};

/// How larder names itself to a remote.
pub(super) const AGENT: &str = concat!("larder/", env!("CARGO_PKG_VERSION"));

/// How long an HTTP server may be silent, before its answer and within it. How long all takes is not bounded (E18).
const PATIENCE: Duration = Duration::from_secs(120);

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
                if login.is_some() && !private {
                    return Err(GitError::Address {
                        address: remote,
                        problem: "would send the credentials unencrypted",
                        hint: "use https, or leave the credentials away",
                    });
                }
                let mut transport = http_transport(url, version);
                if let Some(login) = login {
                    redactor = login.redactor();
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
            Err(error) => return Err(session.fail(&error)),
        }
        session.check_format()?;
        Ok(session)
    }

    /// Only SHA-1 is read. E21
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

/// A transport over HTTP. Certificates are only loaded where there is TLS.
fn http_transport(url: &gix::Url, version: Protocol) -> Box<dyn Transport + Send> {
    let plain = url.scheme == gix::url::Scheme::Http;
    // Does nothing when the program has chosen one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut transport = http::connect::<http::reqwest::Remote>(url.clone(), version, false);
    let backend = http::reqwest::Options {
        configure_client: Some(Box::new(move |builder| {
            let builder = builder.timeout(PATIENCE);
            Ok(if plain { builder.tls_certs_only([]) } else { builder })
        })),
        configure_request: None,
    };
    let options = http::Options { backend: Some(Arc::new(Mutex::new(backend))), ..http::Options::default() };
    // Cannot fail: it only stores the options.
    let _ = transport.configure(&options);
    Box::new(transport)
}
