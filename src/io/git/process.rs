//! Git's protocol spoken to a program: `ssh`, or git's own receiver for a repository on this machine.

use std::{
    io::Read as _,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread::JoinHandle,
};

use gix_transport::{
    Protocol, Service,
    client::{
        blocking_io::Transport,
        git::{ConnectMode, blocking_io::Connection},
    },
};

use super::{Checkout, Credentials, GitError};
use crate::model::text::is_unseen;

/// The most bytes of a program's error output that are kept.
const MAX_STDERR: usize = 16 * 1024;

/// Variables that would point git at another repository or another configuration than the one that is meant.
const CLEARED: [&str; 14] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_CEILING_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// User, host, port and path.
type Place<'a> = (Option<&'a str>, &'a str, Option<u16>, &'a str);

/// A running program and what it has written to its error output so far. It is ended when this is dropped.
pub(super) struct Process {
    child: Child,
    stderr: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

/// Starts `ssh` for a repository, never asking anything and never trusting an unknown host.
///
/// # Errors
/// [`GitError::Program`] when there is no `ssh`; [`GitError::Credentials`] for a file name that ssh cannot take.
pub(super) fn ssh(
    remote: &str,
    place: Place<'_>,
    credentials: &Credentials,
    service: Service,
    version: Protocol,
) -> Result<(Box<dyn Transport + Send>, Process), GitError> {
    start(ssh_command(remote, place, credentials, service, version, &[])?, place.3, version)
}

/// The key that an ssh host offers, as ssh itself tells it: `ssh-ed25519 SHA256:…`. None when it cannot be found out.
/// A host that is not trusted gets no further than that.
pub(super) fn offered_key(
    remote: &str,
    place: Place<'_>,
    credentials: &Credentials,
    service: Service,
) -> Option<String> {
    let command = ssh_command(remote, place, credentials, service, Protocol::V1, &["-v"]).ok()?;
    let (transport, mut process) = start(command, place.3, Protocol::V1).ok()?;
    drop(transport);
    let words = process.last_words();
    words.lines().find_map(|line| line.strip_prefix("debug1: Server host key: ")).map(|key| key.trim().to_owned())
}

/// The keys that a known_hosts file lists for a host, as `ssh-keygen` shows them: `ED25519 SHA256:…`.
pub(super) fn known_keys(host: &str, port: Option<u16>, file: &Path) -> Vec<String> {
    let host = port.filter(|port| *port != 22).map_or_else(|| host.to_owned(), |port| format!("[{host}]:{port}"));
    let output = Command::new("ssh-keygen").arg("-l").arg("-f").arg(file).arg("-F").arg(host).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let key = |line: &str| line.split_once(' ').map(|(_, key)| key.trim().to_owned());
    text.lines().filter(|line| !line.starts_with('#')).filter_map(key).collect()
}

/// The call of `ssh` for a repository.
fn ssh_command(
    remote: &str,
    (user, host, port, path): Place<'_>,
    credentials: &Credentials,
    service: Service,
    version: Protocol,
    more: &[&str],
) -> Result<Command, GitError> {
    let mut command = Command::new("ssh");
    command.args(more);
    command.args(["-F", "none", "-T", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes"]);
    command.args(["-o", "ConnectTimeout=20", "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4"]);
    command.args(["-o", "ClearAllForwardings=yes", "-o", "PermitLocalCommand=no", "-o", "UpdateHostKeys=no"]);
    if let Some(file) = &credentials.known_hosts {
        let file = option_value(remote, file)?;
        command.arg("-o").arg(format!("UserKnownHostsFile={file}")).args(["-o", "GlobalKnownHostsFile=none"]);
    }
    if let Some(file) = &credentials.ssh_key {
        let file = option_value(remote, file)?;
        command.args(["-o", "IdentitiesOnly=yes", "-o", "PreferredAuthentications=publickey"]);
        command.arg("-o").arg(format!("IdentityFile={file}"));
    }
    if version == Protocol::V2 {
        command.args(["-o", "SendEnv=GIT_PROTOCOL"]).env("GIT_PROTOCOL", "version=2");
    }
    if let Some(port) = port {
        command.args(["-p", &port.to_string()]);
    }
    command.arg("--").arg(user.map_or_else(|| host.to_owned(), |user| format!("{user}@{host}")));
    command.arg(format!("{} '{}'", service.as_str(), path.replace('\'', r"'\''").replace('!', r"'\!'")));
    Ok(command)
}

/// Starts git's own receiver for a local repository, so that its hooks run as they do for every push.
///
/// # Errors
/// [`GitError::Program`] when there is no `git`.
pub(super) fn receive_pack(
    folder: &Path,
    checkout: Checkout,
) -> Result<(Box<dyn Transport + Send>, Process), GitError> {
    let mut command = Command::new("git");
    if checkout == Checkout::Update {
        command.args(["-c", "receive.denyCurrentBranch=updateInstead"]);
    }
    command.arg("receive-pack").arg(folder);
    start(command, &folder.to_string_lossy(), Protocol::V1)
}

/// A file's name as the value of an ssh option: quoted, as ssh would split it at blanks and expand `%` in it.
fn option_value(remote: &str, file: &Path) -> Result<String, GitError> {
    let text = file.to_str().filter(|text| !text.contains(['"', '\\']) && !text.contains(is_unseen));
    let text = text.ok_or_else(|| GitError::Credentials {
        remote: remote.to_owned(),
        detail: format!("{:?} holds a character that ssh cannot take", file.display()),
    })?;
    Ok(format!("\"{}\"", text.replace('%', "%%")))
}

fn start(
    mut command: Command,
    path: &str,
    version: Protocol,
) -> Result<(Box<dyn Transport + Send>, Process), GitError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let fail = |detail: String| GitError::Program { program: program.clone(), detail };
    for name in CLEARED {
        command.env_remove(name);
    }
    // Messages in English, as some of them are recognized; never a prompt.
    command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env_remove("SSH_ASKPASS").env_remove("GIT_ASKPASS");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| fail(error.to_string()))?;
    let (Some(stdin), Some(stdout), Some(mut errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(fail("its input and output cannot be connected".into()));
    };
    let stderr = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&stderr);
    let reader = std::thread::spawn(move || {
        let mut buffer = [0; 1024];
        while let Ok(count @ 1..) = errors.read(&mut buffer) {
            if let Ok(mut kept) = kept.lock() {
                let room = MAX_STDERR.saturating_sub(kept.len());
                kept.extend_from_slice(&buffer[..count.min(room)]);
            }
        }
    });
    let connection = Connection::new(stdout, stdin, version, path, None::<(&str, _)>, ConnectMode::Process, false);
    Ok((Box::new(connection), Process { child, stderr, reader }))
}

impl Process {
    /// Waits for the program's end, its input being closed already, and gives what it wrote to its error output.
    pub(super) fn last_words(&mut self) -> String {
        // A program that holds on after its peer has gone must not hold up larder.
        wait(|| !matches!(self.child.try_wait(), Ok(None)));
        let _ = self.child.kill();
        let _ = self.child.wait();
        // A process that a hook left behind may keep the pipe open for as long as it likes.
        wait(|| self.reader.is_finished());
        self.stderr.lock().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until something is so, or two seconds are over.
fn wait(mut done: impl FnMut() -> bool) {
    for _ in 0..200 {
        if done() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}
