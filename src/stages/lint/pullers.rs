//! Lints about how many pods larder puts on a node.

use std::collections::BTreeMap;

use crate::{
    model::{
        batch::{Batch, succeeded},
        environment::Environment,
        failure::{Category, Problem},
        lint::Lint,
        settings::Settings,
        snapshot::SETTINGS,
    },
    stages::render::pods_a_node,
};

use super::{Finding, places::Places};

/// Pods that a kubelet runs unless it is told otherwise. Source:
/// <https://kubernetes.io/docs/setup/best-practices/cluster-large/>.
const PODS_OF_A_NODE: usize = 110;

/// The share of them from which on there is a warning, in percent: what the node is there for needs pods as well.
const SHARE: usize = 50;

/// Sets of nodes on which pullers alone take much of what a node can hold.
pub fn many(settings: &Settings, environments: &Batch<Environment>, places: &Places<'_>) -> Vec<Finding> {
    let mut sets: BTreeMap<String, (usize, &Environment)> = BTreeMap::new();
    for (_, environment) in succeeded(environments).filter(|(_, environment)| !environment.suspend) {
        let nodes = serde_json::to_string(&environment.placement).unwrap_or_default();
        sets.entry(nodes).or_insert((0, environment)).0 += pods_a_node(environment);
    }
    sets.into_values()
        .filter(|(pods, _)| pods * 100 > PODS_OF_A_NODE * SHARE)
        .map(|(pods, environment)| {
            let pool = settings.pools.iter().find(|(_, pool)| **pool == environment.placement).map(|(name, _)| name);
            let nodes =
                pool.map_or_else(|| format!("the nodes of {}", environment.id), |name| format!("the pool `{name}`"));
            let message = format!(
                "larder needs {pods} pods on each node of {nodes}; a node usually holds {PODS_OF_A_NODE} in all"
            );
            let problem = Problem::new(Category::Policy, message)
                .lint(Lint::ManyPullers)
                .hint("put images that belong together into one environment: up to 20 of them share a pod");
            match pool {
                Some(name) => {
                    let place = places.of_key(SETTINGS, &["spec", "pools", name]);
                    (None, places.put(problem, SETTINGS, place))
                }
                None => (Some(environment.id.clone()), problem.in_file(&environment.path)),
            }
        })
        .collect()
}
