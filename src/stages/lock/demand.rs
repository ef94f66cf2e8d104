//! The platforms that an image must be made for, by its file and by the nodes it is meant for.

use crate::model::{
    environment::{Environment, Image, Strategy},
    failure::{Category, Problem},
    resolution::{ContentKind, Evidence, Platform, PlatformManifest},
};

/// Node labels with an architecture in Go's words; the kubelet sets the first, older ones the second.
/// <https://kubernetes.io/docs/reference/labels-annotations-taints/#kubernetes-io-arch>
const ARCHITECTURE: [&str; 2] = ["kubernetes.io/arch", "beta.kubernetes.io/arch"];

/// Node labels with an operating system in Go's words.
const OS: [&str; 2] = ["kubernetes.io/os", "beta.kubernetes.io/os"];

/// That what a reference names cannot be started; volumes need not be.
pub fn not_an_image(environment: &Environment, image: &Image, evidence: &Evidence) -> Option<Problem> {
    match &evidence.kind {
        ContentKind::Artifact(name) if environment.puller.strategy != Strategy::ImageVolumes => {
            let message = format!("{} is {name}, not a container image", image.reference);
            Some(Problem::new(Category::Registry, message).hint(
                "name a container image, or restore the tag at its registry; only the puller strategy `imageVolumes` takes other artifacts",
            ))
        }
        _ => None,
    }
}

/// What is wrong with what an image offers: a platform of its file that it lacks, or the one that its nodes have.
///
/// An image that says nothing about its platform is only refused when the file demands one.
pub fn unmet(environment: &Environment, image: &Image, offered: &[PlatformManifest]) -> Option<Problem> {
    let lacks = |asked: &Platform| !offered.iter().any(|manifest| asked.accepts(&manifest.platform));
    if let Some(missing) = image.platforms.iter().find(|asked| lacks(asked)) {
        let problem = Problem::new(
            Category::Registry,
            format!("{} is not made for {missing}, which `platforms` demands; {}", image.reference, made_for(offered)),
        );
        return Some(problem.hint("ask its publisher for that platform, or take it out of the image's `platforms`"));
    }
    let nodes = selected(environment).filter(|asked| !offered.is_empty() && lacks(asked))?;
    let problem = Problem::new(
        Category::Registry,
        format!("{} is not made for {nodes}, which its nodes are; {}", image.reference, made_for(offered)),
    );
    Some(problem.hint("choose a pool of another architecture, or an image that is made for this one"))
}

/// The platform that the environment's node selector asks for, if it asks for an architecture.
fn selected(environment: &Environment) -> Option<Platform> {
    let label = |names: [&str; 2]| names.iter().find_map(|&name| environment.placement.node_selector.get(name));
    let architecture = label(ARCHITECTURE)?.clone();
    let os = label(OS).cloned().unwrap_or_else(|| "linux".to_owned());
    Some(Platform { os, architecture, variant: None })
}

fn made_for(offered: &[PlatformManifest]) -> String {
    if offered.is_empty() {
        return "it names no platform at all".to_owned();
    }
    let platforms: Vec<String> = offered.iter().map(|manifest| manifest.platform.to_string()).collect();
    format!("it is made for {}", platforms.join(", "))
}
