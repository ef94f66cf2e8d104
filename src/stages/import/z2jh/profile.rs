//! A profile of `singleuser.profileList` with its options and their choices.

use std::collections::BTreeSet;

use super::{
    super::{
        cursor::Cursor,
        draft::{Collected, Draft},
        names,
        nodes::{Nodes, texts},
    },
    Hub, Item, Pods, grouped,
    state::{self, State, policy_note},
};

/// The most sets of nodes that the choices of a profile are multiplied out to.
const MOST: usize = 64;

/// What of an override is resources.
const RESOURCES: [&str; 6] =
    ["mem_guarantee", "mem_limit", "cpu_guarantee", "cpu_limit", "extra_resource_guarantees", "extra_resource_limits"];

/// What a user chooses one of.
struct Choices<'a> {
    key: &'a str,
    choices: Vec<Choice<'a>>,
    /// Whether nothing, or a text of the user's own, can be chosen.
    open: bool,
}

struct Choice<'a> {
    key: &'a str,
    place: Cursor<'a>,
    with: Option<Cursor<'a>>,
}

/// Reads a profile: its environments (one, unless its choices are for different nodes), and all its nodes.
pub fn read(hub: &mut Hub<'_>, place: &Cursor<'_>, index: usize, collected: &mut Collected) -> (Vec<Draft>, Nodes) {
    let title = place.text_of("display_name");
    let name = place.text_of("slug").or_else(|| title.clone()).and_then(|text| names::slug(&text));
    let name = name.unwrap_or_else(|| format!("profile-{}", index + 1));
    let with = place.get("kubespawner_override");
    let own = hub.base.with(with.as_ref());
    let options = options(place, collected);
    let (all, complete) = states(&own, &options, None);
    let all_nodes = nodes(hub, &all);
    let mut items = Vec::new();
    let own_image = with.as_ref().and_then(state::image);
    if let Some(image) = &own_image {
        let item = hub.item(image, "notebook".to_owned(), Pods { state: &own, nodes: &all_nodes }, collected);
        items.extend(item.map(|item| titled(item, title.as_deref(), with.as_ref())));
    }
    items.extend(
        with.iter()
            .flat_map(|with| sidecars(hub, with, Pods { state: &own, nodes: &all_nodes }, collected))
            .collect::<Vec<_>>(),
    );
    for (index, option) in options.iter().enumerate() {
        for (number, choice) in option.choices.iter().enumerate() {
            let (states, _) = states(&own, &options, Some((index, number)));
            let Some(state) = states.first() else { continue };
            let nodes = nodes(hub, &states);
            items.extend(of_choice(hub, choice, Pods { state, nodes: &nodes }, collected));
        }
    }
    if own_image.is_none() && !options.iter().any(Choices::always_have_an_image) {
        items.extend(default_image(hub, place, Pods { state: &own, nodes: &all_nodes }, collected));
    }
    let mut drafts = grouped(&name, place, items);
    for draft in &mut drafts {
        draft.display_name.clone_from(&title);
        draft.description = place.text_of("description");
    }
    if let Some(draft) = drafts.first_mut() {
        draft.resources = by_default(&own, &options).resources.resources(place, collected);
        say_more(draft, place, &options);
        if !complete {
            draft.note(place, "its choices are for more sets of nodes than can be told apart; check the nodes");
        }
    }
    (drafts, all_nodes)
}

fn options<'a>(place: &Cursor<'a>, collected: &mut Collected) -> Vec<Choices<'a>> {
    let options = place.get("profile_options").map(|options| options.entries()).unwrap_or_default();
    let read = |(key, option): (&'a str, Cursor<'a>)| {
        let entries = option.get("choices").map(|choices| choices.entries()).unwrap_or_default();
        let choices: Vec<Choice<'a>> = entries
            .into_iter()
            .map(|(key, place)| Choice { key, with: place.get("kubespawner_override"), place })
            .collect();
        let is_on = |unlisted: &Cursor<'_>| unlisted.text_of("enabled").as_deref() != Some("false");
        let unlisted = option.get("unlisted_choice").filter(is_on);
        if let Some(unlisted) = &unlisted {
            collected.leave_out(unlisted, "what users type in themselves cannot be on the nodes beforehand");
        }
        if let Some(building) = option.get("dynamic_image_building") {
            collected.leave_out(&building, "images that users build themselves cannot be on the nodes beforehand");
        }
        Choices { key, open: unlisted.is_some() || choices.is_empty(), choices }
    };
    options.into_iter().map(read).collect()
}

impl Choices<'_> {
    fn always_have_an_image(&self) -> bool {
        let has = |choice: &Choice<'_>| choice.with.as_ref().and_then(state::image).is_some();
        !self.choices.is_empty() && self.choices.iter().all(has)
    }
}

/// The pods that a profile can come to, one for each set of nodes, with one choice fixed or none; and whether these are
/// all of them. KubeSpawner applies options in their order.
fn states(own: &State, options: &[Choices<'_>], fixed: Option<(usize, usize)>) -> (Vec<State>, bool) {
    let mut states = vec![own.clone()];
    let mut complete = true;
    for (index, option) in options.iter().enumerate() {
        let chosen = fixed.filter(|(fixed, _)| *fixed == index).and_then(|(_, number)| option.choices.get(number));
        let mut next: Vec<State> = Vec::new();
        for state in &states {
            let candidates: Vec<State> = match chosen {
                Some(choice) => vec![state.with(choice.with.as_ref())],
                None => {
                    let kept = option.open.then(|| state.clone());
                    kept.into_iter()
                        .chain(option.choices.iter().map(|choice| state.with(choice.with.as_ref())))
                        .collect()
                }
            };
            for candidate in candidates {
                if next.iter().any(|other| other.same_nodes(&candidate)) {
                    continue;
                }
                if next.len() >= MOST {
                    complete = false;
                    break;
                }
                next.push(candidate);
            }
        }
        states = next;
    }
    (states, complete)
}

fn nodes(hub: &Hub<'_>, states: &[State]) -> Nodes {
    let mut states = states.iter();
    let mut nodes = hub.nodes(states.next().unwrap_or(&hub.base));
    states.for_each(|state| nodes.union(hub.nodes(state)));
    nodes
}

fn of_choice(hub: &mut Hub<'_>, choice: &Choice<'_>, pods: Pods<'_>, collected: &mut Collected) -> Vec<Item> {
    let Some(with) = &choice.with else { return Vec::new() };
    let mut items = Vec::new();
    if let Some(image) = state::image(with) {
        let title = choice.place.text_of("display_name");
        let name = names::slug(choice.key).or_else(|| title.as_deref().and_then(names::slug));
        let name = name.unwrap_or_else(|| "image".to_owned());
        let item = hub.item(&image, name, pods, collected);
        let mut item = item.map(|item| titled(item, title.as_deref(), Some(with)));
        if let (Some(item), Some(groups)) = (&mut item, choice.place.get("allowed_groups")) {
            item.notes.push(groups_note(&groups));
        }
        items.extend(item);
    }
    items.extend(sidecars(hub, with, pods, collected));
    items
}

/// Images of the containers and volumes that an override adds; the chart's own pullers leave them out.
fn sidecars(hub: &mut Hub<'_>, with: &Cursor<'_>, pods: Pods<'_>, collected: &mut Collected) -> Vec<Item> {
    let mut items = hub.containers(with, ["init_containers", "extra_containers"], pods, collected);
    for volume in with.get("volumes").map(|volumes| volumes.values()).unwrap_or_default() {
        let Some(image) = volume.get("image") else { continue };
        hub.seen.insert(image.path().to_owned());
        let Some(place) = image.get("reference") else { continue };
        let name = volume.text_of("name").and_then(|name| names::slug(&name)).unwrap_or_else(|| "volume".to_owned());
        items.extend(hub.item(&place, name, pods, collected));
    }
    items
}

fn titled(mut item: Item, title: Option<&str>, with: Option<&Cursor<'_>>) -> Item {
    item.image.title = title.map(str::to_owned);
    if let Some(policy) =
        with.and_then(|with| with.text_of("image_pull_policy")).filter(|policy| policy != "IfNotPresent")
    {
        item.notes.push(policy_note(&policy));
    }
    item
}

/// A profile that names no image starts `singleuser.image`, on its own nodes.
fn default_image(hub: &mut Hub<'_>, place: &Cursor<'_>, pods: Pods<'_>, collected: &mut Collected) -> Option<Item> {
    let Some(image) = hub.default_image.clone() else {
        collected.leave_out(place, "it starts singleuser.image, which is not set in this file");
        return None;
    };
    let mut item = hub.item(&image, "notebook".to_owned(), pods, collected)?;
    item.from = place.place();
    item.notes.push("it names no image, so it starts singleuser.image".to_owned());
    Some(item)
}

/// What a user gets who chooses nothing: of each option the default choice, or the first.
fn by_default(own: &State, options: &[Choices<'_>]) -> State {
    options.iter().fold(own.clone(), |state, option| {
        let is_default = |choice: &&Choice<'_>| choice.place.text_of("default").as_deref() == Some("true");
        let choice = option.choices.iter().find(is_default).or_else(|| option.choices.first());
        state.with(choice.and_then(|choice| choice.with.as_ref()))
    })
}

fn say_more(draft: &mut Draft, place: &Cursor<'_>, options: &[Choices<'_>]) {
    if let Some(groups) = place.get("allowed_groups") {
        draft.note(&groups, groups_note(&groups));
    }
    let overrides = options.iter().flat_map(|option| &option.choices).filter_map(|choice| choice.with.as_ref());
    let with = place.get("kubespawner_override");
    let left: BTreeSet<&str> =
        with.iter().chain(overrides).flat_map(state::unread).filter(|key| *key != "volumes").collect();
    if !left.is_empty() {
        let left: Vec<&str> = left.into_iter().collect();
        draft.note(place, format!("left to the hub: {}", left.join(", ")));
    }
    for option in options {
        let of_resources =
            |choice: &&Choice<'_>| choice.with.as_ref().is_some_and(|with| RESOURCES.iter().any(|key| with.has(key)));
        if option.choices.iter().filter(of_resources).count() > 1 {
            let note = format!("of the choices in `{}` the default's resources are taken", option.key);
            draft.note(place, note);
        }
    }
}

fn groups_note(groups: &Cursor<'_>) -> String {
    format!("who may start it is left to the hub: allowed_groups {}", texts(groups).join(", "))
}
