//! Registries that take their time, next to one that answers.

use std::{net::TcpListener, time::Duration};

use larder::{
    io::registry::{Keyring, Patience},
    model::{
        registries::{Registries, RegistryOptions},
        resolution::{CredentialSource, Lookup},
    },
    pipeline::ask_registries,
    stages::resolve::Due,
};

use super::{
    Fixed, client,
    peer::{Registry, push},
};

fn due(reference: &str) -> Due {
    let lookup = Lookup { reference: reference.parse().unwrap(), credentials: CredentialSource::Controller };
    Due { lookup, known: None }
}

#[tokio::test]
async fn a_silent_registry_holds_up_no_other_and_what_it_was_not_asked_waits() {
    let registry = Registry::open();
    let image = push(&registry, "team/app", "1").await;
    // Connections are accepted, and nothing is ever answered.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent_host = silent.local_addr().unwrap().to_string();
    let plain = RegistryOptions { plain_http: true, ..RegistryOptions::default() };
    let hosts = [registry.host().to_owned(), silent_host.clone()];
    let registries = Registries(hosts.into_iter().map(|host| (host, plain.clone())).collect());
    let fast = due(&format!("{}/team/app:1", registry.host()));
    let slow = (0..40).map(|tag| due(&format!("{silent_host}/app:{tag}")));
    let all = slow.chain([fast.clone()]).collect();
    // The registry that answers has more than enough time for its two rounds.
    let patience = Patience { question: Duration::from_secs(4), registry: Duration::from_secs(3) };
    let found = ask_registries(&client(&registries), &Fixed(Keyring::default()), all, patience).await;
    let answer = found.resolution[&fast.lookup].as_ref().unwrap();
    assert_eq!(answer.digest, image.index);
    assert_eq!(answer.evidence.as_ref().unwrap().platforms.len(), 1);
    // As many as are asked at the same time have failed; the others are neither answered nor failed.
    let failures: Vec<_> = found.resolution.values().filter_map(|answer| answer.as_ref().err()).collect();
    assert_eq!((failures.len(), found.not_asked), (16, 24));
    assert!(failures.iter().all(|failure| failure.to_string().contains("no answer in time")), "{failures:?}");
}
