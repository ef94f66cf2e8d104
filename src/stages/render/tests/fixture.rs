//! A small repository to render, built in code.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde_json::Value;

use crate::{
    model::{
        batch::Batch,
        digest::Digest,
        environment::{Environment, Image, Placement, Puller, Strategy},
        failure::Failure,
        lock::{Lock, LockedImage, Lockfile, Previous},
        manifest::{Kind, Manifest, Manifests, Owner},
        name::EnvironmentId,
        registries::Registries,
        settings::{Defaults, Helpers, LockSettings, Prune, Records, Settings, Tenant},
    },
    stages::render::{Options, render},
};

/// Everything that `render` takes.
pub struct World {
    pub environments: Batch<Environment>,
    pub settings: Settings,
    pub templates: BTreeMap<String, String>,
    pub lock: Lock,
    pub options: Options,
}

/// The tenants research and teaching, and the environment research/geo with one image.
pub fn world() -> World {
    let mut world = World {
        environments: Batch::new(),
        settings: settings(),
        templates: BTreeMap::new(),
        lock: Lock::new(),
        options: Options::default(),
    };
    world.add("research/geo", &[("notebook", "quay.io/jupyter/scipy-notebook:2026-11-02")]);
    world
}

impl World {
    /// Adds an environment, locked.
    pub fn add(&mut self, id: &str, images: &[(&str, &str)]) -> &mut Environment {
        let id: EnvironmentId = id.parse().unwrap();
        let images: Vec<Image> = images.iter().map(|(name, reference)| image(name, reference)).collect();
        let locked = images.iter().map(|image| (image.name.clone(), locked(&image.reference.to_string())));
        self.lock.insert(id.clone(), Ok(Lockfile { images: locked.collect() }));
        self.environments.insert(id.clone(), Ok(environment(id.clone(), images)));
        self.environment(&id.to_string())
    }

    pub fn environment(&mut self, id: &str) -> &mut Environment {
        self.environments.get_mut(&id.parse::<EnvironmentId>().unwrap()).unwrap().as_mut().unwrap()
    }

    pub fn lockfile(&mut self, id: &str) -> &mut Lockfile {
        self.lock.get_mut(&id.parse::<EnvironmentId>().unwrap()).unwrap().as_mut().unwrap()
    }

    pub fn template(&mut self, name: &str, text: &str) -> &mut Self {
        self.templates.insert(name.to_owned(), text.to_owned());
        self
    }

    /// The built-in puller with one text replaced.
    pub fn edited_puller(&mut self, from: &str, to: &str) -> &mut Self {
        let text = include_str!("../../../../templates/puller.yaml.j2");
        assert!(text.contains(from), "{from}");
        self.template("puller.yaml.j2", &text.replacen(from, to, 1))
    }

    pub fn render(&self) -> Manifests {
        render(&self.environments, &self.settings, &self.templates, &self.lock, &self.options)
    }

    pub fn manifests(&self, owner: &str) -> Result<Vec<Manifest>, Failure> {
        self.render().remove(&Owner::parse(owner).unwrap()).expect("an entry")
    }

    /// The only object of that kind.
    pub fn object(&self, owner: &str, kind: Kind) -> Value {
        let manifests = self.manifests(owner).unwrap_or_else(|failure| panic!("{failure}"));
        let mut objects = manifests.into_iter().filter(|manifest| manifest.id.kind == kind);
        let object = Value::clone(&objects.next().expect("an object").object);
        assert!(objects.next().is_none(), "one {kind}");
        object
    }

    pub fn puller(&self) -> Value {
        self.object("research/geo", Kind::DaemonSet)
    }

    pub fn failure(&self, owner: &str) -> Failure {
        self.manifests(owner).expect_err("a failure")
    }
}

pub fn settings() -> Settings {
    let tenant = |namespace: &str, create_namespace| Tenant {
        namespace: namespace.into(),
        create_namespace,
        ..Tenant::default()
    };
    Settings {
        tenants: [
            ("research".parse().unwrap(), tenant("research", true)),
            ("teaching".parse().unwrap(), tenant("teaching", false)),
        ]
        .into(),
        pools: BTreeMap::new(),
        defaults: Defaults { pool: None, refresh: Duration::from_secs(7200), puller: puller() },
        registries: Registries::default(),
        records: Records { name: "submarine-image-pull-operator-records".into() },
        lock: LockSettings::default(),
        prune: Prune { budget: 30, confirmed: Vec::new() },
        helpers: Helpers {
            hold: "docker.io/library/busybox:1.37".parse().unwrap(),
            pause: "registry.k8s.io/pause:3.10.2".parse().unwrap(),
        },
        allow: BTreeSet::new(),
    }
}

fn puller() -> Puller {
    Puller {
        strategy: Strategy::Containers,
        max_unavailable: "10%".into(),
        retain: 1,
        deadline: Duration::from_secs(1800),
    }
}

fn environment(id: EnvironmentId, images: Vec<Image>) -> Environment {
    Environment {
        path: format!("environments/{id}.yaml"),
        id,
        display_name: None,
        description: None,
        images,
        placement: Placement::default(),
        refresh: Duration::from_secs(7200),
        puller: puller(),
        resources: None,
        suspend: false,
        allow: BTreeSet::new(),
    }
}

pub fn image(name: &str, reference: &str) -> Image {
    Image {
        name: name.parse().unwrap(),
        reference: reference.parse().unwrap(),
        pull_secret: None,
        platforms: Vec::new(),
        line: 5,
    }
}

/// Locked at a digest that its reference determines.
pub fn locked(reference: &str) -> LockedImage {
    LockedImage {
        reference: reference.parse().unwrap(),
        digest: Digest::sha256(reference.as_bytes()),
        media_type: "application/vnd.oci.image.index.v1+json".into(),
        platforms: Vec::new(),
        previous: Vec::new(),
        hold: None,
    }
}

pub fn previous(reference: &str, content: &str) -> Previous {
    Previous { reference: reference.parse().unwrap(), digest: Digest::sha256(content.as_bytes()) }
}
