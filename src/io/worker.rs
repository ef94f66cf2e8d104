//! A process of this very program that answers lines, within limits on memory and time that the kernel keeps.

use std::{
    io::{self, BufRead, BufReader, Write as _},
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use rustix::{
    process::{Resource, Rlimit, getrlimit, setrlimit},
    time::{ClockId, clock_gettime},
};

/// The signal of a process whose time is up. Source: signal(7).
const SIGXCPU: i32 = 24;

/// Why a worker does not answer any more.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// It cannot be started or spoken to.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Its processor time was used up.
    #[error("it takes too long")]
    Time,
    /// It needed more memory, or more stack, than it may.
    #[error("it needs too much memory, or nests too deeply")]
    Memory,
}

/// A process that answers each line with a line. It ends with this value.
pub struct Worker {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Worker {
    /// Starts this program with one argument and without any of its environment, which may hold secrets.
    ///
    /// # Errors
    /// When no process can be started.
    pub fn start(argument: &str) -> Result<Self, WorkerError> {
        let mut command = Command::new(this_program()?);
        command.arg(argument).env_clear().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(requests), Some(answers)) => Ok(Self { child, requests, answers: BufReader::new(answers) }),
            _ => Err(io::Error::from(io::ErrorKind::BrokenPipe).into()),
        }
    }

    /// Sends a line, without its end.
    ///
    /// # Errors
    /// When the worker has ended.
    pub fn tell(&mut self, line: &str) -> Result<(), WorkerError> {
        let sent = self.requests.write_all(format!("{line}\n").as_bytes()).and_then(|()| self.requests.flush());
        sent.map_err(|error| self.ended(error))
    }

    /// Sends a line and waits for the answer.
    ///
    /// # Errors
    /// When the worker has ended, as it does at its limits.
    pub fn ask(&mut self, line: &str) -> Result<String, WorkerError> {
        self.tell(line)?;
        let mut answer = String::new();
        match self.answers.read_line(&mut answer) {
            Ok(_) if answer.ends_with('\n') => Ok(answer),
            Ok(_) => Err(self.ended(io::ErrorKind::UnexpectedEof.into())),
            Err(error) => Err(self.ended(error)),
        }
    }

    fn ended(&mut self, error: io::Error) -> WorkerError {
        let _ = self.child.kill();
        match self.child.wait().map(|status| status.signal()) {
            Ok(Some(SIGXCPU)) => WorkerError::Time,
            Ok(Some(_)) => WorkerError::Memory,
            _ => error.into(),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Also after its file was replaced, as by an update.
fn this_program() -> io::Result<PathBuf> {
    let running = Path::new("/proc/self/exe");
    if running.exists() { Ok(running.to_owned()) } else { std::env::current_exe() }
}

/// Takes from this process all memory beyond so many bytes, and the right to write its memory to a file.
///
/// # Errors
/// When the kernel does not take the limit.
pub fn limit_memory(bytes: u64) -> io::Result<()> {
    let limit = |bytes| Rlimit { current: Some(bytes), maximum: Some(bytes) };
    setrlimit(Resource::Core, limit(0))?;
    setrlimit(Resource::Data, limit(bytes))?;
    Ok(())
}

/// Ends this process once it has used so many more seconds of processor time. Replaces what was allowed before.
///
/// # Errors
/// When the kernel does not take the limit.
pub fn limit_time(seconds: u64) -> io::Result<()> {
    let used = u64::try_from(clock_gettime(ClockId::ProcessCPUTime).tv_sec).unwrap_or_default();
    let maximum = getrlimit(Resource::Cpu).maximum;
    setrlimit(Resource::Cpu, Rlimit { current: Some(used + seconds + 1), maximum })?;
    Ok(())
}
