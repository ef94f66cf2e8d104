//! Files of other systems that are read as environments: Submarine's `JupyterImagePuller` and its environment JSON.
//!
//! They become an environment's file as it stands, so that one set of checks holds for all.

mod auth;
pub mod jupyter_image_puller;
pub mod submarine;

use std::time::Duration;

use crate::model::failure::{Category, Failure, Problem, Source};

use self::{
    jupyter_image_puller::{JupyterImagePullerFile, PullerImage},
    submarine::SubmarineFile,
};
use super::{
    file::{EnvironmentFile, EnvironmentSpec, ImageEntry, KIND},
    limits::Tenancy,
};
use crate::stages::source::{
    check::{self, Check},
    header::Header,
    located::Located,
    values, yaml,
};

/// Reads a file of any kind that is an environment, and begins its check.
///
/// # Errors
/// All that is wrong with its structure, when nothing is left that could be checked.
pub fn read<'a>(source: &'a Source, tenancy: Tenancy<'_>) -> Result<(EnvironmentSpec, Check<'a>), Failure> {
    match of(source) {
        Dialect::Own => {
            let (file, mut check) = check::open::<EnvironmentFile>(source, KIND)?;
            check.header(&file.api_version, &file.kind, KIND);
            Ok((file.spec, check))
        }
        Dialect::JupyterImagePuller => {
            let (file, mut check) = check::open(source, jupyter_image_puller::KIND)?;
            Ok((jupyter_image_puller(&mut check, file, tenancy), check))
        }
        Dialect::Submarine => {
            let (file, mut check) = check::open(source, KIND)?;
            Ok((submarine(&mut check, file, tenancy), check))
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
    if !source.text.contains(jupyter_image_puller::KIND.name) && !source.text.contains("dockerImage") {
        return Dialect::Own;
    }
    match yaml::parse::<Header>(&source.text, KIND) {
        Ok(header) if header.kind.as_ref().is_some_and(|kind| kind.value == jupyter_image_puller::KIND.name) => {
            Dialect::JupyterImagePuller
        }
        Ok(header) if header.kind.is_none() && header.docker_image.is_some() => Dialect::Submarine,
        _ => Dialect::Own,
    }
}

fn jupyter_image_puller(check: &mut Check<'_>, file: JupyterImagePullerFile, tenancy: Tenancy<'_>) -> EnvironmentSpec {
    check.header(&file.api_version, &file.kind, jupyter_image_puller::KIND);
    if let Some(namespace) = file.metadata.and_then(|metadata| metadata.namespace)
        && namespace.value != tenancy.tenant.namespace
    {
        let (name, own) = (tenancy.name, &tenancy.tenant.namespace);
        check.report(
            namespace.place,
            Problem::new(Category::Policy, format!("the tenant `{name}` has the namespace `{own}`, not this one"))
                .hint(format!(
                    "write `namespace: {own}` or leave it out, or move the file to the directory of another tenant"
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
        images: Located { value: images.into_iter().map(|image| puller_image(check, image, tenancy)).collect(), place },
        ..EnvironmentSpec::default()
    }
}

fn puller_image(check: &mut Check<'_>, file: PullerImage, tenancy: Tenancy<'_>) -> ImageEntry {
    let mut image = ImageEntry { name: file.name, image: file.image, ..ImageEntry::default() };
    image.pull_secret = file.auth.and_then(|auth| auth.secret(check, "auth", &image, tenancy));
    image
}

fn submarine(check: &mut Check<'_>, file: SubmarineFile, tenancy: Tenancy<'_>) -> EnvironmentSpec {
    let place = file.docker_image.place;
    let mut image = ImageEntry { name: file.name, image: file.docker_image, ..ImageEntry::default() };
    image.pull_secret = file.docker_auth_spec.and_then(|auth| auth.secret(check, "dockerAuthSpec", &image, tenancy));
    let images = Located { value: vec![image], place };
    EnvironmentSpec { description: file.description, images, ..EnvironmentSpec::default() }
}

/// Hours, as Submarine counts, in larder's own form.
fn hours(check: &mut Check<'_>, text: &Located<String>) -> Option<String> {
    let read = |text: &str| {
        let seconds = text.trim().parse::<f64>().ok().map(|hours| (hours * 3600.0).round());
        seconds
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .ok_or_else(|| {
                Problem::new(Category::Schema, format!("`{text}` is not a number of hours"))
                    .hint("write a number above 0, as in '2' or 0.5")
            })
            .and_then(|time| values::duration(&format!("{}s", time.as_secs())).map(|_| format!("{}s", time.as_secs())))
    };
    check.read(Some(text), read)
}
