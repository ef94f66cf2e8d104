//! When the controller looks because of news, and how long it continues looking for a commit that was announced.
//!
//! A forge may send its webhook before its Git server shows the new commit. So a commit that was announced and is not
//! the tip yet is looked for again, a few times. How often news can make the controller look is bounded.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

use crate::{
    io::git::CommitId,
    model::news::Moved,
    wake::{Pending, Wake},
};

/// When an announced commit is looked for again after a look that did not find it.
const AGAIN: [Duration; 3] = [Duration::from_millis(250), Duration::from_secs(1), Duration::from_secs(4)];

/// Looks that news may cause in quick succession, and how long each of them takes to be allowed again.
const BURST: u32 = 8;
const PERIOD: Duration = Duration::from_millis(500);

/// Tips that are remembered, to know that an announced commit was there already.
const REMEMBERED: usize = 16;

/// News, and what is to be looked for because of them.
pub(super) struct Attention {
    wake: Wake,
    expected: Option<Expected>,
    allowance: Allowance,
    seen: VecDeque<CommitId>,
}

/// Commits that were announced and have not been seen.
struct Expected {
    commits: Vec<CommitId>,
    /// Looks that did not find them.
    looks: usize,
    next: Instant,
}

impl Attention {
    pub(super) fn new(wake: Wake) -> Self {
        Self { wake, expected: None, allowance: Allowance::new(Instant::now()), seen: VecDeque::new() }
    }

    /// Takes the news before a look, so that the look answers all of them. The tags that may have moved are returned.
    pub(super) fn take(&mut self) -> impl IntoIterator<Item = Moved> + use<> {
        let Pending { commits, moved, .. } = self.wake.take();
        let unseen: Vec<CommitId> = commits.iter().filter_map(|commit| commit.parse().ok()).collect();
        if !unseen.is_empty() {
            let expected =
                self.expected.get_or_insert(Expected { commits: Vec::new(), looks: 0, next: Instant::now() });
            expected.commits.extend(unseen);
            expected.looks = 0;
        }
        moved
    }

    /// A look has ended, with this tip where it found one. `own` is the commit that the pass on it came to.
    pub(super) fn looked(&mut self, found: impl IntoIterator<Item = CommitId>, branch: Option<String>) {
        for commit in found {
            self.seen.retain(|seen| *seen != commit);
            self.seen.push_back(commit);
        }
        while self.seen.len() > REMEMBERED {
            self.seen.pop_front();
        }
        if branch.is_some() {
            self.wake.follow(branch);
        }
        let Some(expected) = &mut self.expected else { return };
        expected.commits.retain(|commit| !self.seen.contains(commit));
        match AGAIN.get(expected.looks) {
            Some(wait) if !expected.commits.is_empty() => {
                expected.looks += 1;
                expected.next = Instant::now() + *wait;
            }
            _ => self.expected = None,
        }
    }

    /// Returns when it is time to look because of news. News of registries wait until `gap` has passed.
    pub(super) async fn until_news(&mut self, gap: Option<Instant>) {
        loop {
            let again = self.expected.as_ref().map(|expected| expected.next);
            tokio::select! {
                () = self.wake.until(Pending::concerns_branch) => {}
                () = sleep_until(again) => {}
                () = async {
                    self.wake.until(|pending| !pending.moved.is_empty()).await;
                    sleep_until(Some(gap.unwrap_or_else(Instant::now))).await;
                } => {}
            }
            self.wake.settle().await;
            if !self.is_known_already(again) {
                break;
            }
        }
        tokio::time::sleep_until(self.allowance.next()).await;
        self.allowance.spend(Instant::now());
    }

    /// Whether all that was announced is the commit that we came to last: mostly our own lock commit. It is forgotten.
    fn is_known_already(&mut self, again: Option<Instant>) -> bool {
        if again.is_some_and(|at| at <= Instant::now()) {
            return false;
        }
        let Some(last) = self.seen.back() else { return false };
        let last = last.to_string();
        self.wake.forget_if(|pending| {
            !pending.branch && pending.moved.is_empty() && pending.commits.iter().all(|commit| *commit == last)
        })
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// So many looks at once, and after that one in each period.
struct Allowance {
    /// When all of it is there again.
    full: Instant,
}

impl Allowance {
    fn new(now: Instant) -> Self {
        Self { full: now }
    }

    /// When the next look is allowed.
    fn next(&self) -> Instant {
        self.full.checked_sub(PERIOD * (BURST - 1)).unwrap_or(self.full)
    }

    fn spend(&mut self, now: Instant) {
        self.full = self.full.max(now) + PERIOD;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::news::News;

    fn commit(digit: &str) -> CommitId {
        digit.repeat(40).parse().unwrap()
    }

    fn announce(wake: &Wake, digit: &str) {
        wake.tell(News::Branch { name: Some("main".to_owned()), commit: Some(digit.repeat(40)) });
    }

    #[test]
    fn looks_in_quick_succession_are_bounded() {
        let now = Instant::now();
        let mut allowance = Allowance::new(now);
        for _ in 0..BURST {
            assert!(allowance.next() <= now);
            allowance.spend(now);
        }
        assert_eq!(allowance.next(), now + PERIOD);
        allowance.spend(now + PERIOD);
        assert_eq!(allowance.next(), now + 2 * PERIOD);
        let later = now + PERIOD * 1000;
        allowance.spend(later);
        assert!(allowance.next() <= later, "what was not used is there again, and no more than that");
        (1..BURST).for_each(|_| allowance.spend(later));
        assert_eq!(allowance.next(), later + PERIOD);
    }

    #[test]
    fn an_announced_commit_is_looked_for_a_few_times() {
        let wake = Wake::default();
        let mut attention = Attention::new(wake.clone());
        announce(&wake, "b");
        assert_eq!(attention.take().into_iter().count(), 0);
        for wait in AGAIN {
            let before = Instant::now();
            attention.looked([commit("a")], None);
            let expected = attention.expected.as_ref().unwrap();
            assert!(expected.next >= before + wait);
        }
        attention.looked([commit("a")], None);
        assert!(attention.expected.is_none(), "it is given up");

        // It is there: at the tip, or below a lock commit, or in an earlier look.
        for found in [vec![commit("c")], vec![commit("d"), commit("e")], vec![]] {
            announce(
                &wake,
                if found.is_empty() {
                    "a"
                } else if found.len() == 1 {
                    "c"
                } else {
                    "d"
                },
            );
            let _ = attention.take();
            attention.looked(found, None);
            assert!(attention.expected.is_none());
        }
    }

    #[tokio::test]
    async fn our_own_push_causes_no_look() {
        let wake = Wake::default();
        let mut attention = Attention::new(wake.clone());
        attention.looked([commit("a"), commit("b")], Some("main".to_owned()));
        announce(&wake, "b");
        let news = tokio::spawn(async move {
            attention.until_news(None).await;
            attention
        });
        while !wake.peek().is_empty() {
            tokio::task::yield_now().await;
        }
        assert!(!news.is_finished());
        // Back to an earlier commit: that is news.
        announce(&wake, "a");
        let mut attention = news.await.unwrap();
        assert_eq!(attention.take().into_iter().count(), 0);
        assert!(!wake.follows("other"));
    }
}
