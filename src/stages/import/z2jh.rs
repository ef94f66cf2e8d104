//! Values of zero-to-jupyterhub's Helm chart: every place that holds an image of users' pods.
//!
//! Source: the chart's templates of its image pullers in <https://github.com/jupyterhub/zero-to-jupyterhub-k8s> and
//! KubeSpawner's `profile_list`. What the chart's own pullers leave out is brought over as well: the nodes of each
//! profile, and the containers that a profile adds.

mod profile;
pub mod resources;
mod state;
mod sweep;

use std::collections::BTreeSet;

use crate::model::environment::{Resources, Toleration};

use super::{
    Format, Input,
    cursor::Cursor,
    document::Node,
    draft::{Collected, Draft, DraftImage, Note, image_name},
    names,
    nodes::{self, Nodes},
    objects, secret,
};

use self::state::State;

/// How deep the values of a hub are looked for: `basehub.jupyterhub` is two.
const DEPTH: usize = 4;

/// Where a hub sets traits of KubeSpawner past the chart's own values.
const SPAWNER: [&str; 3] = ["hub", "config", "KubeSpawner"];

/// A hub's values, and what is known about all of its users' pods.
struct Hub<'a> {
    values: Cursor<'a>,
    /// The pods before any profile.
    base: State,
    /// The image of pods whose profile names none.
    default_image: Option<Cursor<'a>>,
    /// A Secret that the chart makes, and the registry that it is for.
    made_secret: Option<(String, Option<String>)>,
    /// Tolerations of the pullers alone.
    puller_tolerations: Vec<Toleration>,
    /// Paths of images that have been read.
    seen: BTreeSet<String>,
}

/// Some of the users' pods: what they are given, and all nodes that they may be on.
#[derive(Clone, Copy)]
struct Pods<'a> {
    state: &'a State,
    nodes: &'a Nodes,
}

/// An image of users' pods.
struct Item {
    from: String,
    image: DraftImage,
    notes: Vec<String>,
    nodes: Nodes,
}

/// Imports a file of values: an environment for each profile, one for `singleuser`, one for `prePuller.extraImages`.
pub fn values(input: &Input, namespace: &str, collected: &mut Collected) {
    let format = Format::Zero2Jupyterhub;
    let documents = objects::documents(input, format, collected);
    for node in &documents {
        let root = Cursor::root(&input.name, node);
        let mut hubs = hubs(&root, DEPTH);
        // Aliases of the same mapping are one hub.
        let mut known: Vec<&Node> = Vec::new();
        hubs.retain(|values| {
            !known.contains(&values.node) && {
                known.push(values.node);
                true
            }
        });
        if hubs.is_empty() && is_of_chart(&root) {
            collected.leave_out(&root, "no image of users' pods is set in this file");
            continue;
        }
        if hubs.is_empty() {
            let message = format!("{} are expected, found {}", format.expected(), objects::describe(&root));
            collected.unexpected(&input.name, node.line, &message, &objects::hint(Some(&root)));
            continue;
        }
        let mut seen = BTreeSet::new();
        let before = collected.drafts.len() + collected.left_out.len();
        for values in hubs {
            let mut hub = Hub::read(values, namespace, collected);
            let mut drafts = hub.drafts(collected);
            merge_equal(&mut drafts);
            drafts.into_iter().for_each(|draft| collected.push(draft));
            seen.extend(hub.seen);
        }
        sweep::sweep(&root, &seen, collected);
        if collected.drafts.len() + collected.left_out.len() == before {
            collected.leave_out(&root, "no image of users' pods is set in this file");
        }
    }
}

/// Whether a mapping only holds what others refer to by YAML aliases.
fn is_holder(key: &str) -> bool {
    key.starts_with("x-")
}

/// Whether a file has values of the chart, or of one around it, although none for users' pods.
fn is_of_chart(root: &Cursor<'_>) -> bool {
    ["jupyterhub", "basehub", "daskhub", "binderhub", "proxy", "scheduling", "cull"].iter().any(|key| root.has(key))
}

/// The mappings that are values of the chart itself, not of one around it.
fn hubs<'a>(values: &Cursor<'a>, depth: usize) -> Vec<Cursor<'a>> {
    let is_hub =
        ["singleuser", "prePuller", "hub"].iter().any(|key| values.get(key).is_some_and(|value| value.is_map()));
    match (is_hub, depth) {
        (true, _) => vec![values.clone()],
        (false, 0) => Vec::new(),
        (false, _) => {
            let entries = values.entries().into_iter().filter(|(key, _)| !is_holder(key));
            entries.flat_map(|(_, value)| hubs(&value, depth - 1)).collect()
        }
    }
}

impl<'a> Hub<'a> {
    fn read(values: Cursor<'a>, namespace: &str, collected: &mut Collected) -> Self {
        let base = State::base(&values).with(values.at(&SPAWNER).as_ref());
        let mut hub = Self {
            base,
            default_image: None,
            made_secret: None,
            puller_tolerations: nodes::tolerations(values.at(&["prePuller", "extraTolerations"]).as_ref()),
            seen: BTreeSet::new(),
            values,
        };
        hub.read_made_secret(namespace, collected);
        if hub.values.at(&["prePuller", "pullProfileListImages"]).and_then(|v| v.text()).as_deref() == Some("false")
            && let Some(place) = hub.values.at(&["prePuller", "pullProfileListImages"])
        {
            collected.leave_out(&place, "images of profiles are brought over all the same; remove the environments that need not be on the nodes beforehand");
        }
        hub
    }

    /// `imagePullSecret` holds the credentials themselves; the chart makes a Secret of them.
    fn read_made_secret(&mut self, namespace: &str, collected: &mut Collected) {
        let Some(made) = self.values.get("imagePullSecret") else { return };
        if made.text_of("password").is_none() && made.text_of("create").as_deref() != Some("true") {
            return;
        }
        let name = made.text_of("name").unwrap_or_else(|| "image-pull-secret".to_owned());
        let registry = made.text_of("registry").map(|registry| host(&registry));
        let shown = registry.clone().unwrap_or_else(|| "REGISTRY".to_owned());
        collected.leave_out(&made, secret::password(&name, &shown, namespace));
        self.made_secret = Some((name, registry));
    }

    /// Nodes of a pod, as its puller needs them.
    fn nodes(&self, state: &State) -> Nodes {
        let resources = state.resources.extra.keys().map(|name| nodes::tolerate_resource(name));
        let tolerations = state.tolerations.iter().chain(&self.puller_tolerations).cloned().chain(resources).collect();
        Nodes::new(&state.selector, &state.required, tolerations)
    }

    /// Reads the image at a place as one of users' pods.
    fn item(&mut self, place: &Cursor<'_>, name: String, pods: Pods<'_>, collected: &mut Collected) -> Option<Item> {
        self.seen.insert(place.path().to_owned());
        let (reference, mut notes) = collected.image(place)?;
        let (mut pull_secret, more) = secret::first(&pods.state.secrets);
        notes.extend(more);
        if let (None, Some((secret, registry))) = (&pull_secret, &self.made_secret)
            && registry.as_ref().is_none_or(|registry| registry == reference.host())
        {
            pull_secret = Some(secret.clone());
        }
        let image = DraftImage { name, reference, pull_secret, title: None };
        Some(Item { from: place.place(), image, notes, nodes: pods.nodes.clone() })
    }

    fn drafts(&mut self, collected: &mut Collected) -> Vec<Draft> {
        let base = self.base.clone();
        let base_nodes = self.nodes(&base);
        let mut drafts = Vec::new();
        let mut items = Vec::new();
        let pods = Pods { state: &base, nodes: &base_nodes };
        let of_chart = self.values.at(&["singleuser", "image"]);
        let of_spawner = self.values.at(&SPAWNER).and_then(|spawner| state::image(&spawner));
        if let (Some(place), Some(_)) = (&of_chart, &of_spawner) {
            self.seen.insert(place.path().to_owned());
            collected.leave_out(place, "hub.config.KubeSpawner sets another image");
        }
        if let Some(place) = of_spawner.or(of_chart)
            && let Some(mut item) = self.item(&place, "notebook".to_owned(), pods, collected)
        {
            self.default_image = Some(place.clone());
            if let Some(policy) = place.text_of("pullPolicy").filter(|policy| policy == "Always") {
                item.notes.push(state::policy_note(&policy));
            }
            items.push(item);
        }
        let singleuser = self.values.get("singleuser");
        let (profiles, every_node) = self.profiles(base_nodes.clone(), collected);
        let everywhere = Pods { state: &base, nodes: &every_node };
        if let Some(singleuser) = &singleuser {
            items.extend(self.containers(singleuser, ["initContainers", "extraContainers"], everywhere, collected));
            items.extend(self.network_tools(singleuser, everywhere, collected));
        }
        if let Some(singleuser) = singleuser.as_ref().or(self.values.at(&SPAWNER).as_ref()) {
            let mut group = grouped("singleuser", singleuser, items);
            if let Some(draft) = group.first_mut().filter(|draft| draft.nodes == base_nodes) {
                draft.resources = base.resources.clone().resources(singleuser, collected);
            }
            drafts.extend(group);
        }
        drafts.extend(profiles);
        drafts.extend(self.extra_images(pods, collected));
        drafts
    }

    /// The profiles' environments, and all nodes that users' pods may be on.
    fn profiles(&mut self, mut every_node: Nodes, collected: &mut Collected) -> (Vec<Draft>, Nodes) {
        let mut drafts = Vec::new();
        let spawner = self.values.at(&SPAWNER).and_then(|spawner| spawner.get("profile_list"));
        let lists: Vec<Cursor<'_>> =
            self.values.at(&["singleuser", "profileList"]).into_iter().chain(spawner).collect();
        for list in lists.iter().filter(|list| !list.is_list() && !list.is_map()) {
            collected.leave_out(list, "this is not a list of profiles");
        }
        let profiles: Vec<Cursor<'_>> = lists.iter().flat_map(Cursor::values).collect();
        for (index, place) in profiles.iter().enumerate() {
            let (found, nodes) = profile::read(self, place, index, collected);
            drafts.extend(found);
            every_node.union(nodes);
        }
        (drafts, every_node)
    }

    /// Containers beside the notebook's own: a list, or a mapping in newer charts.
    fn containers(&mut self, of: &Cursor<'_>, keys: [&str; 2], pods: Pods<'_>, collected: &mut Collected) -> Vec<Item> {
        let lists = keys.iter().filter_map(|key| of.get(key));
        let containers: Vec<Cursor<'_>> = lists.flat_map(|list| list.values()).collect();
        let mut items = Vec::new();
        for container in containers {
            let Some(place) = container.get("image") else { continue };
            let name = container.text_of("name").and_then(|name| names::slug(&name));
            let name = name.unwrap_or_else(|| "container".to_owned());
            items.extend(self.item(&place, name, pods, collected));
        }
        items
    }

    /// The container that blocks the cloud's metadata server; it only runs while that is on.
    fn network_tools(&mut self, singleuser: &Cursor<'_>, pods: Pods<'_>, collected: &mut Collected) -> Option<Item> {
        let place = singleuser.at(&["networkTools", "image"])?;
        let blocks = singleuser.at(&["cloudMetadata", "blockWithIptables"]).and_then(|value| value.text());
        if blocks.as_deref() == Some("false") {
            self.seen.insert(place.path().to_owned());
            collected.leave_out(&place, "it does not run: cloudMetadata.blockWithIptables is false");
            return None;
        }
        self.item(&place, "network-tools".to_owned(), pods, collected)
    }

    fn extra_images(&mut self, pods: Pods<'_>, collected: &mut Collected) -> Vec<Draft> {
        let Some(images) = self.values.at(&["prePuller", "extraImages"]) else { return Vec::new() };
        if !images.is_list() && !images.is_map() {
            collected.leave_out(&images, "this is not a mapping of images");
        }
        let named = images.entries();
        let entries: Vec<(Option<&str>, Cursor<'_>)> = match named.is_empty() {
            true => images.items().into_iter().map(|item| (None, item)).collect(),
            false => named.into_iter().map(|(key, item)| (Some(key), item)).collect(),
        };
        let mut items = Vec::new();
        for (key, place) in entries {
            let name = key.and_then(names::slug);
            let Some(mut item) = self.item(&place, String::new(), pods, collected) else { continue };
            item.image.name = name.unwrap_or_else(|| image_name(&item.image.reference));
            items.push(item);
        }
        grouped("extra-images", &images, items)
    }
}

/// `https://index.docker.io/v1/` and the like as the host of references.
fn host(registry: &str) -> String {
    let host = registry.split_once("://").map_or(registry, |(_, rest)| rest);
    match host.split('/').next().unwrap_or(host) {
        "index.docker.io" | "registry-1.docker.io" => "docker.io".to_owned(),
        host => host.to_owned(),
    }
}

/// A draft for each set of nodes. The first keeps the name, the others add that of their first image.
fn grouped(name: &str, place: &Cursor<'_>, items: Vec<Item>) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = Vec::new();
    for item in items {
        let index = drafts.iter().position(|draft| draft.nodes == item.nodes).unwrap_or_else(|| {
            let own = if drafts.is_empty() { name.to_owned() } else { format!("{name}-{}", item.image.name) };
            drafts.push(Draft::new(&own, place, item.nodes.clone()));
            drafts.len() - 1
        });
        drafts[index].add(item.from, item.image, item.notes);
    }
    drafts
}

/// Profiles that differ in nothing but resources are one environment: each costs a pod on every node.
fn merge_equal(drafts: &mut Vec<Draft>) {
    let mut kept: Vec<Draft> = Vec::new();
    for draft in drafts.drain(..) {
        let Some(same) = kept.iter_mut().find(|other| other.is_like(&draft)) else {
            kept.push(draft);
            continue;
        };
        let title = draft.display_name.clone().unwrap_or_else(|| draft.name.clone());
        for mut note in draft.notes {
            if let Some(image) = &mut note.image {
                let reference = draft.images.iter().find(|own| own.name == *image).map(|own| &own.reference);
                if let Some(own) = same.images.iter().find(|own| Some(&own.reference) == reference) {
                    image.clone_from(&own.name);
                }
                let why = format!("`{title}` has the same images on the same nodes");
                note.note = if note.note.is_empty() { why } else { format!("{}; {why}", note.note) };
            }
            same.notes.push(note);
        }
        if same.resources != draft.resources {
            same.resources = Resources::default();
            let note = format!("`{title}` has other resources, so none are written; the hub's menu still has them");
            same.notes.push(Note { from: draft.place, image: None, note });
        }
        if same.display_name.is_none() {
            same.display_name = draft.display_name;
            same.description = draft.description;
        }
    }
    *drafts = kept;
}
