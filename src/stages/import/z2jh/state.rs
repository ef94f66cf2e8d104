//! What KubeSpawner would give a user's pod: the chart's values, with the overrides of a profile and its choices on top.

use std::collections::BTreeMap;

use crate::model::environment::Toleration;

use super::{
    super::{
        cursor::Cursor,
        document::Value,
        nodes::{self, Term},
        secret,
    },
    resources::{Field, Found},
};

/// The part of a pod that decides where its images have to be, and with which Secret they are pulled.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    pub selector: BTreeMap<String, String>,
    pub tolerations: Vec<Toleration>,
    pub required: Vec<Term>,
    pub secrets: Vec<String>,
    pub resources: Found,
}

impl State {
    /// The pods of a hub before any profile.
    pub fn base(values: &Cursor<'_>) -> Self {
        let singleuser = |keys: &[&str]| values.get("singleuser").and_then(|singleuser| singleuser.at(keys));
        let mut tolerations = match values.at(&["scheduling", "userPods", "tolerations"]) {
            Some(list) => nodes::tolerations(Some(&list)),
            // The chart's own: nodes that are kept for users are not to be left out.
            None => ["hub.jupyter.org/dedicated", "hub.jupyter.org_dedicated"]
                .iter()
                .map(|key| nodes::tolerate(key, "user"))
                .collect(),
        };
        tolerations.extend(nodes::tolerations(singleuser(&["extraTolerations"]).as_ref()));
        let mut required = nodes::terms(singleuser(&["extraNodeAffinity", "required"]).as_ref());
        let purpose = values.at(&["scheduling", "userPods", "nodeAffinity", "matchNodePurpose"]);
        if purpose.and_then(|purpose| purpose.text()).as_deref() == Some("require") {
            required.push(nodes::label("hub.jupyter.org/node-purpose", "user"));
        }
        let mut secrets = secret::secrets(singleuser(&["image", "pullSecrets"]).as_ref());
        for name in secret::secrets(values.get("imagePullSecrets").as_ref()) {
            if !secrets.contains(&name) {
                secrets.push(name);
            }
        }
        let mut resources = Found::default();
        for (field, path) in [
            (Field::MemoryGuarantee, ["memory", "guarantee"]),
            (Field::MemoryLimit, ["memory", "limit"]),
            (Field::CpuGuarantee, ["cpu", "guarantee"]),
            (Field::CpuLimit, ["cpu", "limit"]),
        ] {
            resources.set(field, singleuser(&path).as_ref());
        }
        for list in ["guarantees", "limits"] {
            if let Some(extra) = singleuser(&["extraResource", list]) {
                resources.set_extra(&extra);
            }
        }
        Self {
            selector: nodes::selector(singleuser(&["nodeSelector"]).as_ref()),
            tolerations,
            required,
            secrets,
            resources,
        }
    }

    /// The same with a `kubespawner_override` on top: mappings are merged, null takes away, everything else replaces.
    pub fn with(&self, with: Option<&Cursor<'_>>) -> Self {
        let mut state = self.clone();
        let Some(with) = with else { return state };
        for (key, value) in with.entries() {
            let given = Some(&value).filter(|value| value.node.value != Value::Null);
            match key {
                "node_selector" if given.is_none() => state.selector.clear(),
                "node_selector" => {
                    for (label, value) in value.entries() {
                        match value.text() {
                            Some(text) => state.selector.insert(label.to_owned(), text),
                            None => state.selector.remove(label),
                        };
                    }
                }
                "tolerations" => state.tolerations = nodes::tolerations(given),
                "node_affinity_required" => state.required = nodes::terms(given),
                "image_pull_secrets" => state.secrets = secret::secrets(given),
                "mem_guarantee" => state.resources.set(Field::MemoryGuarantee, given),
                "mem_limit" => state.resources.set(Field::MemoryLimit, given),
                "cpu_guarantee" => state.resources.set(Field::CpuGuarantee, given),
                "cpu_limit" => state.resources.set(Field::CpuLimit, given),
                "extra_resource_guarantees" | "extra_resource_limits" => state.resources.set_extra(&value),
                _ => {}
            }
        }
        state
    }

    /// Whether the nodes are the same.
    pub fn same_nodes(&self, other: &Self) -> bool {
        let extra = |state: &Self| state.resources.extra.keys().cloned().collect::<Vec<_>>();
        (&self.selector, &self.tolerations, &self.required, extra(self))
            == (&other.selector, &other.tolerations, &other.required, extra(other))
    }
}

/// Keys of KubeSpawner that hold the image of the notebook; all but the first are its older names.
pub const IMAGE: [&str; 3] = ["image", "image_spec", "singleuser_image_spec"];

/// Keys of an override that are read: here, or where the profile is.
const READ: [&str; 16] = [
    "node_selector",
    "tolerations",
    "node_affinity_required",
    "image_pull_secrets",
    "image_pull_policy",
    "mem_guarantee",
    "mem_limit",
    "cpu_guarantee",
    "cpu_limit",
    "extra_resource_guarantees",
    "extra_resource_limits",
    "init_containers",
    "extra_containers",
    "image",
    "image_spec",
    "singleuser_image_spec",
];

/// The image of the notebook in a `kubespawner_override`.
pub fn image<'a>(with: &Cursor<'a>) -> Option<Cursor<'a>> {
    IMAGE.iter().find_map(|key| with.get(key))
}

/// The keys of an override that say nothing about images and nodes.
pub fn unread<'a>(with: &Cursor<'a>) -> Vec<&'a str> {
    with.entries().into_iter().map(|(key, _)| key).filter(|key| !READ.contains(key)).collect()
}

/// What is said about a pull policy.
pub fn policy_note(policy: &str) -> String {
    format!("pull policy {policy} is left out: nodes hold the digest that is locked")
}
