//! What the cluster's nodes are like: labels and taints.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Node;

use super::KubeCluster;
use crate::model::{
    failure::Problem,
    observation::{NodeTraits, Taint},
};

impl KubeCluster {
    /// All nodes by name.
    ///
    /// # Errors
    /// When the list cannot be had.
    pub async fn nodes(&self) -> Result<BTreeMap<String, NodeTraits>, Problem> {
        let mut nodes = BTreeMap::new();
        self.each_page("/api/v1", "nodes", "", |node: Node| {
            let taints = node.spec.into_iter().flat_map(|spec| spec.taints.unwrap_or_default());
            let taints = taints.map(|taint| Taint {
                key: taint.key,
                value: taint.value.unwrap_or_default(),
                effect: taint.effect,
            });
            let traits = NodeTraits { labels: node.metadata.labels.unwrap_or_default(), taints: taints.collect() };
            nodes.insert(node.metadata.name.unwrap_or_default(), traits);
        })
        .await?;
        Ok(nodes)
    }
}
