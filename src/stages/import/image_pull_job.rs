//! OpenKruise's `ImagePullJob` and `ImageListPullJob` objects.
//!
//! Source: <https://openkruise.io/docs/user-manuals/imagepulljob>.

use std::collections::BTreeMap;

use super::{
    Format, Input,
    cursor::Cursor,
    draft::{Collected, Draft, DraftImage, image_name},
    nodes::{self, Nodes},
    objects, secret,
};

/// The fields of a job that are read or have a line of their own in the report.
const FIELDS: [&str; 8] =
    ["image", "images", "selector", "podSelector", "parallelism", "pullSecrets", "completionPolicy", "pullPolicy"];

const NESTED: [(&str, &[&str]); 3] = [
    ("selector", &["names", "matchLabels", "matchExpressions"]),
    ("completionPolicy", &["type", "activeDeadlineSeconds", "ttlSecondsAfterFinished"]),
    ("pullPolicy", &["timeoutSeconds", "backoffLimit"]),
];

/// Imports the jobs: one environment each.
pub fn jobs(input: &Input, collected: &mut Collected) {
    let format = Format::ImagePullJob;
    let documents = objects::documents(input, format, collected);
    let kinds = objects::Kinds { group: "apps.kruise.io", kinds: &["ImagePullJob", "ImageListPullJob"] };
    for object in objects::of_kind(input, &documents, &kinds, format, collected) {
        job(&object, collected);
    }
}

fn job(object: &Cursor<'_>, collected: &mut Collected) {
    let name = objects::name(object);
    let Some(spec) = object.get("spec") else {
        collected.leave_out(object, "there is no `spec`");
        return;
    };
    let selector = spec.get("selector");
    let terms = selector.as_ref().map(nodes::label_selector).unwrap_or_default();
    let mut draft = Draft::new(&name, object, Nodes::new(&BTreeMap::new(), &terms, Vec::new()));
    if let Some(names) = selector.and_then(|selector| selector.get("names")) {
        draft.note(&names, "nodes by name became an affinity to the label kubernetes.io/hostname; name a label that they share instead");
    }
    if let Some(place) = spec.get("podSelector") {
        collected.leave_out(&place, "nodes are chosen by their own labels, not by the pods on them; this environment is for every node of `selector`");
    }
    rollout(&spec, &mut draft, collected);
    objects::rest(&spec, &FIELDS, collected);
    for (key, known) in NESTED {
        if let Some(nested) = spec.get(key) {
            objects::rest(&nested, known, collected);
        }
    }
    let (pull_secret, secret_notes) = secret::first(&secret::secrets(spec.get("pullSecrets").as_ref()));
    let list = spec.get("images").map(|images| images.items()).unwrap_or_default();
    let places: Vec<Cursor<'_>> = spec.get("image").into_iter().chain(list).collect();
    if places.is_empty() {
        collected.leave_out(&spec, "there are neither `image` nor `images`");
    }
    for place in places {
        let Some((reference, mut notes)) = collected.image(&place) else { continue };
        notes.extend(secret_notes.clone());
        let image =
            DraftImage { name: image_name(&reference), reference, pull_secret: pull_secret.clone(), title: None };
        draft.add(place.place(), image, notes);
    }
    collected.push(draft);
}

/// How many nodes at once, and for how long. A job that is done stays an environment: images are held from then on.
fn rollout(spec: &Cursor<'_>, draft: &mut Draft, collected: &mut Collected) {
    if let Some(place) = spec.get("parallelism") {
        let text = place.text().unwrap_or_default();
        let most = if text.ends_with('%') { 100 } else { i32::MAX };
        let number = text.trim_end_matches('%').parse::<i32>().ok();
        match number.filter(|number| (1..=most).contains(number)) {
            Some(number) if most == 100 => draft.max_unavailable = Some(format!("{number}%")),
            Some(number) => draft.max_unavailable = Some(number.to_string()),
            None => collected.leave_out(
                &place,
                "this is not a number of nodes above 0; a job with 0 is paused, an environment is with `suspend: true`",
            ),
        }
    }
    let whole = spec.at(&["completionPolicy", "activeDeadlineSeconds"]);
    let each = spec.at(&["pullPolicy", "timeoutSeconds"]);
    if let (Some(_), Some(place)) = (&whole, &each) {
        collected.leave_out(place, "an environment has one deadline, the one of the whole job");
    }
    if let Some(place) = whole.or(each) {
        let seconds = place.text().and_then(|text| text.parse::<u64>().ok());
        match seconds.filter(|seconds| (10..=366 * 24 * 3600).contains(seconds)) {
            Some(seconds) if seconds.is_multiple_of(60) => draft.deadline = Some(format!("{}m", seconds / 60)),
            Some(seconds) => draft.deadline = Some(format!("{seconds}s")),
            None => {
                collected
                    .leave_out(&place, "this is not a number of seconds from 10 on, so the default deadline is used");
            }
        }
    }
    if let Some(place) = spec.at(&["pullPolicy", "backoffLimit"]) {
        collected.leave_out(&place, "a pull is tried until it succeeds");
    }
    if let Some(place) = spec.at(&["completionPolicy", "ttlSecondsAfterFinished"]) {
        collected.leave_out(&place, "an environment stays until its file is removed");
    }
}
