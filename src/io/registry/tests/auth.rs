//! Challenges, tokens and credentials.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use wiremock::{Request as Received, ResponseTemplate};

use super::support::{CANARY, Fake, Given, Image, challenge, client, header, keyring, plain, request, resolve, status};
use crate::{
    io::registry::Keyring,
    model::{failure::Category, resolution::CredentialSource},
};

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

/// A token service that answers this body; each request's query or form is kept.
async fn tokens(answer: impl Fn(&Received) -> ResponseTemplate + Send + Sync + 'static) -> Fake {
    Fake::new(answer).await
}

#[tokio::test]
async fn a_realm_may_be_relative_to_the_registry() {
    for realm in ["/token", "token", "//HOST/token"] {
        let image = Image::new();
        let served = image.clone();
        let fake = Fake::new(move |request| match (request.url.path(), header(request, "authorization")) {
            (path, _) if path.ends_with("/token") => status(200).set_body_string(r#"{"token":"T"}"#),
            (_, Some("Bearer T")) => served.answer(request),
            _ => {
                let host = header(request, "host").unwrap();
                challenge(&format!("Bearer realm=\"{}\"", realm.replace("HOST", host)))
            }
        })
        .await;
        assert_eq!(resolve(&fake, &Given::none()).await.unwrap().digest, image.digest(), "{realm}");
    }
}

#[tokio::test]
async fn nothing_that_was_sent_is_repeated_whatever_the_status() {
    for code in [400, 403, 404, 418, 500, 502] {
        let fake = Fake::new(move |request| match header(request, "authorization") {
            None => challenge("Basic"),
            // The answer to a HEAD has no words; this one makes larder ask again with a GET.
            Some(_) if request.method.as_str() == "HEAD" => status(405),
            Some(sent) => {
                status(code).set_body_string(format!("{sent} {CANARY} see https://u:canary@registry.example.com/help"))
            }
        })
        .await;
        let given = Given::both(&keyring(&[(&fake.host(), "u", CANARY)]));
        let text = resolve(&fake, &given).await.unwrap_err().to_string();
        let sent = basic("u", CANARY);
        assert!(!text.contains(sent.split(' ').next_back().unwrap()), "{text}");
        assert!(text.contains("https://…@registry.example.com/help"), "{text}");
    }
}

#[tokio::test]
async fn a_failed_login_names_its_secret_key_and_host() {
    let secret = |exists, entries: &[(&str, &str, &str)]| {
        let mut keyring = keyring(entries);
        keyring.note_secret("Secret/ns/pull", exists);
        Given::both(&keyring)
    };
    let fake = Fake::new(|_| challenge("Basic")).await;
    let host = fake.host();
    let repository = format!("{host}/team/app");
    for (given, expected) in [
        (secret(true, &[(&host, "u", CANARY)]), vec![format!("the key `{host}` in Secret/ns/pull")]),
        (
            secret(true, &[("127.0.0.1:1", "u", CANARY)]),
            vec![format!("Secret/ns/pull has no key for `{repository}`"), "the key `127.0.0.1:1`".to_owned()],
        ),
        (secret(false, &[]), vec!["the pull secret Secret/ns/pull does not exist".to_owned()]),
    ] {
        let text = resolve(&fake, &given).await.unwrap_err().to_string();
        for part in expected {
            assert!(text.contains(&part) && text.contains(&host), "{part}: {text}");
        }
    }
}

/// A registry that wants the bearer token `T`, to be had at `realm`.
async fn bearer(realm: &str, more: &str) -> (Image, Fake) {
    let image = Image::new();
    let served = image.clone();
    let value = format!("Bearer realm=\"{realm}\"{more}");
    let fake = Fake::new(move |request| match header(request, "authorization") {
        Some("Bearer T") => served.answer(request),
        _ => challenge(&value),
    })
    .await;
    (image, fake)
}

#[tokio::test]
async fn anonymous_tokens() {
    // no scope in the challenge, the realm at another host, nothing asked of /v2/ or a guessed /token
    let service = tokens(|_| status(200).set_body_string(r#"{"token":"T"}"#)).await;
    let (image, fake) =
        bearer(&format!("http://{}/jwt/auth?x=1", service.host()), ",service=\"registry.example.com\"").await;
    assert_eq!(resolve(&fake, &Given::none()).await.unwrap().digest, image.digest());
    let asked = service.received().await;
    assert_eq!(asked.len(), 1, "one token serves HEAD and GETs");
    assert_eq!(asked[0].url.path(), "/jwt/auth");
    assert_eq!(asked[0].url.query(), Some("x=1&service=registry.example.com&scope=repository%3Ateam%2Fapp%3Apull"));
    assert_eq!(header(&asked[0], "authorization"), None);
    assert_eq!(fake.log().await[..2], ["HEAD /v2/team/app/manifests/1", "HEAD /v2/team/app/manifests/1"]);
}

#[tokio::test]
async fn scopes_are_passed_through() {
    // "aws" is not a type:name:action
    let service = tokens(|_| status(200).set_body_string(r#"{"token":"T"}"#)).await;
    let (_, fake) =
        bearer(&format!("http://{}/token/", service.host()), ",service=\"public.example.com\",scope=\"aws\"").await;
    resolve(&fake, &Given::none()).await.unwrap();
    let query = service.received().await[0].url.query().unwrap().to_owned();
    assert!(query.contains("scope=aws&scope=repository%3Ateam%2Fapp%3Apull"), "{query}");
}

#[tokio::test]
async fn tokens_are_shared_and_renewed() {
    // a token that is refused is asked for again; 20 tags of one repository share one
    let round = Arc::new(AtomicUsize::new(0));
    let issued = round.clone();
    let service =
        tokens(move |_| status(200).set_body_string(format!(r#"{{"token":"T{}"}}"#, issued.load(Ordering::SeqCst))))
            .await;
    let image = Image::new();
    let (served, wanted) = (image.clone(), round.clone());
    let realm = format!("Bearer realm=\"http://{}/token\"", service.host());
    let fake = Fake::new(move |request| {
        let expected = format!("Bearer T{}", wanted.load(Ordering::SeqCst));
        if header(request, "authorization") == Some(&expected) { served.answer(request) } else { challenge(&realm) }
    })
    .await;
    let client = client(&plain(&[&fake]));
    let digest = image.digest();
    let all = || (0..20).map(|tag| request(&format!("{}/team/app:{tag}", fake.host()), Some(&digest))).collect();
    assert!(client.resolve_all(all(), &Given::none()).await.values().all(Result::is_ok));
    assert_eq!(service.log().await.len(), 1);
    // Now the token is known: no challenge is needed.
    let before = fake.log().await.len();
    assert!(client.resolve_all(all(), &Given::none()).await.values().all(Result::is_ok));
    assert_eq!(fake.log().await.len() - before, 20);
    round.store(1, Ordering::SeqCst);
    assert!(client.resolve_all(all(), &Given::none()).await.values().all(Result::is_ok));
    assert_eq!(service.log().await.len(), 2);
}

#[tokio::test]
async fn basic_credentials() {
    // Basic goes to the registry itself; no token service. Basic first, Bearer without realm beside it
    for values in [
        &["Basic realm=\"https://x/\",service=\"ecr.amazonaws.com\""] as &[&str],
        &["Basic"],
        &["Bearer service=\"s\"", "Basic realm=\"r\""],
    ] {
        let image = Image::new();
        let served = image.clone();
        let fake = Fake::new(move |request| match header(request, "authorization") {
            Some(sent) if sent == basic("u", CANARY) => served.answer(request),
            _ => values.iter().fold(status(401), |answer, value| answer.append_header("WWW-Authenticate", *value)),
        })
        .await;
        let given = Given::both(&keyring(&[(&fake.host(), "u", CANARY)]));
        assert_eq!(resolve(&fake, &given).await.unwrap().digest, image.digest());
        // The first request is anonymous, the others are not.
        let anonymous =
            fake.received().await.iter().filter(|request| header(request, "authorization").is_none()).count();
        assert_eq!(anonymous, 1);
    }
}

#[tokio::test]
async fn bearer_is_preferred_and_gets_the_credentials() {
    let service = tokens(|request| match header(request, "authorization") {
        Some(sent) if sent == basic("u", CANARY) => status(200).set_body_string(r#"{"access_token":"T"}"#),
        _ => status(401),
    })
    .await;
    let image = Image::new();
    let served = image.clone();
    let realm = format!("Bearer realm=\"http://{}/token\",service=\"s\"", service.host());
    let fake = Fake::new(move |request| match header(request, "authorization") {
        Some("Bearer T") => served.answer(request),
        Some(other) => panic!("{other}"),
        None => challenge("Basic realm=\"r\"").append_header("WWW-Authenticate", realm.as_str()),
    })
    .await;
    let given = Given::both(&keyring(&[(&fake.host(), "u", CANARY)]));
    assert_eq!(resolve(&fake, &given).await.unwrap().digest, image.digest());
}

#[tokio::test]
async fn identity_tokens() {
    let service = tokens(|request| {
        let form = String::from_utf8(request.body.clone()).unwrap();
        let fine = request.method.as_str() == "POST"
            && header(request, "content-type") == Some("application/x-www-form-urlencoded")
            && [
                "grant_type=refresh_token",
                "service=s",
                "scope=repository%3Ateam%2Fapp%3Apull",
                "refresh_token=R%26canary",
            ]
            .iter()
            .all(|part| form.split('&').any(|p| p == *part));
        if fine { status(200).set_body_string(r#"{"access_token":"T"}"#) } else { status(401) }
    })
    .await;
    let (image, fake) = bearer(&format!("http://{}/oauth2/token", service.host()), ",service=\"s\"").await;
    let config = format!(
        r#"{{"auths":{{"{}":{{"identitytoken":"R&canary","auth":"MDAwMDAwMDAtMDAwMC0wMDAwLTAwMDAtMDAwMDAwMDAwMDAwOg=="}}}}}}"#,
        fake.host()
    );
    let given = Given::both(&Keyring::parse_dockerconfigjson(config.as_bytes()).unwrap());
    assert_eq!(resolve(&fake, &given).await.unwrap().digest, image.digest());
}

#[tokio::test]
async fn all_matching_credentials_are_tried() {
    // in turn, on 401 and on 403
    for refusal in [401, 403] {
        let image = Image::new();
        let served = image.clone();
        let fake = Fake::new(move |request| match header(request, "authorization") {
            None => challenge("Basic"),
            Some(sent) if sent == basic("right", "x") => served.answer(request),
            Some(_) => status(refusal),
        })
        .await;
        let host = fake.host();
        let given = Given::both(&keyring(&[(&host, "right", "x"), (&format!("{host}/team"), "narrow", CANARY)]));
        assert_eq!(resolve(&fake, &given).await.unwrap().digest, image.digest(), "{refusal}");
    }
}

#[tokio::test]
async fn rotated_credentials_are_read_again_once() {
    let image = Image::new();
    let served = image.clone();
    let fake = Fake::new(move |request| match header(request, "authorization") {
        Some(sent) if sent == basic("u", "new") => served.answer(request),
        _ => challenge("Basic"),
    })
    .await;
    let of = |password| keyring(&[(&fake.host(), "u", password)]);
    let given = Given::rotated(of("old"), of("new"));
    assert_eq!(resolve(&fake, &given).await.unwrap().digest, image.digest());
    assert_eq!(*given.reads.lock().unwrap(), [false, true]);
    // A Secret that came into being meanwhile
    let given = Given::rotated(Keyring::default(), of("new"));
    assert_eq!(resolve(&fake, &given).await.unwrap().digest, image.digest());
    // Many images: still one read and one fresh read
    let given = Given::rotated(of("old"), of("older"));
    let client = client(&plain(&[&fake]));
    let all = (0..10).map(|tag| request(&format!("{}/team/app:{tag}", fake.host()), None)).collect();
    for failure in client.resolve_all(all, &given).await.into_values().map(Result::unwrap_err) {
        assert_eq!(failure.category(), Category::Credentials);
        assert!(failure.to_string().contains("invalid or expired credentials"), "{failure}");
        assert!(!failure.to_string().contains("exist"), "{failure}");
    }
    assert_eq!(*given.reads.lock().unwrap(), [false, true]);
}

#[tokio::test]
async fn refusals_say_what_is_missing() {
    let denied = || {
        Fake::new(|_| {
            challenge("Basic realm=\"r\"")
                .set_body_string(r#"{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}"#)
        })
    };
    // No credential at all
    let fake = denied().await;
    let failure = resolve(&fake, &Given::none()).await.unwrap_err();
    assert_eq!(failure.category(), Category::Credentials);
    let text = failure.to_string();
    assert!(
        text.contains("asks for credentials, and none match")
            && text.contains(&fake.host())
            && text.contains("`pullSecret`"),
        "{text}"
    );
    // One for another port, as so often
    let fake = denied().await;
    let text = resolve(&fake, &Given::both(&keyring(&[("127.0.0.1", "u", CANARY)]))).await.unwrap_err().to_string();
    assert!(text.contains("the key `127.0.0.1` does not match"), "{text}");
    // A server that repeats what it was sent
    let fake = Fake::new(|request| match header(request, "authorization") {
        Some(_) => status(403).set_body_string(format!("no user u with {CANARY}")),
        None => challenge("Basic"),
    })
    .await;
    let text = resolve(&fake, &Given::both(&keyring(&[(&fake.host(), "u", CANARY)]))).await.unwrap_err().to_string();
    assert!(text.contains("no user u with …"), "{text}");
    // no realm; nothing at all
    for (value, words) in
        [("Bearer service=\"s\"", "no realm"), ("Negotiate", "not supported"), ("", "without saying how")]
    {
        let fake = Fake::new(move |_| challenge(value)).await;
        let text = resolve(&fake, &Given::none()).await.unwrap_err().to_string();
        assert!(text.contains(words), "{text}");
    }
}

#[tokio::test]
async fn token_services_that_fail() {
    let cases = [
        // a 500 is named with its address and hinted at
        (status(500), Category::Registry, "/token failed with status 500"),
        (status(404), Category::Registry, "/token failed with status 404"),
        (status(401), Category::Credentials, "refused the credentials"),
        (status(403), Category::Credentials, "refused the credentials"),
        // decode errors do not repeat the body
        (
            status(200).set_body_string(r#"{"token":{"canary":1}}"#),
            Category::Registry,
            "without a token that can be read",
        ),
        (
            status(200).set_body_string("<html>canary 502</html>"),
            Category::Registry,
            "without a token that can be read",
        ),
    ];
    for (answer, category, words) in cases {
        let service = tokens(move |_| answer.clone()).await;
        let (_, fake) = bearer(&format!("http://{}/token", service.host()), "").await;
        let failure = resolve(&fake, &Given::both(&keyring(&[(&fake.host(), "u", CANARY)]))).await.unwrap_err();
        assert_eq!(failure.category(), category, "{failure}");
        assert!(failure.to_string().contains(words), "{failure}");
        assert!(failure.problems()[0].hint.is_some(), "{failure}");
    }
    for realm in ["ftp://127.0.0.1/token", "http://u:canary@127.0.0.1/token?canary#canary"] {
        let (_, fake) = bearer(realm, "").await;
        let text = resolve(&fake, &Given::none()).await.unwrap_err().to_string();
        assert!(text.contains("127.0.0.1/token for a token"), "{text}");
    }
    let (_, fake) = bearer("http://u:canary@[", "").await;
    let text = resolve(&fake, &Given::none()).await.unwrap_err().to_string();
    assert!(text.contains("whose address is not valid"), "{text}");
}

#[tokio::test]
async fn hints_of_the_reference_are_repeated() {
    // on 404 and 401
    for answer in [status(404), challenge("Basic")] {
        let fake = Fake::new(move |_| answer.clone()).await;
        let client = client(&plain(&[&fake]));
        let one_part = client
            .resolve(request(&format!("{}/app:1", fake.host()), None), &Given::none())
            .await
            .unwrap_err()
            .to_string();
        assert!(one_part.contains("project/repository"), "{one_part}");
    }
    // `localhost/5000/x`: the hint needs a host without a port, so nothing listens there
    let reference = "registry.invalid/5000/x:1".parse().unwrap();
    let error = super::super::error::RegistryError::new(super::super::error::Kind::NotFound, "registry.invalid", "404");
    let problem = error.into_problem(&reference, &[], None);
    assert!(problem.to_string().contains("did you mean `registry.invalid:5000`"), "{problem}");
}

#[tokio::test]
async fn redirects_leave_credentials_behind() {
    // Another host gets nothing; its challenge is not answered
    let image = Image::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (served, sent) = (image.clone(), seen.clone());
    let other = Fake::new(move |request| {
        sent.lock().unwrap().push(header(request, "authorization").map(str::to_owned));
        if request.url.path().contains("/closed/") { challenge("Basic") } else { served.answer(request) }
    })
    .await;
    let target = other.host();
    let fake = Fake::new(move |request| match header(request, "authorization") {
        None => challenge("Basic"),
        Some(_) => status(307).append_header("Location", format!("http://{target}{}", request.url.path())),
    })
    .await;
    let given = Given::both(&keyring(&[(&fake.host(), "u", CANARY), (&other.host(), "other", CANARY)]));
    assert_eq!(resolve(&fake, &given).await.unwrap().digest, image.digest());
    let client = client(&plain(&[&fake]));
    // The redirect's target asks for credentials.
    let failure = client.resolve(request(&format!("{}/closed/app:1", fake.host()), None), &given).await.unwrap_err();
    assert_eq!(failure.category(), Category::Credentials, "{failure}");
    let seen = seen.lock().unwrap();
    assert!(seen.len() > 3 && seen.iter().all(Option::is_none), "{seen:?}");
}

#[tokio::test]
async fn a_redirects_target_gets_no_credentials_by_its_own_challenge() {
    // The registry sends on at once, and the target names a token service of its own: that one is not asked.
    let service = tokens(|_| status(200).set_body_string(r#"{"token":"T"}"#)).await;
    let (_, other) = bearer(&format!("http://{}/token", service.host()), "").await;
    let target = other.host();
    let fake = Fake::new(move |request| {
        status(307).append_header("Location", format!("http://{target}{}", request.url.path()))
    })
    .await;
    let failure = resolve(&fake, &Given::both(&keyring(&[(&fake.host(), "u", CANARY)]))).await.unwrap_err();
    assert_eq!(failure.category(), Category::Credentials, "{failure}");
    assert!(failure.to_string().contains("not sent there"), "{failure}");
    assert!(service.log().await.is_empty());
}

#[tokio::test]
async fn a_pull_secret_that_the_nodes_cannot_use_is_no_reason_to_stop_but_is_said() {
    let image = Image::new();
    let fake = Fake::with(&image).await;
    let of = |exists, entries: &[(&str, &str, &str)]| {
        let mut keyring = keyring(entries);
        keyring.note_secret("Secret/ns/pull", exists);
        keyring
    };
    let host = fake.host();
    let no_key = format!("Secret/ns/pull has no key for `{host}/team/app`");
    for (keyring, expected) in [
        (of(false, &[]), Some("the pull secret Secret/ns/pull does not exist")),
        (of(true, &[("quay.io", "u", CANARY)]), Some(no_key.as_str())),
        (of(true, &[(&host, "u", CANARY)]), None),
        // Not read from a Secret: nothing is known of it.
        (Keyring::default(), None),
    ] {
        let mut request = request(&format!("{host}/team/app:1"), None);
        let names = vec!["pull".to_owned()];
        request.lookup.credentials = CredentialSource::Secrets { namespace: "ns".to_owned(), names };
        let answer = client(&plain(&[&fake])).resolve(request, &Given::both(&keyring)).await.unwrap();
        assert_eq!(answer.digest, image.digest());
        let said: Vec<String> = answer.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(said.len(), usize::from(expected.is_some()), "{said:?}");
        for text in said {
            let command = format!("--namespace ns create secret docker-registry pull --docker-server={host}");
            assert!(text.contains(expected.unwrap()) && text.contains(&command) && !text.contains(CANARY), "{text}");
        }
    }
}

#[tokio::test]
async fn what_another_host_says_after_a_redirect_is_not_shown() {
    for code in [401, 403, 404, 500] {
        let other = Fake::new(move |_| status(code).set_body_string("inner-words")).await;
        let target = other.host();
        let fake = Fake::new(move |_| status(301).append_header("Location", format!("http://{target}/v2/x?y=z"))).await;
        let text = resolve(&fake, &Given::none()).await.unwrap_err().to_string();
        assert!(!text.contains("inner-words") && !text.contains("y=z"), "{text}");
        // but where it went
        assert!(text.contains(&format!("http://{}/v2/x", other.host())), "{text}");
    }
}

#[tokio::test]
async fn a_registry_leads_no_further_into_the_network_than_it_is_itself() {
    // On this machine: to private networks it may lead, to the metadata service of a cloud not.
    let inside = "http://169.254.169.254/latest/meta-data/";
    let redirecting = Fake::new(move |_| status(307).append_header("Location", inside)).await;
    let (_, naming) = bearer(inside, "").await;
    for fake in [redirecting, naming] {
        let text = resolve(&fake, &Given::none()).await.unwrap_err().to_string();
        assert!(text.contains("169.254.169.254") && text.contains("private network"), "{text}");
    }
}
