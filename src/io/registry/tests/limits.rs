//! Errors, rate limits and budgets.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::StreamExt as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use wiremock::ResponseTemplate;

use super::support::{
    Fake, Given, Image, LONG, answer as answer_of, client, plain, request, resolve, resolve_known, status,
};
use crate::{
    io::registry::Patience,
    model::{
        digest::Digest,
        failure::Category,
        registries::{Registries, RegistryOptions},
        resolution::{Outcome, Question},
    },
};

#[tokio::test]
async fn a_rate_limit_is_never_answered_with_a_get() {
    // no GET, the time is named, further requests are not sent at all
    for value in [Some("3600"), Some("Wed, 01 Jan 2031 00:00:00 GMT"), Some("-1"), Some("banana"), Some("120"), None] {
        let fake = Fake::new(move |_| {
            let answer = status(429).set_body_string("Too Many Requests (HAP429).");
            value.map_or(answer.clone(), |value| answer.append_header("Retry-After", value))
        })
        .await;
        let other = Image::new();
        let good = Fake::with(&other).await;
        let client = client(&plain(&[&fake, &good]));
        let of = |fake: &Fake, tag: usize| request(&format!("{}/team/app:{tag}", fake.host()), Some(&other.digest()));
        let failure = client.resolve(of(&fake, 0), &Given::none()).await.unwrap_err();
        assert!(failure.to_string().contains("rate limited until 20"), "{failure}");
        assert_eq!(failure.category(), Category::Registry);
        let requests = (0..20).flat_map(|tag| [of(&fake, tag), of(&good, tag)]).collect();
        let resolution = client.resolve_all(requests, &Given::none()).await;
        // Other registries continue.
        assert_eq!(resolution.values().filter(|answer| answer.is_ok()).count(), 20);
        assert_eq!(fake.log().await, ["HEAD /v2/team/app/manifests/0"], "{value:?}");
    }
}

#[tokio::test]
async fn a_short_wait_is_kept_within_the_pass() {
    let image = Image::new();
    let (served, asked) = (image.clone(), Arc::new(AtomicUsize::new(0)));
    let fake = Fake::new(move |request| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => status(429).append_header("Retry-After", "0"),
        _ => served.answer(request),
    })
    .await;
    assert_eq!(resolve(&fake, &Given::none()).await.unwrap().digest, image.digest());
    // but only once
    let fake = Fake::new(|_| status(429).append_header("Retry-After", "0")).await;
    assert!(resolve(&fake, &Given::none()).await.unwrap_err().to_string().contains("rate limited until"));
    assert_eq!(fake.log().await.len(), 2);
}

#[tokio::test]
async fn server_errors_are_not_answered_with_a_get() {
    let cases: [(ResponseTemplate, &str); 4] = [
        (status(503).set_body_raw("<p>down</p> ".repeat(100_000), "text/html"), "status 503"),
        (status(500), "status 500"),
        (status(502).set_body_string("bad gateway\n"), "status 502"),
        (status(418), "status 418"),
    ];
    for (answer, words) in cases {
        let fake = Fake::new(move |_| answer.clone()).await;
        let failure = resolve_known(&fake, &Given::none(), Some(&Image::new().digest())).await.unwrap_err().to_string();
        assert!(failure.contains(words) && failure.contains(&fake.host()) && failure.len() < 600, "{failure}");
        assert_eq!((fake.count("HEAD").await, fake.count("GET").await), (1, 0));
    }
}

#[tokio::test]
async fn words_of_a_get_are_shown() {
    // plain text; at most 200 characters
    let fake = Fake::new(|_| status(404).set_body_string("404 page not found\n")).await;
    let failure = resolve(&fake, &Given::none()).await.unwrap_err().to_string();
    assert!(failure.contains("404 page not found"), "{failure}");
    let fake = Fake::new(|request| match request.method.as_str() {
        "GET" => status(503).set_body_string("x".repeat(1 << 20)),
        _ => status(405),
    })
    .await;
    let failure = resolve(&fake, &Given::none()).await.unwrap_err().to_string();
    assert!(failure.contains(&"x".repeat(200)) && !failure.contains(&"x".repeat(201)), "{failure}");
}

#[tokio::test]
async fn the_remaining_quota_is_known() {
    for (value, expected) in [("76;w=21600", Some(76)), ("100", Some(100)), ("many", None)] {
        let image = Image::new();
        let digest = image.digest();
        let fake = Fake::new(move |request| image.answer(request).append_header("RateLimit-Remaining", value)).await;
        let client = client(&plain(&[&fake]));
        client.resolve(request(&format!("{}/a", fake.host()), Some(&digest)), &Given::none()).await.unwrap();
        assert_eq!(client.remaining_quota().get(&fake.host()).copied(), expected, "{value}");
    }
}

/// Answers every request of a connection with this digest, until it is closed.
async fn answer(mut stream: TcpStream, digest: Digest) {
    let answer = format!("HTTP/1.1 200 OK\r\nDocker-Content-Digest: {digest}\r\nContent-Length: 5\r\n\r\n");
    while stream.write_all(answer.as_bytes()).await.is_ok() && stream.read(&mut [0; 8192]).await.unwrap_or(0) > 0 {}
}

#[tokio::test]
async fn at_most_sixteen_at_a_time() {
    // 16 requests come and are not answered; the next connection is not a 17th of them, but the test's own.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let digest = Digest::sha256(b"known");
    let options = RegistryOptions { plain_http: true, ..RegistryOptions::default() };
    let client = client(&Registries([(host.clone(), options)].into()));
    let requests = (0..64).map(|tag| request(&format!("{host}/team/app:{tag}"), Some(&digest))).collect();
    let asked = tokio::spawn(async move { client.resolve_all(requests, &Given::none()).await });
    let mut held = Vec::new();
    while held.len() < 16 {
        let (mut stream, _) = listener.accept().await.unwrap();
        assert!(stream.read(&mut [0; 8192]).await.unwrap() > 0);
        held.push(stream);
    }
    let own = TcpStream::connect(&host).await.unwrap();
    let (_, next) = listener.accept().await.unwrap();
    assert_eq!(next, own.local_addr().unwrap());
    for stream in held {
        tokio::spawn(answer(stream, digest.clone()));
    }
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let digest = digest.clone();
            tokio::spawn(async move {
                if stream.read(&mut [0; 8192]).await.unwrap_or(0) > 0 {
                    answer(stream, digest).await;
                }
            });
        }
    });
    let resolution = asked.await.unwrap();
    assert_eq!(resolution.len(), 64);
    assert!(resolution.values().all(Result::is_ok), "{resolution:?}");
}

#[tokio::test]
async fn one_failure_stops_no_other() {
    let image = Image::new();
    let served = image.clone();
    let log = Arc::new(Mutex::new(()));
    let fake = Fake::new(move |request| {
        let _keep = log.lock().unwrap();
        if request.url.path().contains("/bad/") { status(500) } else { served.answer(request) }
    })
    .await;
    let client = client(&plain(&[&fake]));
    let host = fake.host();
    let all = vec![
        request(&format!("{host}/bad/a"), None),
        request(&format!("{host}/good/a"), None),
        request("unreachable.invalid/a", None),
    ];
    let resolution = client.resolve_all(all, &Given::none()).await;
    let said: Vec<_> =
        resolution.iter().map(|(key, answer)| (key.reference.path().to_owned(), answer.is_ok())).collect();
    assert_eq!(said, [("bad/a".to_owned(), false), ("good/a".to_owned(), true), ("a".to_owned(), false)]);
    let failure = resolution.into_values().next_back().unwrap().unwrap_err().to_string();
    assert!(failure.contains("unreachable.invalid: DNS lookup failed"), "{failure}");
}

#[tokio::test]
async fn a_host_that_does_not_answer_is_given_up_for_the_pass() {
    // It takes connections and closes them at once, and counts.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let connections = Arc::new(AtomicUsize::new(0));
    let counter = connections.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counter.fetch_add(1, Ordering::SeqCst);
            drop(stream);
        }
    });
    let registries =
        Registries([(host.clone(), RegistryOptions { plain_http: true, ..RegistryOptions::default() })].into());
    let client = client(&registries);
    let requests = || (0..400).map(|tag| request(&format!("{host}/team/app:{tag}"), None)).collect();
    let resolution = client.resolve_all(requests(), &Given::none()).await;
    assert!(resolution.values().all(Result::is_err));
    let first = connections.load(Ordering::SeqCst);
    assert!(first < 200, "{first} connections for 400 references");
    // The next pass asks again.
    client.resolve_all(requests(), &Given::none()).await;
    assert!(connections.load(Ordering::SeqCst) > first);
}

#[tokio::test]
async fn a_registry_that_uses_up_its_time_leaves_its_questions_for_the_next_pass() {
    let image = Image::new();
    let fake = Fake::with(&image).await;
    let given = Given::none();
    let client = client(&plain(&[&fake]));
    let patience = Patience { registry: Duration::ZERO, ..LONG };
    let asking = client.begin(&given, patience);
    let questions = (0..40).map(|tag| Question::Digest(request(&format!("{}/a:{tag}", fake.host()), None).lookup));
    let outcomes: Vec<_> = asking.ask(questions.collect()).map(|(_, outcome)| outcome).collect().await;
    assert_eq!(outcomes, vec![Outcome::NotAsked; 40]);
    assert!(fake.log().await.is_empty());
}

#[tokio::test]
async fn a_question_that_takes_too_long_fails_and_says_so() {
    // It accepts connections and never answers.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let options = RegistryOptions { plain_http: true, ..RegistryOptions::default() };
    let client = client(&Registries([(host.clone(), options)].into()));
    let patience = Patience { question: Duration::from_millis(50), ..LONG };
    let question = Question::Digest(request(&format!("{host}/a:1"), None).lookup);
    let failure = answer_of(&client, question, &Given::none(), patience).await.unwrap_err();
    assert!(failure.to_string().contains(&format!("{host}: no answer in time")), "{failure}");
    assert!(failure.problems()[0].hint.as_deref().unwrap().contains("lock stays unchanged"), "{failure}");
    drop(listener);
}

#[tokio::test]
async fn a_rate_limit_may_come_as_another_status() {
    for (code, name, value) in [
        (403, "Retry-After", "60"),
        (403, "x-ratelimit-remaining", "0"),
        (503, "Retry-After", "Wed, 01 Jan 2031 00:00:00 GMT"),
    ] {
        let fake = Fake::new(move |_| status(code).append_header(name, value)).await;
        let failure = resolve(&fake, &Given::none()).await.unwrap_err();
        assert!(failure.to_string().contains("rate limited until 20"), "{failure}");
        assert_eq!(fake.log().await.len(), 1, "{name}");
    }
}
