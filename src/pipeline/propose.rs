//! The lock as a proposal: one commit on a branch of larder's own, and one pull request that is kept up to date.

use sha2::{Digest as _, Sha256};

use super::{
    World,
    locked::{Base, Locked, Locking},
    memory::{Memory, Proposed},
    past, record,
};
use crate::{
    io::{cluster::Cluster, forge, forge::Forge, git, registry::Credentials},
    model::{digest::Digest, failure::Problem, forge::Proposal, lock::LockChange},
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
    mut base: Base,
) -> Locked {
    base.resolution = memory.moved(&base.resolution, &base.environments.lock);
    let mut wanted = past::weigh(world, memory, &base, &base.environments.lock).await;
    let fingerprint = fingerprint(&base.commit, &wanted);
    let result = match memory.proposed(&fingerprint) {
        Some(known) => Ok(known.place.clone()),
        None => {
            let next =
                (!wanted.files.is_empty()).then(|| load::load(&record::with_files(&base.snapshot, &wanted)).ok());
            let manifests = next.flatten().map(|next| record::digest(&next, memory.recorder()));
            let offer = Offer { wanted: &wanted, fingerprint: &fingerprint, manifests };
            let place = carry_out(world, &base, &offer).await;
            memory.has_proposed(place.as_ref().ok().map(|place| Proposed { fingerprint, place: place.clone() }));
            place
        }
    };
    let outcome = match result {
        Ok(Some(place)) => Locking::Proposed(place),
        Ok(None) => Locking::Unchanged,
        Err(problem) => {
            tracing::warn!(%problem, "the lock could not be proposed; the previous one stays in force");
            Locking::Refused(problem)
        }
    };
    let Environments { environments, settings, .. } = &base.environments;
    lock::warn(environments, settings, &memory.warnings(), &mut wanted);
    Locked::unmoved(base.commit, base.environments, wanted, outcome)
}

/// What is proposed.
struct Offer<'a> {
    wanted: &'a LockChange,
    fingerprint: &'a str,
    /// The digest of the manifests that it leads to.
    manifests: Option<Digest>,
}

/// Rebuilds the branch and its pull request, or takes both away when there is nothing to propose. Where the proposal
/// waits, if there is one.
async fn carry_out<C, K>(world: &World<C, K>, on: &Base, offer: &Offer<'_>) -> Result<Option<String>, Problem> {
    let (wanted, branch) = (offer.wanted, &on.environments.settings.lock.branch);
    let base = world.repository.branch().await.unwrap_or_default();
    if wanted.files.is_empty() {
        // Unless all answers are known, it is not known that nothing is left to propose.
        if wanted.problems.is_empty() {
            withdraw(world, branch, &base).await?;
        }
        return Ok(None);
    }
    let mut message = lock::message(wanted, env!("CARGO_PKG_VERSION"));
    if let Some(digest) = &offer.manifests {
        message = lock::with_manifests(&message, digest);
    }
    match world.repository.rebuild(branch, &on.commit, &wanted.files, &message).await? {
        git::Rebuilt::Nothing => return Ok(None),
        git::Rebuilt::Commit(commit) => tracing::info!(%commit, branch, moved = wanted.moves.len(), "lock proposed"),
        git::Rebuilt::Unchanged(_) => {}
    }
    let Some(forge) = &world.forge else { return Ok(Some(branch.to_owned())) };
    let content = content_of(offer.fingerprint);
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
