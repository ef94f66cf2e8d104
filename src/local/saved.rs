//! Files that are saved and not committed: what is wrong with them, and what would change if they were committed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use crate::{
    io::{folder, git::CommitId, repository::Repository},
    model::{
        failure::{Category, Failure, Problem},
        snapshot::{Entry, Snapshot},
    },
    pipeline::today,
    stages::{
        changed, load,
        lock::rename,
        render,
        review::{self, Registries, Review, Side, text},
    },
};

/// Editors write a file in several steps.
const SETTLE: Duration = Duration::from_millis(100);

/// The lock is written by larder, so that of the commit counts, whatever a work tree holds.
const LOCK: &str = "lock/";

/// Looks at the files of a work tree.
pub(super) struct Saved {
    repository: Arc<Repository>,
    render: render::Options,
    /// What was told last.
    told: Told,
}

/// What was told last.
#[derive(PartialEq, Eq, Default)]
enum Told {
    #[default]
    Nothing,
    /// These files on that commit.
    Saved(CommitId, BTreeMap<String, Entry>),
}

impl Saved {
    pub(super) fn new(repository: Arc<Repository>, render: render::Options) -> Self {
        Self { repository, render, told: Told::Nothing }
    }

    /// Compares the files with the branch's tip, and logs what differs, once.
    pub(super) async fn look(&mut self) {
        tokio::time::sleep(SETTLE).await;
        if let Err(problem) = self.try_look().await {
            tracing::debug!(%problem, "the saved files are not checked");
        }
    }

    async fn try_look(&mut self) -> Result<(), Problem> {
        let Some(root) = self.repository.folders().await.map_err(Problem::from)?.and_then(|folders| folders.work_tree)
        else {
            return Ok(());
        };
        let tip = self.repository.commit().await?;
        let committed = self.repository.fetch(&tip).await.map_err(Problem::from)?;
        let saved = tokio::task::spawn_blocking(move || folder::snapshot(&root)).await;
        let mut saved = saved.map_err(|error| Problem::new(Category::Io, error.to_string()))??;
        saved.files.retain(|path, _| !path.starts_with(LOCK));
        let lock = committed.files.iter().filter(|(path, _)| path.starts_with(LOCK));
        saved.files.extend(lock.map(|(path, entry)| (path.clone(), entry.clone())));
        if saved.files == committed.files {
            if self.told != Told::Nothing {
                tracing::info!(commit = %tip, "the saved files are those of the commit");
                self.told = Told::Nothing;
            }
            return Ok(());
        }
        let now = Told::Saved(tip, saved.files.clone());
        if now != self.told {
            tell(&tip, &changed::paths(&committed, &saved), &compare(&committed, &saved, &self.render));
            self.told = now;
        }
        Ok(())
    }
}

fn compare(committed: &Snapshot, saved: &Snapshot, options: &render::Options) -> Review {
    let read = |snapshot| -> Result<Side, Failure> {
        let loaded = load::load(snapshot)?;
        let renames = rename::between(committed, snapshot, &loaded.environments, &loaded.lock);
        Ok(Side::new(loaded, &Registries::NotAsked, options, today(), renames))
    };
    let names = ("the commit", "the saved files");
    match read(saved) {
        Ok(saved) => review::review(read(committed).ok().as_ref(), &saved, names),
        Err(failure) => review::unreadable(&failure, names),
    }
}

fn tell(tip: &CommitId, files: &BTreeSet<String>, review: &Review) {
    let files =
        files.iter().take(5).cloned().collect::<Vec<_>>().join(", ") + if files.len() > 5 { ", …" } else { "" };
    tracing::info!(commit = %tip, files, "saved, not committed: nothing of it is applied");
    for line in text::lines(review) {
        tracing::info!("saved: {line}");
    }
    for problem in &review.problems {
        tracing::warn!(category = problem.category.as_str(), "saved: {problem}");
    }
    if let Some(blocked) = &review.blocked {
        tracing::warn!(category = blocked.problem.category.as_str(), "saved: {}", blocked.problem);
    }
    tracing::info!("saved: {}", text::summary(review));
}
