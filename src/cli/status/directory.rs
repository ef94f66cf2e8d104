//! `larder status --target dir:PATH`: whether the manifests in a directory are those of the lock. It has no nodes.

use std::path::Path;

use super::{StatusCommand, StatusFormat};
use crate::{
    cli::{CliError, Exit, Printer, json, output::table, session},
    io::directory::Directory,
    model::{
        failure::{Category, Failure, Problem},
        manifest::Owner,
        name::EnvironmentId,
        plan::{Action, Plan},
    },
    pipeline::{compare, render_locked},
    stages::{load::Environments, render},
};

/// What the directory has of an environment.
enum State<'a> {
    /// All that the lock leads to.
    Applied,
    /// Something else, or nothing.
    NotApplied,
    Suspended,
    Failed(&'a Failure),
}

impl StatusCommand {
    pub(super) async fn of_directory(&self, path: &Path, printer: &mut Printer) -> Result<Exit, CliError> {
        if self.wait {
            return Err(Problem::new(Category::Io, "a directory of manifests has no nodes to wait for")
                .hint("leave --wait out, or --target")
                .into());
        }
        let source = session::source(&self.source).await?;
        let environments = session::load(&source)?;
        session::must_be_known(&self.environments, &environments)?;
        let options = render::Options { instance: self.target.instance.clone() };
        let change = session::locked(&environments);
        let manifests = render_locked(&environments, &change, &options);
        let directory = Directory::new(path, self.target.instance.clone());
        let plan = compare(&directory, &environments, &change, manifests, &session::revision(&source)).await?;
        let shown: Vec<_> = environments
            .environments
            .keys()
            .filter(|id| self.concerns(id))
            .map(|id| (id, state(id, &environments, &plan)))
            .collect();
        match self.output {
            StatusFormat::Json => printer.document(&document(&shown)),
            StatusFormat::Text | StatusFormat::Wide => print(printer, &shown),
        }
        Ok(Exit::Success)
    }
}

fn state<'a>(id: &EnvironmentId, environments: &'a Environments, plan: &'a Plan) -> State<'a> {
    let owner = Owner::Environment(id.clone());
    let differs = || plan.changes.iter().any(|change| change.owner == owner && change.action != Action::Unchanged);
    match (environments.environments.get(id), environments.lock.get(id), plan.failures.get(&owner)) {
        (Some(Err(failure)), ..) | (_, Some(Err(failure)), _) | (_, _, Some(failure)) => State::Failed(failure),
        (Some(Ok(environment)), ..) if environment.suspend => State::Suspended,
        _ if differs() => State::NotApplied,
        _ => State::Applied,
    }
}

fn print(printer: &mut Printer, shown: &[(&EnvironmentId, State<'_>)]) {
    let word = |state: &State<'_>| match state {
        State::Applied => "Applied",
        State::NotApplied => "NotApplied",
        State::Suspended => "Suspended",
        State::Failed(_) => "Failed",
    };
    let rows: Vec<_> = shown.iter().map(|(id, state)| vec![id.to_string(), word(state).to_owned()]).collect();
    printer.text(&table(&["ENVIRONMENT", "STATE"], &rows));
    for (_, state) in shown {
        if let State::Failed(failure) = state {
            printer.failure(failure);
        }
    }
}

fn document(shown: &[(&EnvironmentId, State<'_>)]) -> json::directory::DirectoryStatus {
    let environment = |(id, state): &(&EnvironmentId, State<'_>)| json::directory::Environment {
        environment: id.to_string(),
        state: match state {
            State::Applied => json::directory::State::Applied,
            State::NotApplied => json::directory::State::NotApplied,
            State::Suspended => json::directory::State::Suspended,
            State::Failed(_) => json::directory::State::Failed,
        },
        problems: match state {
            State::Failed(failure) => json::Problem::of(id, failure),
            _ => Vec::new(),
        },
    };
    json::directory::DirectoryStatus { environments: shown.iter().map(environment).collect() }
}
