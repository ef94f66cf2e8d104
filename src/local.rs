//! A repository on this machine is watched: a commit is acted upon at once, and a saved file is checked at once.
//!
//! Nothing reaches a target that is not committed: what is saved and not committed is only told about in the log.

mod saved;

use std::{sync::Arc, time::Duration};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use self::saved::Saved;
use crate::{
    io::{
        git::Folders,
        repository::Repository,
        watch::{Depth, Place, Watch},
    },
    model::news::News,
    stages::render,
    wake::Wake,
};

/// How often what is watched is compared with what is there. It costs a few `stat` calls.
const COMPARE_EVERY: Duration = Duration::from_secs(2);

/// How long to wait after the system refused to watch.
const AFTER_REFUSAL: Duration = Duration::from_secs(60);

/// Watches the repository until `shutdown`, if it is on this machine: changes of its branches go to `wake`, and changes of
/// its uncommitted files are checked and logged.
pub fn watch(repository: &Arc<Repository>, wake: Wake, render: render::Options, shutdown: &CancellationToken) {
    let (branches, files) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let tell = move || {
        wake.tell(News::Branch { name: None, commit: None });
        std::future::ready(())
    };
    tokio::spawn(follow(repository.clone(), places_of_branches, branches, tell, shutdown.clone()));
    let saved = Arc::new(tokio::sync::Mutex::new(Saved::new(repository.clone(), render)));
    let look = move || {
        let saved = saved.clone();
        async move { saved.lock().await.look().await }
    };
    tokio::spawn(follow(repository.clone(), places_of_files, files, look, shutdown.clone()));
}

/// Where branches are.
fn places_of_branches(folders: &Folders) -> Vec<Place> {
    let refs = Place { folder: folders.common.join("refs/heads"), depth: Depth::All };
    let mut places =
        vec![refs, Place { folder: folders.common.clone(), depth: Depth::Names(&["HEAD", "packed-refs"]) }];
    if folders.git != folders.common {
        places.push(Place { folder: folders.git.clone(), depth: Depth::Names(&["HEAD"]) });
    }
    places
}

/// Where files are that people write.
fn places_of_files(folders: &Folders) -> Vec<Place> {
    let Some(root) = &folders.work_tree else { return Vec::new() };
    let names = &["larder.yaml", "environments", "templates"];
    let below = ["environments", "templates"].map(|name| Place { folder: root.join(name), depth: Depth::All });
    let mut places = vec![Place { folder: root.clone(), depth: Depth::Names(names) }];
    places.extend(below.into_iter().filter(|place| place.folder.is_dir()));
    places
}

/// Calls `tell` after each change of the places.
async fn follow<F: Future<Output = ()> + Send>(
    repository: Arc<Repository>,
    places: fn(&Folders) -> Vec<Place>,
    changed: Arc<Notify>,
    tell: impl Fn() -> F + Send,
    shutdown: CancellationToken,
) {
    let mut watch = Watch::new({
        let changed = changed.clone();
        move || changed.notify_one()
    });
    let mut known: Option<(Folders, Vec<Place>)> = None;
    let mut refused = false;
    loop {
        known = known.filter(|_| watch.is_current());
        let folders = match &known {
            Some((folders, _)) => Ok(Some(folders.clone())),
            None => repository.folders().await,
        };
        let mut wait = COMPARE_EVERY;
        match folders {
            Ok(Some(folders)) => {
                let now = places(&folders);
                if now.is_empty() {
                    return;
                }
                if known.as_ref().is_none_or(|(_, before)| *before != now) {
                    match watch.set(now.clone()) {
                        Ok(()) => refused = false,
                        Err(problem) => {
                            wait = AFTER_REFUSAL;
                            if !std::mem::replace(&mut refused, true) {
                                tracing::warn!(%problem, "the repository is not watched");
                            }
                        }
                    }
                    known = Some((folders, now));
                    // It may have changed before it was watched.
                    tell().await;
                }
            }
            Ok(None) => return,
            // Not there just now, perhaps about to be replaced. The poll tells what is wrong with it.
            Err(_) => {}
        }
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = changed.notified() => tell().await,
            () = tokio::time::sleep(wait) => {}
        }
    }
}
