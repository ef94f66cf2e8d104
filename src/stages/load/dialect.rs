//! Files of other systems that are read as environments: Submarine's `JupyterImagePuller` and its environment JSON.
//!
//! They become an environment's file as it stands, so that one set of checks holds for all.

mod auth;

use std::time::Duration;

use crate::model::{
    failure::{Category, Failure, Problem, Source},
    name::Name,
    settings::Tenant,
};

use self::auth::Given;

use super::{
    check::{Check, wrong_header},
    environment::MAX_NODES,
    file::{
        environment::{EnvironmentFile, EnvironmentSpec, ImageEntry, KIND},
        jupyter_image_puller::{self, JupyterImagePullerFile, PullerImage},
        submarine::{DockerAuthType, SubmarineFile},
    },
    located::Located,
    values, yaml,
};

/// The tenant whose folder a file is in.
#[derive(Clone, Copy)]
pub struct Folder<'a> {
    /// Its name.
    pub name: &'a Name,
    /// What larder.yaml says about it.
    pub tenant: &'a Tenant,
}

/// Reads a file of any kind that is an environment, and begins its check.
///
/// # Errors
/// All that is wrong with its structure, when nothing is left that could be checked.
pub fn read<'a>(source: &'a Source, folder: Folder<'_>) -> Result<(EnvironmentSpec, Check<'a>), Failure> {
    match of(source) {
        Dialect::Own => {
            let (file, mut check) = yaml::read::<EnvironmentFile>(source, KIND, MAX_NODES)?;
            check.header(&file.api_version, &file.kind, KIND);
            Ok((file.spec, check))
        }
        Dialect::JupyterImagePuller => {
            let (file, mut check) = yaml::read(source, jupyter_image_puller::KIND, MAX_NODES)?;
            Ok((jupyter_image_puller(&mut check, file, folder), check))
        }
        Dialect::Submarine => {
            let (file, mut check) = yaml::read(source, KIND, MAX_NODES)?;
            Ok((submarine(&mut check, file, folder), check))
        }
    }
}

enum Dialect {
    Own,
    JupyterImagePuller,
    Submarine,
}

/// Which kind of file it is. A word that only other kinds have comes first, so that most files are read once.
fn of(source: &Source) -> Dialect {
    if !source.text.contains(jupyter_image_puller::KIND) && !source.text.contains("dockerImage") {
        return Dialect::Own;
    }
    match yaml::header(source, MAX_NODES) {
        Some(header) if header.kind.as_ref().is_some_and(|kind| kind.value == jupyter_image_puller::KIND) => {
            Dialect::JupyterImagePuller
        }
        Some(header) if header.kind.is_none() && header.docker_image.is_some() => Dialect::Submarine,
        _ => Dialect::Own,
    }
}

fn jupyter_image_puller(check: &mut Check<'_>, file: JupyterImagePullerFile, folder: Folder<'_>) -> EnvironmentSpec {
    if let Some((place, problem)) = wrong_header(
        Some(&file.api_version),
        Some(&file.kind),
        (jupyter_image_puller::API_VERSION, jupyter_image_puller::KIND),
    ) {
        check.report(place, problem);
    }
    if let Some(namespace) = file.metadata.and_then(|metadata| metadata.namespace)
        && namespace.value != folder.tenant.namespace
    {
        let (name, own) = (folder.name, &folder.tenant.namespace);
        check.report(
            namespace.place,
            Problem::new(Category::Policy, format!("the tenant `{name}` has the namespace `{own}`, not this one"))
                .hint(format!(
                    "write `namespace: {own}` or leave it out, or move the file to the folder of another tenant"
                )),
        );
    }
    let Located { value: images, place } = file.spec.images;
    EnvironmentSpec {
        node_selector: file.spec.node_selector,
        refresh: file
            .spec
            .refresh_hours
            .and_then(|text| Some(Located { place: text.place, value: hours(check, &text)? })),
        ..EnvironmentSpec::of(Located {
            value: images.into_iter().map(|image| puller_image(check, image, folder)).collect(),
            place,
        })
    }
}

fn puller_image(check: &mut Check<'_>, file: PullerImage, folder: Folder<'_>) -> ImageEntry {
    let auth = file.auth.and_then(|auth| {
        let given = Given { field: "auth", secret: auth.secret, username: auth.username, password: auth.password };
        given.secret(check, &file.name, &file.image, folder)
    });
    ImageEntry { pull_secret: auth, ..ImageEntry::of(file.name, file.image) }
}

fn submarine(check: &mut Check<'_>, file: SubmarineFile, folder: Folder<'_>) -> EnvironmentSpec {
    let auth = file.docker_auth_spec.and_then(|auth| {
        let given =
            Given { field: "dockerAuthSpec", secret: auth.secret, username: auth.username, password: auth.password };
        let password = given.username.is_some() || given.password.is_some();
        match auth.kind {
            Some(kind) if kind.value == DockerAuthType::Password && !password => {
                check.report(
                    kind.place,
                    Problem::new(Category::Schema, "there is no password, and there should be none").hint(
                        "write `\"type\": \"secret\"` and the name of a Secret as `secret`, or remove `dockerAuthSpec`",
                    ),
                );
                None
            }
            _ => given.secret(check, &file.name, &file.docker_image, folder),
        }
    });
    let place = file.docker_image.place;
    let image = ImageEntry { pull_secret: auth, ..ImageEntry::of(file.name, file.docker_image) };
    EnvironmentSpec { description: file.description, ..EnvironmentSpec::of(Located { value: vec![image], place }) }
}

/// Hours, as Submarine counts, in larder's own form.
fn hours(check: &mut Check<'_>, text: &Located<String>) -> Option<String> {
    let read = |text: &str| {
        let seconds = text.trim().parse::<f64>().ok().map(|hours| (hours * 3600.0).round());
        seconds
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .ok_or_else(|| {
                Problem::new(Category::Schema, format!("`{text}` is no number of hours"))
                    .hint("write a number above 0, as in '2' or 0.5")
            })
            .and_then(|time| values::duration(&format!("{}s", time.as_secs())).map(|_| format!("{}s", time.as_secs())))
    };
    check.read(Some(text), read)
}

impl EnvironmentSpec {
    /// With these images and nothing else.
    fn of(images: Located<Vec<ImageEntry>>) -> Self {
        Self {
            display_name: None,
            description: None,
            images,
            pool: None,
            node_selector: None,
            tolerations: None,
            affinity: None,
            refresh: None,
            puller: None,
            resources: None,
            suspend: None,
            allow: None,
        }
    }
}

impl ImageEntry {
    /// With name and reference and nothing else.
    fn of(name: Located<String>, image: Located<String>) -> Self {
        Self { name, image, policy: None, pull_secret: None, platforms: None }
    }
}
