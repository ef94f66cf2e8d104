//! `larder lock`: resolves references and writes the lockfiles of a directory, before a commit.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    sync::Arc,
    time::Duration,
};

use clap::Args;
use serde::Serialize;

use super::{CliError, Exit, Printer, session};
use crate::{
    config::{OutputFormat, RegistryOptions, SourceOptions, TargetOptions},
    io::{git::CommitId, links, repository::Repository},
    model::{
        failure::{Category, Failure, Problem},
        lock::{HoldChange, LockChange, Move, Rename},
        name::EnvironmentId,
        resolution::{self, Resolution},
        snapshot::Snapshot,
        text::plural,
    },
    pipeline::{ask_past, find_renames, today},
    stages::{
        load::{self, Environments},
        lock::{
            self, Inputs, holds, past,
            rename::{self, Renames},
            verdict::{self, Guards, Steadiness},
        },
        resolve::{self, Refresh},
        review,
    },
};

/// Resolve tags to digests and update the lockfiles
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  larder lock                  resolve everything and write lock/
  larder lock --missing        resolve only what is not locked
  larder lock --check          show what would change without writing
  larder lock --check --changed-from origin/main   only what a branch changes; a required check
  larder lock --accept-earlier accept tags that moved back, too

Pull secrets come from the cluster if there is a kubeconfig, otherwise from --registry-config.
Exit code 0: done. 1: something could not be resolved. 2: with --check, there are changes.")]
pub struct Lock {
    /// Show what would change without writing.
    #[arg(long, visible_alias = "dry-run")]
    check: bool,
    /// Check only environments that differ from this revision: by their file, their lockfile or how their images are
    /// requested.
    #[arg(long, value_name = "REV", requires = "check")]
    changed_from: Option<String>,
    /// Resolve only images without a lock entry for their reference.
    #[arg(long)]
    missing: bool,
    /// Accept a tag moving back to a digest it had before. By default this is reported and the current lock is kept; the
    /// controller accepts it when the registry gives the same answer after a refresh.
    #[arg(long)]
    accept_earlier: bool,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
    #[command(flatten)]
    source: SourceOptions,
    #[command(flatten)]
    target: TargetOptions,
    #[command(flatten)]
    registry: RegistryOptions,
}

#[derive(Serialize)]
struct Results<'a> {
    moves: &'a [Move],
    holds: &'a [HoldChange],
    renames: &'a [Rename],
    waiting: Vec<&'a Problem>,
    files: Vec<&'a String>,
    problems: Vec<&'a Problem>,
}

impl Lock {
    pub(super) async fn run(self, printer: &mut Printer) -> Result<Exit, CliError> {
        if self.source.repo.is_some() && !self.check {
            return Err(Problem::new(Category::Git, "`lock` writes into a directory, not into a repository")
                .hint("leave --repo out, add --check, or let `larder run --repo URL --once` commit the lock")
                .into());
        }
        let source = session::source(&self.source).await?;
        let environments = session::load(&source)?;
        let settings = &environments.settings;
        let refresh = if self.missing { Refresh::Missing } else { Refresh::All };
        let due = BTreeMap::new();
        let checked = self.checked(&environments).await?;
        let in_force = holds::in_force(&environments.environments, &environments.lock, today());
        let asked = environments.environments.iter().filter(|(id, _)| checked.contains(id));
        let asked = asked.map(|(id, environment)| (id.clone(), environment.clone())).collect();
        let wanted = resolve::wanted(&asked, settings, &in_force, &due, Duration::ZERO, refresh);
        let resolution = session::resolve(wanted, settings, &self.target, &self.registry).await?;
        let mut change = self.relock(&source.snapshot, &environments, &resolution).await;
        lock::warn(&environments.environments, settings, &resolution::warnings(&resolution), &mut change);
        change.retain(&checked);
        if let (Some(root), false) = (&source.root, self.check) {
            write(root, &change)?;
        }
        let mut exit = match checked.is_empty() {
            true => Exit::Success,
            false => session::report_broken(printer, &environments, &checked.into_iter().collect::<Vec<_>>()),
        };
        let problems: Vec<&Problem> = change.problems.values().flatten().collect();
        if !problems.is_empty() {
            exit = Exit::Failure;
        }
        match self.output {
            OutputFormat::Json => {
                printer.json(&Results {
                    moves: &change.moves,
                    holds: &change.holds,
                    renames: &change.renames,
                    waiting: change.waiting.iter().map(|waiting| &waiting.note).collect(),
                    files: change.files.keys().collect(),
                    problems,
                });
            }
            OutputFormat::Text => {
                problems.iter().for_each(|problem| printer.problem(problem));
                for waiting in &change.waiting {
                    printer.remark(&waiting.environment.to_string(), &waiting.note);
                }
                change.renames.iter().for_each(|rename| printer.line(&lock::describe_rename(rename)));
                change.moves.iter().for_each(|moved| printer.line(&lock::describe(moved)));
                change.holds.iter().for_each(|hold| printer.line(&lock::describe_hold(hold)));
                let (images, files) = (plural(change.moves.len(), "image"), plural(change.files.len(), "lockfile"));
                let mood = if self.check { "would be " } else { "" };
                printer.line(&format!("{images} {mood}updated, {files} {mood}written"));
            }
        }
        Ok(if exit == Exit::Success && self.check && !change.files.is_empty() { Exit::Changes } else { exit })
    }
}

impl Lock {
    /// The environments that are checked or locked.
    async fn checked(&self, environments: &Environments) -> Result<BTreeSet<EnvironmentId>, CliError> {
        let Some(revision) = &self.changed_from else {
            return Ok(environments.environments.keys().chain(environments.lock.keys()).cloned().collect());
        };
        let former = session::source_at(&self.source, revision).await?;
        // Where `larder.yaml` could not be read, no environment is known to be the same.
        Ok(review::differing(load::load(&former.snapshot).ok().as_ref(), environments))
    }

    /// The new lock. Where the directory is in a Git repository, its history tells what a person reverted or renamed.
    async fn relock(&self, snapshot: &Snapshot, environments: &Environments, resolution: &Resolution) -> LockChange {
        let Environments { environments: files, settings, lock: old, .. } = environments;
        let mut renames = Renames::default();
        if !rename::candidates(files, old).is_empty()
            && let Some(History { repository, commit, .. }) = self.history().await
        {
            renames = find_renames(&repository, &commit, snapshot, environments).await;
        }
        let (guards, renames, today) = (Guards::default(), &renames, today());
        let inputs =
            Inputs { environments: files, settings, lock: old, asked: old, resolution, guards, renames, today };
        let change = lock::lock(&inputs);
        let questions = past::questions(files, old, None, &change);
        if questions.is_empty() {
            return change;
        }
        let read = match self.history().await {
            Some(History { repository, commit, .. }) => Some(ask_past(&repository, &commit, &questions, old).await),
            None => None,
        };
        let past = read.as_ref().map_or(verdict::History::Irrelevant, verdict::History::from);
        let steadiness = Steadiness::new();
        let guards = Guards { past, steadiness: (!self.accept_earlier).then_some(&steadiness) };
        lock::lock(&Inputs { guards, ..inputs })
    }

    /// None where there is no repository, or none with a commit.
    async fn history(&self) -> Option<History> {
        let (repository, cache) = session::repository(&session::with_repository(&self.source).ok()?).ok()?;
        let commit = repository.commit().await.ok()?;
        Some(History { repository, commit, _cache: cache })
    }
}

/// A repository, up to a commit.
struct History {
    repository: Arc<Repository>,
    commit: CommitId,
    /// Removes what was fetched.
    _cache: Option<tempfile::TempDir>,
}

/// Writes lockfiles, each at once: a reader never sees half of one.
fn write(root: &Path, change: &LockChange) -> Result<(), CliError> {
    let links = change.files.keys().filter_map(|path| links::link_below(root, &root.join(path)));
    let refused: Vec<Problem> = links.map(|link| refuse(&link)).collect();
    if let Some(failure) = Failure::of(refused) {
        return Err(failure.into());
    }
    for (path, bytes) in &change.files {
        let path = root.join(path);
        let result = match bytes {
            Some(bytes) => {
                let folder = path.parent().unwrap_or(root);
                fs::create_dir_all(folder).and_then(|()| {
                    let file = tempfile::NamedTempFile::new_in(folder)?;
                    fs::write(file.path(), bytes)?;
                    set_readable(file.path())?;
                    file.persist(&path).map_err(|error| error.error)?;
                    Ok(())
                })
            }
            None => fs::remove_file(&path),
        };
        result.map_err(|error| CliError::io(path.display(), &error))?;
    }
    Ok(())
}

/// As `run` says it of a commit: a link of a person is neither replaced nor followed to what is elsewhere.
fn refuse(link: &Path) -> Problem {
    let message = format!("{} is a symbolic link, so nothing can be written there or below it", link.display());
    Problem::new(Category::Io, message).hint("only regular files and directories are allowed there")
}

/// A temporary file is for its owner alone; a lockfile is as readable as any other file of a repository.
fn set_readable(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::{LockChange, write};

    #[test]
    fn links_are_neither_followed_nor_replaced() {
        for (link, target) in [("lock", "../out"), ("lock/a", "../../out"), ("lock/a/x.yaml", "../../../out/x.yaml")] {
            let folder = tempfile::tempdir().unwrap();
            let (root, out) = (folder.path().join("repo"), folder.path().join("out"));
            fs::create_dir_all(root.join(link).parent().unwrap()).unwrap();
            fs::create_dir_all(out.join("a")).unwrap();
            fs::write(out.join("x.yaml"), "theirs").unwrap();
            symlink(target, root.join(link)).unwrap();
            for bytes in [Some(b"ours".to_vec()), None] {
                let files = [("lock/a/x.yaml".to_owned(), bytes), ("lock/b/y.yaml".to_owned(), Some(b"ours".to_vec()))];
                let change = LockChange { files: files.into(), ..LockChange::default() };
                let error = write(&root, &change).unwrap_err();
                assert!(error.0.to_string().contains(&format!("{link} is a symbolic link")), "{}", error.0);
            }
            assert_eq!(fs::read_to_string(out.join("x.yaml")).unwrap(), "theirs");
            assert!(!out.join("a/x.yaml").exists() && !out.join("b").exists() && root.join(link).is_symlink());
        }
    }

    #[test]
    fn lockfiles_are_written_and_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let path = "lock/a/x.yaml";
        let mut change =
            LockChange { files: [(path.to_owned(), Some(b"ours".to_vec()))].into(), ..LockChange::default() };
        write(folder.path(), &change).unwrap();
        assert_eq!(fs::read_to_string(folder.path().join(path)).unwrap(), "ours");
        change.files.insert(path.to_owned(), None);
        write(folder.path(), &change).unwrap();
        assert!(!folder.path().join(path).exists());
    }
}
