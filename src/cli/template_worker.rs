//! The process in which a repository's own templates run, and the side that asks it.

use std::{
    collections::BTreeMap,
    io::{self, BufRead as _, Write as _},
    process::ExitCode,
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    io::worker::{Worker, WorkerError, limit_memory, limit_time},
    stages::render::{Process, Refusal, Sandbox, Sources, isolate},
};

/// The one argument of such a process. It is not a command for people.
const ARGUMENT: &str = "template-worker";

/// Memory of such a process in bytes: the largest output several times over, and little beside the limit of a pod.
const MEMORY: u64 = 96 << 20;

/// Seconds of processor time for one rendering. A usual one takes a millisecond.
const SECONDS: u64 = 2;

/// One rendering.
#[derive(Serialize, Deserialize)]
struct Job {
    template: String,
    context: Value,
}

/// Has templates of repositories run in processes of their own.
pub fn install() {
    isolate(|sources| {
        let sources = sources.iter().map(|(name, text)| (name.clone(), text.to_string())).collect();
        Box::new(Apart { sources, worker: None, ended: BTreeMap::new() })
    });
}

/// Answers on standard input and output, if this process was started for that.
pub fn serve() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_none_or(|argument| argument != ARGUMENT) || arguments.next().is_some() {
        return None;
    }
    Some(if answer().is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn answer() -> io::Result<()> {
    limit_memory(MEMORY)?;
    let mut lines = io::stdin().lock().lines();
    let Some(sources) = lines.next() else { return Ok(()) };
    let sources: BTreeMap<String, String> = serde_json::from_str(&sources?)?;
    let sources: Sources = sources.into_iter().map(|(name, text)| (name, text.into())).collect();
    let sandbox = Sandbox::new(Arc::new(sources));
    let mut out = io::stdout().lock();
    for line in lines {
        let Job { template, context } = serde_json::from_str(&line?)?;
        limit_time(SECONDS)?;
        serde_json::to_writer(&mut out, &sandbox.render(&template, &context))?;
        out.write_all(b"\n")?;
        out.flush()?;
    }
    Ok(())
}

/// Templates whose process is started when they are first rendered.
struct Apart {
    sources: BTreeMap<String, String>,
    worker: Option<Worker>,
    /// What ended a process once is not tried again for each environment.
    ended: BTreeMap<String, Refusal>,
}

impl Process for Apart {
    fn render(&mut self, template: &str, context: &Value) -> Result<String, Refusal> {
        if let Some(refusal) = self.ended.get(template) {
            return Err(refusal.clone());
        }
        let job = Job { template: template.to_owned(), context: context.clone() };
        self.ask(&job).unwrap_or_else(|error| {
            self.worker = None;
            let refusal = refusal(template, &error);
            if !matches!(error, WorkerError::Io(_)) {
                self.ended.insert(template.to_owned(), refusal.clone());
            }
            Err(refusal)
        })
    }
}

impl Apart {
    fn ask(&mut self, job: &Job) -> Result<Result<String, Refusal>, WorkerError> {
        let json = |value: serde_json::Result<String>| value.map_err(|error| WorkerError::Io(error.into()));
        let worker = match &mut self.worker {
            Some(worker) => worker,
            None => {
                let worker = self.worker.insert(Worker::start(ARGUMENT)?);
                worker.tell(&json(serde_json::to_string(&self.sources))?)?;
                worker
            }
        };
        let answer = worker.ask(&json(serde_json::to_string(job))?)?;
        serde_json::from_str(&answer).map_err(|error| WorkerError::Io(error.into()))
    }
}

fn refusal(template: &str, error: &WorkerError) -> Refusal {
    let (message, hint) = match error {
        WorkerError::Io(error) => (
            format!("the template was not rendered: {error}"),
            "larder starts a process for templates; see why it cannot",
        ),
        error => (
            format!("the template does not render: {error}"),
            "a template may not loop this often, nest values this deep or build a text this large",
        ),
    };
    Refusal { hint: Some(hint.to_owned()), ..Refusal::of(template, message) }
}
