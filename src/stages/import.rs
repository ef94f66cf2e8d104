//! Brings over what people already have: files of other image pullers become environments.
//!
//! Each importer reads any shape without panic and says, for each place, what it became or why it was left out. What it
//! writes depends on the files alone, so importing twice changes nothing.

mod cursor;
mod document;
mod draft;
mod finish;
mod image;
mod image_cache;
mod image_pull_job;
mod image_puller;
mod names;
mod nodes;
mod objects;
mod secret;
mod submarine;
mod tljh;
mod write;
mod z2jh;

use std::{collections::BTreeMap, fmt, str::FromStr};

use serde::Serialize;

use crate::model::{failure::Problem, name::Name, settings::Settings};

use self::draft::Collected;

/// What files are imported from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// Submarine's `JupyterImagePuller` objects.
    JupyterImagePuller,
    /// Submarine's environments, as its REST API has them.
    SubmarineEnvironment,
    /// Values of zero-to-jupyterhub's Helm chart, alone or inside those of a chart around it.
    Zero2Jupyterhub,
    /// kube-fledged's `ImageCache` objects.
    ImageCache,
    /// OpenKruise's `ImagePullJob` and `ImageListPullJob` objects.
    ImagePullJob,
    /// The Che image puller's settings: environment variables, its ConfigMap or its `KubernetesImagePuller`.
    ImagePuller,
    /// What `GET api/environments` of tljh-repo2docker answers.
    TljhRepo2docker,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Zero2Jupyterhub,
        Self::JupyterImagePuller,
        Self::SubmarineEnvironment,
        Self::ImageCache,
        Self::ImagePullJob,
        Self::ImagePuller,
        Self::TljhRepo2docker,
    ];

    /// Its word on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::JupyterImagePuller => "jupyter-image-puller",
            Self::SubmarineEnvironment => "submarine-environment",
            Self::Zero2Jupyterhub => "zero-to-jupyterhub",
            Self::ImageCache => "image-cache",
            Self::ImagePullJob => "image-pull-job",
            Self::ImagePuller => "image-puller",
            Self::TljhRepo2docker => "tljh-repo2docker",
        }
    }

    /// What its files are, in a sentence's part.
    pub fn expected(self) -> &'static str {
        match self {
            Self::JupyterImagePuller => "JupyterImagePuller objects (org.apache.submarine/v1)",
            Self::SubmarineEnvironment => "a Submarine environment as JSON, with `name` and `dockerImage`",
            Self::Zero2Jupyterhub => {
                "values of zero-to-jupyterhub, with `singleuser`, at the top or below `jupyterhub`"
            }
            Self::ImageCache => "ImageCache objects of kube-fledged (kubefledged.io)",
            Self::ImagePullJob => "ImagePullJob or ImageListPullJob objects of OpenKruise (apps.kruise.io)",
            Self::ImagePuller => {
                "settings of the Che image puller: `IMAGES=name=image;…`, its ConfigMap, its Deployment or a KubernetesImagePuller"
            }
            Self::TljhRepo2docker => "the answer of tljh-repo2docker's GET api/environments, with `images`",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let folded: String = text.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).collect::<String>().to_lowercase();
        let other = match folded.as_str() {
            "z2jh" | "zero2jupyterhub" | "jupyterhub" => Some(Self::Zero2Jupyterhub),
            "kubefledged" => Some(Self::ImageCache),
            "openkruise" | "kruise" | "imagelistpulljob" => Some(Self::ImagePullJob),
            "che" | "kubernetesimagepuller" => Some(Self::ImagePuller),
            "submarine" => Some(Self::SubmarineEnvironment),
            "tljh" => Some(Self::TljhRepo2docker),
            _ => None,
        };
        let named = Self::ALL.into_iter().find(|format| format.as_str().replace('-', "") == folded);
        named.or(other).ok_or_else(|| {
            let words: Vec<&str> = Self::ALL.iter().map(|format| format.as_str()).collect();
            format!("one of {} is expected", words.join(", "))
        })
    }
}

/// A file to import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Its name as it was given, for the report.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// What came of an import.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Imported {
    /// Files by their path in the environment repository: `environments/<tenant>/<name>.yaml`.
    pub files: BTreeMap<String, String>,
    /// A line for each place of the inputs that holds an image or something about it: first what became something.
    pub report: Vec<Line>,
    /// Inputs that could not be read, and environments that would not be valid; these have no file.
    pub problems: Vec<Problem>,
}

/// What became of a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// File, line and path.
    pub from: String,
    /// `tenant/environment` or `tenant/environment image`; none: it was left out.
    pub to: Option<String>,
    /// Why, or what is worth knowing; may be empty.
    pub note: String,
}

/// Imports files into a tenant. `settings` are those of the environment repository, if there is one already: an
/// environment names its pool where one has the very same nodes.
pub fn import(format: Format, inputs: &[Input], tenant: &Name, settings: Option<&Settings>) -> Imported {
    let mut collected = Collected::default();
    let namespace = settings.and_then(|settings| settings.tenants.get(tenant)).map(|tenant| tenant.namespace.as_str());
    let namespace = namespace.unwrap_or("NAMESPACE");
    for input in inputs {
        match format {
            Format::JupyterImagePuller => submarine::pullers(input, namespace, &mut collected),
            Format::SubmarineEnvironment => submarine::environments(input, namespace, &mut collected),
            Format::Zero2Jupyterhub => z2jh::values(input, namespace, &mut collected),
            Format::ImageCache => image_cache::caches(input, &mut collected),
            Format::ImagePullJob => image_pull_job::jobs(input, &mut collected),
            Format::ImagePuller => image_puller::settings(input, &mut collected),
            Format::TljhRepo2docker => tljh::environments(input, &mut collected),
        }
    }
    finish::finish(collected, tenant, settings)
}
