//! Mirrors: tried in order, never final, never given another host's credentials.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
};

use wiremock::ResponseTemplate;

use super::support::{
    CANARY, Fake, Found, Given, Image, answer, challenge, client, header, keyring, plain, request, status,
};
use crate::{
    io::registry::Patience,
    model::{
        registries::{Registries, RegistryOptions},
        resolution::{Answer, Question},
    },
};

/// A server that answers each connection with these bytes and closes it; None: it closes at once.
fn raw(answer: Option<&'static [u8]>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            if let Some(answer) = answer {
                let _ = stream.read(&mut [0; 8192]);
                let _ = stream.write_all(answer);
            }
        }
    });
    host
}

/// A port of this machine at which nobody listens.
fn nobody() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

fn mirrored(upstream: &Fake, mirrors: &[String]) -> Registries {
    let mut registries = plain(&[upstream]);
    let options = registries.0.get_mut(&upstream.host()).unwrap();
    options.mirrors = mirrors.iter().map(|mirror| mirror.parse().unwrap()).collect();
    registries
}

async fn resolve(registries: &Registries, upstream: &Fake, given: &Given) -> Result<Found, String> {
    let result = client(registries).resolve(request(&format!("{}/team/app:1", upstream.host()), None), given).await;
    result.map_err(|failure| failure.to_string())
}

#[tokio::test]
async fn a_mirror_is_asked_first_and_alone() {
    let image = Image::new();
    let (mirror, upstream) = (Fake::with(&image).await, Fake::with(&image).await);
    let registries = mirrored(&upstream, &[format!("http://{}/quay.io", mirror.host())]);
    assert_eq!(resolve(&registries, &upstream, &Given::none()).await.unwrap().digest, image.digest());
    assert_eq!(mirror.log().await[0], "HEAD /v2/quay.io/team/app/manifests/1");
    assert_eq!(mirror.received().await[0].url.query(), None);
    assert!(upstream.log().await.is_empty());
    // a mirror of several registries is told which one is meant
    let registries = mirrored(&upstream, &[format!("http://{}", mirror.host())]);
    resolve(&registries, &upstream, &Given::none()).await.unwrap();
    let last = mirror.received().await.pop().unwrap();
    assert!(last.url.query().unwrap().starts_with("ns=127.0.0.1"), "{}", last.url);
}

#[tokio::test]
async fn a_mirrors_failure_is_not_final() {
    // status, reset, no TLS, no answer, short body, wrong body, wrong name
    let image = Image::new();
    let mut mirrors = vec![
        format!("http://{}", nobody()),
        format!("http://{}", raw(None)),
        format!("https://{}", raw(None)),
        format!("https://{}", raw(Some(b"HTTP/1.1 400 Bad Request\r\n\r\n"))),
        format!("http://{}", raw(Some(b"nonsense\r\n\r\n"))),
        format!("http://{}", raw(Some(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"))),
        "http://mirror.invalid".to_owned(),
    ];
    let mut fakes = Vec::new();
    for code in [503, 500, 404, 403, 401, 429, 418] {
        fakes.push(Fake::new(move |_| status(code)).await);
    }
    fakes.push(Fake::new(|_| challenge("Basic")).await);
    // A body whose hash is not what was asked for
    let served = image.clone();
    fakes.push(
        Fake::new(move |request| match request.method.as_str() {
            "HEAD" => served.answer(request),
            _ => ResponseTemplate::new(200).set_body_raw(served.manifests[0].clone(), super::support::MANIFEST),
        })
        .await,
    );
    mirrors.extend(fakes.iter().map(|fake| format!("http://{}", fake.host())));
    for mirror in &mirrors {
        let upstream = Fake::with(&image).await;
        let registries = mirrored(&upstream, std::slice::from_ref(mirror));
        let resolved = resolve(&registries, &upstream, &Given::none()).await;
        assert_eq!(resolved.unwrap_or_else(|error| panic!("{mirror}: {error}")).digest, image.digest(), "{mirror}");
    }
    // All of them, one after the other
    let upstream = Fake::with(&image).await;
    assert_eq!(
        resolve(&mirrored(&upstream, &mirrors), &upstream, &Given::none()).await.unwrap().digest,
        image.digest()
    );
    // Where no place has it, all that were asked are named
    let upstream = Fake::new(|_| status(404)).await;
    let failure = resolve(&mirrored(&upstream, &mirrors[..2]), &upstream, &Given::none()).await.unwrap_err();
    let named = [&mirrors[0][7..], &mirrors[1][7..], &upstream.host()].iter().all(|host| failure.contains(host));
    assert!(named && failure.contains("does not exist"), "{failure}");
}

#[tokio::test]
async fn a_mirror_never_gets_upstreams_credentials() {
    let image = Image::new();
    let mirror = Fake::new(|_| challenge("Basic")).await;
    let served = image.clone();
    let upstream = Fake::new(move |request| match header(request, "authorization") {
        Some(_) => served.answer(request),
        None => challenge("Basic"),
    })
    .await;
    let registries = mirrored(&upstream, &[format!("http://{}", mirror.host())]);
    let given = Given::both(&keyring(&[(&upstream.host(), "u", CANARY)]));
    assert_eq!(resolve(&registries, &upstream, &given).await.unwrap().digest, image.digest());
    assert!(mirror.received().await.iter().all(|request| header(request, "authorization").is_none()));
    // A key of the mirror's own is used for it, and not for the registry.
    let served = image.clone();
    let mirror = Fake::new(move |request| match header(request, "authorization") {
        Some(_) => served.answer(request),
        None => challenge("Basic"),
    })
    .await;
    let registries = mirrored(&upstream, &[format!("http://{}", mirror.host())]);
    let before = upstream.log().await.len();
    let given = Given::both(&keyring(&[(&mirror.host(), "m", CANARY)]));
    assert_eq!(resolve(&registries, &upstream, &given).await.unwrap().digest, image.digest());
    assert_eq!(upstream.log().await.len(), before);
}

#[tokio::test]
async fn a_mirror_that_does_not_have_an_image_says_more_than_a_registry_out_of_reach() {
    let mirror = Fake::new(|_| super::support::not_found()).await;
    let upstream = nobody();
    let options = RegistryOptions {
        mirrors: vec![format!("http://{}", mirror.host()).parse().unwrap()],
        plain_http: true,
        ..RegistryOptions::default()
    };
    let registries = Registries([(upstream.clone(), options)].into());
    let result = client(&registries).resolve(request(&format!("{upstream}/team/app:1"), None), &Given::none()).await;
    let text = result.unwrap_err().to_string();
    let missing = text.find(&format!("does not exist at {}", mirror.host())).unwrap();
    let unreachable = text.find(&format!("the registry {upstream}: no connection")).unwrap();
    assert!(missing < unreachable, "{text}");
    assert!(text.contains("check the repository's path and the tag"), "{text}");
}

#[tokio::test]
async fn a_mirror_that_hangs_leaves_time_for_the_registry() {
    let image = Image::new();
    let upstream = Fake::with(&image).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mirror = listener.local_addr().unwrap();
    let registries = mirrored(&upstream, &[format!("http://{mirror}")]);
    let patience = Patience { question: std::time::Duration::from_secs(2), ..super::support::LONG };
    let question = Question::Digest(request(&format!("{}/team/app:1", upstream.host()), None).lookup);
    let answer = answer(&client(&registries), question, &Given::none(), patience).await.unwrap();
    assert!(matches!(answer, Answer::Digest { digest, .. } if digest == image.digest()));
    drop(listener);
}

#[tokio::test]
async fn what_a_mirror_lacks_of_an_image_comes_from_the_registry() {
    let image = Image::new();
    let amd64 = crate::model::digest::Digest::sha256(&image.manifests[0]);
    let served = image.clone();
    let lacks = amd64.clone();
    let mirror = Fake::new(move |request| match request.url.path().ends_with(lacks.as_str()) {
        true => super::support::not_found(),
        false => served.answer(request),
    })
    .await;
    let upstream = Fake::with(&image).await;
    let registries = mirrored(&upstream, &[format!("http://{}", mirror.host())]);
    let found = resolve(&registries, &upstream, &Given::none()).await.unwrap();
    let sizes: Vec<_> = found.platforms.unwrap().into_iter().map(|found| found.size).collect();
    assert_eq!(sizes, [Some(1120), Some(2120)]);
    assert_eq!(upstream.log().await, [format!("GET /v2/team/app/manifests/{amd64}")]);
}
