//! Lints about what is pulled.

use std::collections::BTreeMap;

use crate::model::{
    batch::{Batch, succeeded},
    environment::{Environment, Image, Placement},
    failure::{Category, Problem},
    lint::Lint,
    name::Name,
    reference::{ImageReference, ReferenceLint},
};

use super::{Finding, places::Places};

/// What looks odd in an environment's references.
pub fn references(environment: &Environment, places: &Places<'_>) -> impl Iterator<Item = Problem> {
    environment.images.iter().flat_map(|image| {
        let odd = image.reference.lints().into_iter().map(|lint| {
            let kind = match &lint {
                ReferenceLint::NumericPath { .. } => Lint::PortAsPath,
                ReferenceLint::DottedName(_) | ReferenceLint::Underscore(_) => Lint::RegistryMeant,
            };
            let hint = "write the whole reference, host/path:tag; if it is meant as it stands, allow this lint";
            Problem::new(Category::Reference, lint.to_string()).lint(kind).hint(hint)
        });
        let problems = odd.chain(mutable_tag(&image.reference));
        problems.map(|problem| at(environment, image, problem, places)).collect::<Vec<_>>()
    })
}

fn mutable_tag(reference: &ImageReference) -> Option<Problem> {
    let moves = reference.digest().is_none() && reference.tag().is_none_or(|tag| tag == "latest");
    moves.then(|| {
        Problem::new(Category::Reference, format!("`{reference}` uses the mutable tag `latest`"))
            .lint(Lint::MutableTag)
            .hint("write a tag that names a version: the image then only changes when this file does, or when the publisher re-pushes that tag")
    })
}

/// Images that two environments of one tenant bring to the same nodes. Different tenants may ask for the same image.
pub fn same(environments: &Batch<Environment>, places: &Places<'_>) -> Vec<Finding> {
    let mut first: BTreeMap<(&Name, &ImageReference), Vec<(&Environment, &Placement)>> = BTreeMap::new();
    let mut findings = Vec::new();
    for (id, environment) in succeeded(environments).filter(|(_, environment)| !environment.suspend) {
        for image in &environment.images {
            let holders = first.entry((&id.tenant, &image.reference)).or_default();
            match holders.iter().find(|(_, placement)| **placement == environment.placement) {
                Some((other, _)) => {
                    let message = format!(
                        "`{}` comes to the same nodes by the environment {} already",
                        image.reference, other.id
                    );
                    let problem = Problem::new(Category::Policy, message)
                        .lint(Lint::SameImage)
                        .hint("name it in one environment only: each environment costs a pod on every node");
                    findings.push((Some(id.clone()), at(environment, image, problem, places)));
                }
                None => holders.push((environment, &environment.placement)),
            }
        }
    }
    findings
}

fn at(environment: &Environment, image: &Image, problem: Problem, places: &Places<'_>) -> Problem {
    let place = places.of_reference(&environment.path, image.line, &image.reference);
    places.put(problem, &environment.path, place)
}
