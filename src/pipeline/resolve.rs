//! The resolve step: each registry in its own rounds of questions, all at the same time, none waiting for another.

use std::{collections::BTreeMap, time::Instant};

use futures::{StreamExt as _, stream::FuturesUnordered};

use super::{LockMode, Memory, RunError, World};
use crate::{
    io::registry::{Asking, Credentials, Patience, RegistryClient},
    model::resolution::Resolution,
    stages::{
        load::Environments,
        resolve::{Due, Found, Rounds},
    },
};

/// Asks the registries for what is due, and remembers when they answered.
pub(super) async fn resolve<C, K: Credentials>(
    world: &World<C, K>,
    memory: &mut Memory,
    environments: &Environments,
) -> Result<Resolution, RunError> {
    if world.options.lock_mode == LockMode::Follow {
        return Ok(Resolution::new());
    }
    let (due, mut resolution) = memory.wanted(environments);
    if !due.is_empty() {
        let started = Instant::now();
        let client = memory.registry_client(&environments.settings.registries).map_err(RunError)?;
        let found = ask(&client, &world.credentials, due, world.options.patience).await;
        tracing::info!(
            references = found.resolution.len(),
            failed = found.resolution.values().filter(|answer| answer.is_err()).count(),
            not_asked = found.not_asked,
            duration_ms = started.elapsed().as_millis() as u64,
            "resolved"
        );
        memory.saw(&found.resolution, &environments.lock);
        memory.found(&found);
        resolution.extend(found.resolution);
    }
    memory.add_waiting(&mut resolution);
    Ok(resolution)
}

/// Looks up what is due. One registry's failure or silence never stops another.
pub async fn ask(client: &RegistryClient, credentials: &impl Credentials, due: Vec<Due>, patience: Patience) -> Found {
    let asking = client.begin(credentials, patience);
    let mut hosts: BTreeMap<String, Vec<Due>> = BTreeMap::new();
    for due in due {
        hosts.entry(due.lookup.reference.host().to_owned()).or_default().push(due);
    }
    let mut running: FuturesUnordered<_> = hosts.into_values().map(|due| ask_one(&asking, due)).collect();
    let mut all = Found::default();
    while let Some(found) = running.next().await {
        all.resolution.extend(found.resolution);
        all.not_asked += found.not_asked;
    }
    all
}

/// The rounds of one registry.
async fn ask_one<K: Credentials>(asking: &Asking<'_, K>, due: Vec<Due>) -> Found {
    let mut rounds = Rounds::new(due);
    loop {
        let questions = rounds.questions();
        if questions.is_empty() {
            return rounds.found();
        }
        let mut outcomes = asking.ask(questions);
        while let Some((question, outcome)) = outcomes.next().await {
            rounds.take(&question, outcome);
        }
    }
}
