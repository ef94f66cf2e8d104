//! History only goes forward: a commit that does not descend from the last accepted one is reported and, where commits have
//! to be signed, refused until a person confirms it. A signature says who made a commit, not that it is recent.

use super::{Memory, RunError, World};
use crate::{
    io::{cluster::Cluster, git::CommitId},
    model::failure::{Category, Problem},
};

/// Makes sure that the branch has not gone back.
///
/// # Errors
/// Where commits have to be signed: when `tip` does not descend from the last accepted commit, or that is not known.
pub(super) async fn check<C: Cluster, K>(world: &World<C, K>, memory: &Memory, tip: &CommitId) -> Result<(), RunError> {
    if memory.accepted() == Some(*tip) {
        return Ok(());
    }
    let strict = world.repository.wants_signatures().await;
    // What is recorded counts, as it is where people confirm.
    let recorded = if strict { world.cluster.accepted().await?.and_then(|text| text.parse().ok()) } else { None };
    let Some(last) = recorded.or(memory.accepted()).filter(|last| last != tip) else { return Ok(()) };
    match world.repository.descends(tip, &last).await {
        Ok(true) => Ok(()),
        Ok(false) if strict => Err(refused(tip, &last, &world.cluster.how_to_accept(&tip.to_string())).into()),
        Err(error) if strict => Err(Problem::from(error).into()),
        Ok(false) => {
            tracing::warn!(%last, commit = %tip, "the branch was rewritten: it does not descend from the commit of the last pass");
            Ok(())
        }
        Err(error) => {
            tracing::debug!(%last, commit = %tip, "whether the branch was rewritten is not known: {error}");
            Ok(())
        }
    }
}

/// Records a commit whose signature and history are accepted.
pub(super) async fn accept<C: Cluster, K>(world: &World<C, K>, memory: &mut Memory, commit: &CommitId) {
    if memory.accepted() == Some(*commit) {
        return;
    }
    memory.accept(*commit);
    if world.repository.wants_signatures().await
        && let Err(problem) = world.cluster.accept(&commit.to_string()).await
    {
        tracing::warn!(%problem, commit = %commit, "the accepted commit could not be recorded; a rollback to before it would not be noticed after a restart");
    }
}

fn refused(tip: &CommitId, last: &CommitId, confirm: &str) -> Problem {
    Problem::new(
        Category::Git,
        format!("the branch was rewritten: {tip} does not descend from {last}, the last accepted commit"),
    )
    .hint(format!(
        "the target stays as it is; push a commit that descends from {last}, or confirm the rewrite: {confirm}"
    ))
}
