//! The lock as a proposal: one commit on a branch of larder's own, and one pull request that is kept up to date.

use sha2::{Digest as _, Sha256};

use super::{
    World,
    memory::{Memory, Proposed},
    past,
    push::{Locked, unmoved},
    record,
};
use crate::{
    io::{cluster::Cluster, forge, forge::Forge, git, registry::Credentials},
    model::{digest::Digest, failure::Problem, forge::Proposal, lock::LockChange, resolution::Resolution},
    stages::{
        load::{self, Environments},
        lock,
        review::markdown,
    },
};

/// Proposes what has moved. What is in force, and is rendered, is the lock as the tracked branch has it.
pub(super) async fn propose<C: Cluster, K: Credentials>(
    world: &World<C, K>,
    memory: &mut Memory,
    tip: &git::CommitId,
    environments: Environments,
    resolution: Resolution,
) -> Locked {
    let answers = memory.moved(&resolution, &environments.lock);
    let mut wanted = past::relock(world, memory, tip, &environments, (&environments.lock, &answers)).await;
    let settings = &environments.settings;
    let fingerprint = fingerprint(tip, &wanted);
    let result = match memory.proposed(&fingerprint) {
        Some(known) => Ok(known.place.clone()),
        None => {
            let parent = memory.snapshot(tip).filter(|_| !wanted.files.is_empty());
            let next = parent.and_then(|snapshot| load::load(&record::with_files(&snapshot, &wanted)).ok());
            let digest = next.map(|next| record::digest(&next, memory.recorder()));
            let place = carry_out(world, tip, &settings.lock.branch, &wanted, (&fingerprint, digest.as_ref())).await;
            memory.has_proposed(place.as_ref().ok().map(|place| Proposed { fingerprint, place: place.clone() }));
            place
        }
    };
    let (proposal, problem) = match result {
        Ok(place) => (place, None),
        Err(problem) => {
            tracing::warn!(%problem, "the lock could not be proposed; the former one stays in force");
            (None, Some(problem))
        }
    };
    lock::warn(&environments.environments, &environments.settings, &memory.warnings(), &mut wanted);
    let change = unmoved(&environments, wanted);
    Locked { commit: *tip, lock_commit: None, environments, change, problem, proposal }
}

/// Rebuilds the branch and its pull request, or takes both away when there is nothing to propose. Where the proposal
/// waits, if there is one.
async fn carry_out<C, K>(
    world: &World<C, K>,
    tip: &git::CommitId,
    branch: &str,
    wanted: &LockChange,
    (fingerprint, digest): (&str, Option<&Digest>),
) -> Result<Option<String>, Problem> {
    let base = world.repository.branch().await.unwrap_or_default();
    if wanted.files.is_empty() {
        // Whoever does not know all answers does not know that nothing is left to propose.
        if wanted.problems.is_empty() {
            withdraw(world, branch, &base).await?;
        }
        return Ok(None);
    }
    let message = lock::message(wanted, env!("CARGO_PKG_VERSION"));
    let message = digest.map_or_else(|| message.clone(), |digest| lock::with_manifests(&message, digest));
    match world.repository.rebuild(branch, tip, &wanted.files, &message).await? {
        git::Rebuilt::Nothing => return Ok(None),
        git::Rebuilt::Commit(commit) => tracing::info!(%commit, branch, moved = wanted.moves.len(), "lock proposed"),
        git::Rebuilt::Unchanged(_) => {}
    }
    let Some(forge) = &world.forge else { return Ok(Some(branch.to_owned())) };
    let content = content_of(fingerprint);
    let proposal = Proposal {
        head: branch.to_owned(),
        base,
        title: message.lines().next().unwrap_or_default().to_owned(),
        body: markdown::proposal(wanted, &content, forge.longest_text()),
        fingerprint: content,
    };
    let proposed = forge.propose(&proposal).await?;
    match &proposed {
        forge::Proposed::Opened(url) => tracing::info!(url, "pull request opened"),
        forge::Proposed::Updated(url) => tracing::info!(url, "pull request updated"),
        forge::Proposed::Unchanged(_) => {}
        forge::Proposed::Rejected(url) => tracing::info!(url, "a person closed this very proposal; it is left alone"),
    }
    Ok(Some(proposed.url().to_owned()))
}

async fn withdraw<C, K>(world: &World<C, K>, branch: &str, base: &str) -> Result<(), Problem> {
    let close = async |forge: &Forge| forge.withdraw(branch, base).await;
    let closed = match &world.forge {
        Some(forge) => close(forge).await?,
        None => 0,
    };
    let removed = world.repository.remove_side(branch).await?;
    if removed || closed > 0 {
        tracing::info!(branch, closed, "nothing is left to propose");
    }
    Ok(())
}

/// `<commit> <digest of what is proposed>`.
fn fingerprint(tip: &git::CommitId, wanted: &LockChange) -> String {
    let mut hash = Sha256::new();
    for (path, bytes) in &wanted.files {
        hash.update(path.as_bytes());
        hash.update([0, u8::from(bytes.is_some())]);
        hash.update(bytes.as_deref().unwrap_or_default());
        hash.update([0]);
    }
    // That nothing is known of an image differs from that nothing has moved.
    hash.update([u8::from(wanted.problems.is_empty())]);
    let hex: String = hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("{tip} {hex}")
}

/// The part of a fingerprint that does not depend on the commit, as a hidden line of the pull request.
fn content_of(fingerprint: &str) -> String {
    let content = fingerprint.split(' ').next_back().unwrap_or_default();
    format!("<!-- larder:lock:{content} -->")
}
