//! Requests of each kind of sender, right and wrong.

use std::time::Duration;

use base64::Engine as _;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::{
    peer::{SECRET, push, pushed, sign},
    server::Server,
};

const COMMIT: &str = "59b20b8d5c6ff8d09518454d4dd8b7b30f095ab5";
const JSON: (&str, &str) = ("content-type", "application/json");

#[tokio::test]
async fn each_sender_is_heard_with_the_secret_and_refused_without() {
    let server = Server::start().await;
    let main = push("main", COMMIT);
    let hex = sign(SECRET, main.as_bytes());
    let hub = format!("sha256={hex}");
    let wrong = format!("sha256={}", sign("another-secret-123", main.as_bytes()));
    let bearer = format!("Bearer {SECRET}");
    let gitlab = main.replacen('{', r#"{"object_kind":"push","#, 1);
    let tag = pushed("quay.io/a/b", "1");
    let events = ("content-type", "application/vnd.docker.distribution.events.v2+json");
    let harbor =
        r#"{"type":"PUSH_ARTIFACT","event_data":{"resources":[{"tag":"1"}],"repository":{"repo_full_name":"a/b"}}}"#;
    let quay = r#"{"docker_url":"quay.io/a/b","updated_tags":["1"]}"#;
    let hub_body = r#"{"push_data":{"tag":"1"},"repository":{"repo_name":"debian"}}"#;
    let in_path = |word: &str, secret: &str| format!("/hooks/{word}/{secret}");
    let none: Vec<(&str, &str)> = vec![JSON];
    for (path, headers, body, status, news) in [
        (
            "/hooks/github".to_owned(),
            vec![JSON, ("x-github-event", "push"), ("x-hub-signature-256", &hub)],
            main.as_str(),
            202,
            "59b20b8",
        ),
        (
            "/hooks/github".to_owned(),
            vec![JSON, ("x-github-event", "push"), ("x-hub-signature-256", &wrong)],
            &main,
            401,
            "",
        ),
        (
            "/hooks/github".to_owned(),
            vec![JSON, ("x-github-event", "push"), ("authorization", &bearer)],
            &main,
            401,
            "",
        ),
        ("/hooks/github".to_owned(), none.clone(), &main, 401, ""),
        (
            "/hooks/gitea".to_owned(),
            vec![JSON, ("x-gitea-event", "push"), ("x-gitea-signature", &hex), ("x-gitea-delivery", "1")],
            &format!("{main} "),
            401,
            "",
        ),
        ("/hooks/gitea".to_owned(), vec![JSON, ("x-gitea-event", "push")], &main, 401, ""),
        (
            "/hooks/gitlab".to_owned(),
            vec![JSON, ("x-gitlab-event", "Push Hook"), ("x-gitlab-token", SECRET)],
            &gitlab,
            202,
            "59b20b8",
        ),
        (
            "/hooks/gitlab".to_owned(),
            vec![JSON, ("x-gitlab-event", "Push Hook"), ("x-gitlab-token", "canary-webhook-secret-2")],
            &gitlab,
            401,
            "",
        ),
        ("/hooks/registry".to_owned(), vec![events, ("authorization", &bearer)], &tag, 202, "quay.io/a/b:1"),
        ("/hooks/registry".to_owned(), vec![events, ("authorization", "Bearer x")], &tag, 401, ""),
        ("/hooks/registry".to_owned(), vec![events], &tag, 401, ""),
        ("/hooks/harbor".to_owned(), vec![JSON, ("authorization", SECRET)], harbor, 202, "a/b:1"),
        ("/hooks/harbor".to_owned(), vec![JSON, ("authorization", "")], harbor, 401, ""),
        (in_path("quay", SECRET), none.clone(), quay, 202, "quay.io/a/b:1"),
        (in_path("quay", "x"), none.clone(), quay, 401, ""),
        (in_path("quay", ""), none.clone(), quay, 401, ""),
        (in_path("dockerhub", SECRET), none.clone(), hub_body, 202, "docker.io/library/debian:1"),
        ("/hooks/dockerhub".to_owned(), vec![JSON, ("authorization", &bearer)], hub_body, 401, ""),
        (in_path("github", SECRET), none.clone(), &main, 404, ""),
        ("/hooks/other".to_owned(), none.clone(), &main, 404, ""),
        ("/metrics".to_owned(), none.clone(), "", 404, ""),
    ] {
        assert_eq!(server.post(&path, &headers, body.to_owned()).await, status, "{path} {headers:?}");
        assert_eq!(server.news(), news, "{path} {headers:?}");
    }
    assert_eq!((server.count("github", "told"), server.count("github", "unauthorized")), (1, 3));
    assert_eq!((server.count("quay", "told"), server.count("quay", "unauthorized")), (1, 2));
    assert_eq!(server.count("unknown", "not-found"), 3);
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let got = client.get(format!("http://{}/hooks/github", server.address)).send().await.unwrap();
    assert_eq!((got.status().as_u16(), got.headers()["allow"].to_str().unwrap()), (405, "POST"));
}

#[tokio::test]
async fn authentic_requests_that_say_nothing_are_told_apart() {
    let server = Server::start().await;
    server.wake.follow(Some("main".to_owned()));
    for (event, body, status, outcome) in [
        ("ping", r#"{"zen":"x"}"#.to_owned(), 200, "pinged"),
        ("issues", "{}".to_owned(), 200, "ignored"),
        ("push", push("other", COMMIT), 200, "ignored"),
        ("push", r#"{"ref":"refs/tags/v1"}"#.to_owned(), 200, "ignored"),
        ("push", "not json".to_owned(), 400, "malformed"),
        ("push", r#"{"commits":[]}"#.to_owned(), 400, "malformed"),
    ] {
        let before = server.count("github", outcome);
        let id = fastrand::u64(..).to_string();
        assert_eq!(server.github(SECRET, &id, event, &body).await, status, "{event} {body}");
        assert_eq!(server.count("github", outcome), before + 1, "{event} {body}");
        assert_eq!(server.news(), "");
    }
    // Forms, and types that are neither.
    let form: String =
        form_urlencoded::Serializer::new(String::new()).append_pair("payload", &push("main", COMMIT)).finish();
    let signature = format!("sha256={}", sign(SECRET, form.as_bytes()));
    for (kind, status, news) in [("text/plain", 415, ""), ("application/x-www-form-urlencoded; charset=utf-8", 200, "")]
    {
        let headers = [("content-type", kind), ("x-github-event", "push"), ("x-hub-signature-256", signature.as_str())];
        assert_eq!(server.post("/hooks/github", &headers, form.clone()).await, status, "{kind}");
        assert_eq!(server.news(), news, "{kind}: sent again, so it is no news");
    }
    let form = format!("{form}&x=y");
    let signature = format!("sha256={}", sign(SECRET, form.as_bytes()));
    let headers = [
        ("content-type", "application/x-www-form-urlencoded"),
        ("x-github-event", "push"),
        ("x-hub-signature-256", signature.as_str()),
    ];
    assert_eq!(server.post("/hooks/github", &headers, form).await, 202);
    assert_eq!(server.news(), "59b20b8");
}

#[tokio::test]
async fn a_delivery_counts_once_whoever_sends_it_again() {
    let server = Server::start().await;
    let body = push("main", COMMIT);
    assert_eq!(server.github(SECRET, "1", "push", &body).await, 202);
    assert_eq!(server.news(), "59b20b8");
    // Sent again by the forge, and replayed by someone who made up another identity: it is not signed.
    for id in ["1", "2"] {
        assert_eq!(server.github(SECRET, id, "push", &body).await, 200, "{id}");
    }
    // The same identity with another body.
    assert_eq!(server.github(SECRET, "1", "push", &push("main", &COMMIT.replace('5', "6"))).await, 200);
    assert_eq!(server.news(), "");
    assert_eq!(server.count("github", "repeated"), 3);
    // A refused request uses nothing up.
    let next = push("main", &COMMIT.replace('5', "7"));
    assert_eq!(server.github("another-secret-123", "3", "push", &next).await, 401);
    assert_eq!(server.github(SECRET, "3", "push", &next).await, 202);

    // GitLab signs its time as well: an old delivery is refused though its signature is right.
    let key = [7_u8; 32];
    let token = format!("whsec_{}", base64::engine::general_purpose::STANDARD.encode(key));
    server.secrets(&[&token]);
    let body = push("main", COMMIT).replacen('{', r#"{"object_kind":"push","#, 1);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let _ = server.news();
    for (id, time, status) in [("a", now, 202), ("a", now, 200), ("b", now - 3600, 401), ("c", now + 3600, 401)] {
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
        mac.update(format!("{id}.{time}.{body}").as_bytes());
        let signature = format!("v1,{}", base64::engine::general_purpose::STANDARD.encode(mac.finalize().into_bytes()));
        let time = time.to_string();
        let headers = [
            JSON,
            ("webhook-id", id),
            ("webhook-timestamp", &time),
            ("webhook-signature", &signature),
            ("x-gitlab-event", "Push Hook"),
        ];
        assert_eq!(server.post("/hooks/gitlab", &headers, body.clone()).await, status, "{id} {time}");
    }
    assert_eq!(server.news(), "59b20b8");
}

#[tokio::test]
async fn secrets_are_rotated_without_a_restart() {
    let server = Server::start().await;
    let (old, new) = (SECRET, "canary-webhook-secret-2");
    let mut number = 0;
    for (file, with_old, with_new) in [
        (vec![old], 202, 401),
        (vec![new, "", old], 202, 202),
        (vec![new], 401, 202),
        (vec![], 503, 503),
        (vec!["short"], 503, 503),
        (vec![new; 33], 503, 503),
        (vec![new], 401, 202),
    ] {
        server.secrets(&file);
        for (secret, status) in [(old, with_old), (new, with_new)] {
            number += 1;
            let body = push("main", &format!("{number:040x}"));
            assert_eq!(server.github(secret, &number.to_string(), "push", &body).await, status, "{file:?} {secret}");
        }
    }
    std::fs::remove_file(server.file()).unwrap();
    assert_eq!(server.github(new, "x", "push", "{}").await, 503);
    assert_eq!(server.count("github", "no-secret"), 7);
}

#[tokio::test]
async fn bodies_are_bounded() {
    let server = Server::start().await;
    let sized = |bytes: usize| {
        let begin = r#"{"ref":"refs/heads/main","x":""#;
        format!("{begin}{}\"}}", "x".repeat(bytes - begin.len() - 2))
    };
    // What is too much to be read is still a push, if it is authentic.
    assert_eq!(server.github(SECRET, "1", "push", &sized(256 << 10)).await, 202);
    assert_eq!(server.github(SECRET, "2", "push", &sized((256 << 10) + 1)).await, 202);
    assert_eq!(server.news(), "branch");
    assert_eq!(server.github("another-secret-123", "3", "push", &sized(4 << 20)).await, 401);
    assert_eq!(server.news(), "");
    let bearer = format!("Bearer {SECRET}");
    let large = format!("{} ", pushed("a/b", "1")) + &" ".repeat(256 << 10);
    assert_eq!(server.post("/hooks/registry", &[JSON, ("authorization", &bearer)], large).await, 413);
    assert_eq!(server.news(), "");

    // More than anybody sends is not taken in. The listener may hang up before all of it is sent.
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "POST /hooks/github HTTP/1.1\r\nhost: x\r\nx-hub-signature-256: sha256={}\r\ncontent-length: {}\r\n\r\n",
        "0".repeat(64),
        1_u64 << 40
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let piece = vec![b'x'; 1 << 20];
    let mut sent = 0;
    while sent < 64 && stream.write_all(&piece).await.is_ok() {
        sent += 1;
    }
    assert!(sent < 64, "{sent} MiB were taken in");
    assert_eq!(server.count("github", "too-large"), 1);
}

#[tokio::test]
async fn whoever_is_slow_or_stays_is_cut_off() {
    let server = Server::patient(Duration::from_millis(300)).await;
    let head = format!(
        "POST /hooks/github HTTP/1.1\r\nhost: x\r\nx-hub-signature-256: sha256={}\r\ncontent-length: 100\r\n\r\n{{",
        "0".repeat(64)
    );
    let mut slow = TcpStream::connect(server.address).await.unwrap();
    slow.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert_eq!(server.count("github", "too-slow"), 1);

    // More connections than are served, none of which ever says anything: a real delivery still gets through.
    let mut idle = Vec::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(b"POST /hooks/github HT").await.unwrap();
        idle.push(stream);
    }
    assert_eq!(server.github(SECRET, "1", "push", &push("main", COMMIT)).await, 202);
    assert_eq!(server.news(), "59b20b8");
}
