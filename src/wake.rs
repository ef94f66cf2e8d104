//! Where news from outside wait for the controller: webhooks and directory watchers report, the controller takes.
//!
//! News only ever cause a question to the repository or to a registry. They wait as sets, so that a burst is one.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use crate::model::news::{Moved, News};

/// News that come within this time of each other are taken together.
const QUIET: Duration = Duration::from_millis(50);

/// News that never pause are taken after this time.
const LONGEST_BURST: Duration = Duration::from_millis(250);

/// Tags and commits that wait at most. What is beyond is found by the poll and by the references' refresh.
const MOST_TAGS: usize = 1_000;
const MOST_COMMITS: usize = 16;

/// Wakes the controller; clones are the same.
#[derive(Clone, Default)]
pub struct Wake(Arc<Shared>);

#[derive(Default)]
struct Shared {
    pending: Mutex<Pending>,
    bell: Notify,
    /// The branch that the controller follows, when it knows it.
    branch: Mutex<Option<String>>,
}

/// News that nobody has looked after yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// Whether the branch may have moved and nothing is said about where to.
    pub branch: bool,
    /// Commits that the branch is said to be at.
    pub commits: BTreeSet<String>,
    /// Tags that may have moved.
    pub moved: BTreeSet<Moved>,
}

impl Pending {
    /// Whether the branch has to be polled.
    pub fn concerns_branch(&self) -> bool {
        self.branch || !self.commits.is_empty()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        !self.concerns_branch() && self.moved.is_empty()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Wake {
    /// Adds news. Those of a branch that is not followed are not for us.
    pub fn tell(&self, news: News) {
        {
            let mut pending = lock(&self.0.pending);
            match news {
                News::Branch { name: Some(name), .. } if !self.follows(&name) => return,
                News::Branch { commit: Some(commit), .. } if pending.commits.len() < MOST_COMMITS => {
                    pending.commits.insert(commit);
                }
                News::Branch { .. } => pending.branch = true,
                News::Moved(moved) if pending.moved.len() < MOST_TAGS => {
                    pending.moved.insert(moved);
                }
                News::Moved(_) => return,
            }
        }
        self.0.bell.notify_waiters();
    }

    /// Says which branch is followed.
    pub fn follow(&self, branch: Option<String>) {
        *lock(&self.0.branch) = branch;
    }

    /// Whether that branch is followed, as far as it is known.
    pub fn follows(&self, branch: &str) -> bool {
        lock(&self.0.branch).as_deref().is_none_or(|followed| followed == branch)
    }

    /// All news that wait; they wait no more.
    pub fn take(&self) -> Pending {
        std::mem::take(&mut lock(&self.0.pending))
    }

    /// Forgets the news that wait, if they are like that; whether they were.
    pub(crate) fn forget_if(&self, known: impl Fn(&Pending) -> bool) -> bool {
        let mut pending = lock(&self.0.pending);
        let known = known(&pending);
        if known {
            *pending = Pending::default();
        }
        known
    }

    /// What waits, and continues waiting.
    #[cfg(test)]
    pub(crate) fn peek(&self) -> Pending {
        lock(&self.0.pending).clone()
    }

    /// Returns once there are such news.
    pub async fn until(&self, wanted: impl Fn(&Pending) -> bool) {
        loop {
            let rung = self.0.bell.notified();
            if wanted(&lock(&self.0.pending)) {
                return;
            }
            rung.await;
        }
    }

    /// Returns when no more news have come for a moment, or when they never end.
    pub async fn settle(&self) {
        let end = Instant::now() + LONGEST_BURST;
        loop {
            let rung = self.0.bell.notified();
            let quiet = tokio::time::sleep_until((Instant::now() + QUIET).min(end));
            tokio::select! {
                () = quiet => return,
                () = rung => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn branch(name: &str, commit: Option<&str>) -> News {
        News::Branch { name: Some(name.to_owned()), commit: commit.map(str::to_owned) }
    }

    fn moved(tag: &str) -> News {
        News::Moved(Moved::new(None, "a/b", tag).unwrap())
    }

    #[test]
    fn a_burst_is_one_and_other_branches_are_none() {
        let wake = Wake::default();
        for number in 0..100 {
            wake.tell(branch("main", Some("a")));
            wake.tell(moved(&(number % 2).to_string()));
        }
        let pending = wake.take();
        assert!(pending.concerns_branch() && !pending.branch);
        assert_eq!((pending.commits.len(), pending.moved.len()), (1, 2));
        assert!(wake.take().is_empty());

        wake.follow(Some("main".to_owned()));
        wake.tell(branch("other", None));
        assert!(wake.take().is_empty() && !wake.follows("other") && wake.follows("main"));
        wake.tell(News::Branch { name: None, commit: None });
        assert!(wake.take().branch);
    }

    #[test]
    fn what_waits_is_bounded() {
        let wake = Wake::default();
        for number in 0..2 * MOST_TAGS {
            wake.tell(moved(&number.to_string()));
            wake.tell(branch("main", Some(&number.to_string())));
        }
        let pending = wake.take();
        assert_eq!((pending.moved.len(), pending.commits.len()), (MOST_TAGS, MOST_COMMITS));
        assert!(pending.branch, "commits beyond the bound still cause a look");
    }

    #[tokio::test]
    async fn a_waiter_is_woken_by_what_it_waits_for() {
        let wake = Wake::default();
        let waiter = tokio::spawn({
            let wake = wake.clone();
            async move {
                wake.until(|pending| !pending.moved.is_empty()).await;
                wake.settle().await;
                wake.take()
            }
        });
        for number in 0..5 {
            wake.tell(branch("main", None));
            tokio::task::yield_now().await;
            wake.tell(moved(&number.to_string()));
        }
        let pending = waiter.await.unwrap();
        assert_eq!(pending.moved.len(), 5);
        assert!(pending.branch && wake.take().is_empty());
    }
}
