//! Which digest is taken, and how it is made sure of.

use serde_json::json;
use wiremock::ResponseTemplate;

use super::support::{
    Fake, Given, INDEX, Image, MANIFEST, client, header, manifest, not_found, plain, request, resolve, resolve_known,
    status,
};
use crate::model::{digest::Digest, failure::Category, resolution::ContentKind};

const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";

#[tokio::test]
async fn an_index_is_locked_with_its_platforms() {
    // the index, not a child; an attestation is not a platform
    let image = Image::new();
    let fake = Fake::with(&image).await;
    let resolved = resolve(&fake, &Given::none()).await.unwrap();
    assert_eq!(resolved.digest, image.digest());
    assert_eq!(resolved.media_type, INDEX);
    let platforms: Vec<_> =
        resolved.platforms.unwrap().iter().map(|p| (p.platform.to_string(), p.size, p.digest.clone())).collect();
    let expected = |at: usize, name: &str, size| (name.to_owned(), Some(size), Digest::sha256(&image.manifests[at]));
    assert_eq!(platforms, [expected(0, "linux/amd64", 1120), expected(1, "linux/arm64", 2120)]);
    assert_eq!(
        fake.log().await[..2],
        ["HEAD /v2/team/app/manifests/1".to_owned(), format!("GET /v2/team/app/manifests/{}", image.digest())]
    );
    for request in fake.received().await {
        // one Accept list for HEAD and GET; no compression
        let accept = header(&request, "accept").unwrap();
        assert!(accept.contains(INDEX) && accept.contains(MANIFEST) && accept.contains(DOCKER_LIST), "{accept}");
        assert_eq!(header(&request, "accept-encoding"), Some("identity"));
        assert!(header(&request, "user-agent").unwrap().starts_with("larder/"));
    }
}

#[tokio::test]
async fn a_known_digest_costs_one_head() {
    let image = Image::new();
    let fake = Fake::with(&image).await;
    let resolved = resolve_known(&fake, &Given::none(), Some(&image.digest())).await.unwrap();
    assert_eq!((resolved.digest, resolved.platforms), (image.digest(), None));
    assert_eq!(fake.log().await, ["HEAD /v2/team/app/manifests/1"]);
}

#[tokio::test]
async fn the_same_question_is_asked_once() {
    let image = Image::new();
    let fake = Fake::with(&image).await;
    let client = client(&plain(&[&fake]));
    let ask = |known| request(&format!("{}/team/app", fake.host()), known);
    let known = image.digest();
    let resolution =
        client.resolve_all(vec![ask(Some(&known)), ask(Some(&known)), ask(Some(&known))], &Given::none()).await;
    assert_eq!(resolution.len(), 1);
    assert_eq!(fake.log().await.len(), 1);
    assert_eq!(client.request_counts()[&(fake.host(), "HEAD")], 1);
    // One of them knows nothing: the whole answer is fetched, once.
    let resolution = client.resolve_all(vec![ask(Some(&known)), ask(None), ask(Some(&known))], &Given::none()).await;
    assert!(resolution.into_values().next().unwrap().unwrap().platforms.is_some());
    assert_eq!(fake.count("HEAD").await, 2);
}

#[tokio::test]
async fn a_digest_in_the_reference_is_the_answer() {
    // no look-up of the tag
    let image = Image::new();
    let digest = image.digest();
    let fake = Fake::with(&image).await;
    let client = client(&plain(&[&fake]));
    let reference = format!("{}/team/app:1@{digest}", fake.host());
    let resolved = client.resolve(request(&reference, Some(&digest)), &Given::none()).await.unwrap();
    assert_eq!((resolved.digest, resolved.platforms), (digest.clone(), None));
    assert_eq!(fake.log().await, [format!("HEAD /v2/team/app/manifests/{digest}")]);
    let resolved = client.resolve(request(&reference, None), &Given::none()).await.unwrap();
    assert_eq!((resolved.digest, resolved.platforms.unwrap().len()), (digest, 2));
    // One that does not exist
    let missing = format!("{}/team/app@{}", fake.host(), Digest::sha256(b"?"));
    let failure = client.resolve(request(&missing, None), &Given::none()).await.unwrap_err();
    assert!(failure.to_string().contains("does not exist"), "{failure}");
}

#[tokio::test]
async fn sha512_is_verified() {
    let image = Image::new();
    let digest = super::super::manifest::digest_like(
        Some(&format!("sha512:{}", "0".repeat(128)).parse().unwrap()),
        &image.index,
    );
    let served = image.clone();
    let fake = Fake::new(move |request| match request.url.path().contains("sha512:") {
        true => status(200).set_body_raw(served.index.clone(), INDEX),
        false => served.answer(request),
    })
    .await;
    let client = client(&plain(&[&fake]));
    let resolved = client.resolve(request(&format!("{}/a@{digest}", fake.host()), None), &Given::none()).await.unwrap();
    assert_eq!(resolved.digest, digest);
    let wrong = format!("{}/a@sha512:{}", fake.host(), "0".repeat(128));
    let failure = client.resolve(request(&wrong, None), &Given::none()).await.unwrap_err().to_string();
    assert!(failure.contains(digest.as_str()) && failure.contains(&"0".repeat(128)), "{failure}");
}

/// The image, but with these digest headers on HEAD and GET alike.
async fn with_headers(values: &'static [&'static str]) -> (Image, Fake) {
    let image = Image::new();
    let served = image.clone();
    let fake = Fake::new(move |request| {
        let mut answer = match request.url.path().ends_with("/1") {
            true => status(200).set_body_raw(served.index.clone(), INDEX),
            false => return served.answer(request),
        };
        for value in values {
            answer = answer.append_header("Docker-Content-Digest", *value);
        }
        answer
    })
    .await;
    (image, fake)
}

#[tokio::test]
async fn without_a_usable_header_the_bytes_are_hashed() {
    // missing, without prefix, too short, empty, upper case, two that differ
    const A: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
    const UPPER: &str = "sha256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let cases: [&[&str]; 6] = [
        &[],
        &["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"],
        &["sha256:abc"],
        &[""],
        &[UPPER],
        &[A, B],
    ];
    for values in cases {
        let (image, fake) = with_headers(values).await;
        let resolved = resolve(&fake, &Given::none()).await.unwrap();
        assert_eq!(resolved.digest, image.digest(), "{values:?}");
        assert_eq!(
            fake.log().await[..2],
            ["HEAD /v2/team/app/manifests/1", "GET /v2/team/app/manifests/1"],
            "{values:?}"
        );
        // Known: the GET is all that is asked.
        let (image, fake) = with_headers(values).await;
        let resolved = resolve_known(&fake, &Given::none(), Some(&image.digest())).await.unwrap();
        assert_eq!((resolved.platforms, fake.log().await.len()), (None, 2), "{values:?}");
    }
}

#[tokio::test]
async fn a_wrong_header_is_an_error() {
    // header and bytes differ, both are named
    const OTHER: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    let image = Image::new();
    let served = image.clone();
    let fake = Fake::new(move |_| {
        status(200).set_body_raw(served.index.clone(), INDEX).append_header("Docker-Content-Digest", OTHER)
    })
    .await;
    let failure = resolve(&fake, &Given::none()).await.unwrap_err().to_string();
    assert!(failure.contains(OTHER) && failure.contains(image.digest().as_str()), "{failure}");
}

#[tokio::test]
async fn a_get_decides_where_head_fails() {
    // 400, 403, 404 and 405 on HEAD
    for code in [400, 403, 404, 405] {
        let image = Image::new();
        let served = image.clone();
        let fake = Fake::new(move |request| match request.method.as_str() {
            "HEAD" => status(code),
            _ => served.answer(request),
        })
        .await;
        assert_eq!(resolve(&fake, &Given::none()).await.unwrap().digest, image.digest(), "{code}");
    }
    // Missing is an error, never "unchanged", known or not
    let fake = Fake::new(|_| not_found()).await;
    let failure = resolve_known(&fake, &Given::none(), Some(&Image::new().digest())).await.unwrap_err();
    assert!(
        failure.to_string().contains("does not exist") && failure.to_string().contains("MANIFEST_UNKNOWN"),
        "{failure}"
    );
    assert_eq!(failure.category(), Category::Registry);
    assert_eq!(fake.log().await, ["HEAD /v2/team/app/manifests/1", "GET /v2/team/app/manifests/1"]);
}

#[tokio::test]
async fn a_single_manifest_has_its_platform_in_its_configuration() {
    // the manifest's digest, not the configuration's
    let image = Image::new();
    let served = image.clone();
    let fake = Fake::new(move |request| match request.url.path().ends_with("/1") {
        true => manifest(&served.manifests[0], MANIFEST),
        false => served.answer(request),
    })
    .await;
    let resolved = resolve(&fake, &Given::none()).await.unwrap();
    let digest = Digest::sha256(&image.manifests[0]);
    assert_eq!((&resolved.digest, resolved.media_type.as_str()), (&digest, MANIFEST));
    let platforms = resolved.platforms.unwrap();
    assert_eq!(platforms.len(), 1);
    assert_eq!(
        (platforms[0].platform.to_string().as_str(), platforms[0].size, &platforms[0].digest),
        ("linux/amd64", Some(1120), &digest)
    );
}

async fn body(bytes: Vec<u8>, kind: &'static str) -> Result<super::support::Found, String> {
    let image = Image::new();
    let digest = Digest::sha256(&bytes);
    let is_it = move |path: &str| path.ends_with("/1") || path.ends_with(digest.as_str());
    let fake = Fake::new(move |request| match is_it(request.url.path()) {
        true => ResponseTemplate::new(200).set_body_raw(bytes.clone(), kind),
        false => image.answer(request),
    })
    .await;
    resolve(&fake, &Given::none()).await.map_err(|failure| failure.to_string())
}

#[tokio::test]
async fn odd_manifests() {
    let image = Image::new();
    let json = |value: serde_json::Value| serde_json::to_vec(&value).unwrap();
    let child = |extra: serde_json::Value| {
        let mut entry = json!({"mediaType": MANIFEST, "digest": Digest::sha256(&image.manifests[0]), "size": 1});
        entry.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        json(json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]}))
    };
    // the header's type does not matter where the body has one
    for kind in ["application/json", "text/plain", MANIFEST, "application/vnd.oci.image.index.v1+json; charset=utf-8"] {
        let resolved = body(image.index.clone(), kind).await.unwrap();
        assert_eq!((resolved.digest, resolved.media_type.as_str()), (image.digest(), INDEX), "{kind}");
    }
    // A docker list stays one
    let list = json(json!({"schemaVersion": 2, "manifests": []}));
    let resolved = body(list, DOCKER_LIST).await.unwrap();
    assert_eq!((resolved.media_type.as_str(), resolved.platforms), (DOCKER_LIST, Some(vec![])));
    // nothing but attestations, nothing at all, null: no platform, for anyone who demands one to refuse
    for entries in [
        json!([]),
        json!(null),
        json!([{"mediaType": MANIFEST, "digest": Digest::sha256(b"x"), "size": 1, "platform": {"os": "unknown", "architecture": "unknown"}}]),
    ] {
        let resolved =
            body(json(json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries})), INDEX).await.unwrap();
        assert_eq!(resolved.platforms, Some(vec![]));
    }
    // an entry without a platform has it in its configuration
    let resolved = body(child(json!({})), INDEX).await.unwrap();
    assert_eq!(resolved.platforms.unwrap()[0].platform.to_string(), "linux/amd64");
    let resolved =
        body(child(json!({"platform": {"os": "linux", "architecture": "arm", "variant": "v7"}})), INDEX).await.unwrap();
    assert_eq!(resolved.platforms.unwrap()[0].platform.to_string(), "linux/arm/v7");
    // A platform that the registry does not have (sparse copies) is known without its size
    let sparse = json(json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [
        {"mediaType": MANIFEST, "digest": Digest::sha256(b"gone"), "size": 1, "platform": {"os": "linux", "architecture": "s390x"}}]}));
    let platforms = body(sparse, INDEX).await.unwrap().platforms.unwrap();
    assert_eq!((platforms[0].platform.to_string(), platforms[0].size), ("linux/s390x".to_owned(), None));
    for (bytes, expected) in [
        (b"<html>login</html>".to_vec(), "not a manifest"),
        (b"".to_vec(), "not a manifest"),
        (b"[]".to_vec(), "not a manifest"),
        (image.index[..100].to_vec(), "not a manifest"),
        (b"{}".to_vec(), "neither"),
        (json(json!({"schemaVersion": 1, "fsLayers": []})), "schema 1"),
        (
            json(json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": vec![json!({}); 129]})),
            "more than 128 entries",
        ),
        (json(json!({"schemaVersion": 2, "config": {}, "layers": vec![json!({}); 1025]})), "more than 1024 layers"),
        // over 4 MiB
        (vec![b' '; (4 << 20) + 1], "larger than"),
    ] {
        let failure = body(bytes, INDEX).await.unwrap_err();
        assert!(failure.contains(expected), "{failure}");
    }
}

#[tokio::test]
async fn compressed_answers_are_refused() {
    let image = Image::new();
    let fake = Fake::new(move |request| image.answer(request).append_header("Content-Encoding", "gzip")).await;
    let failure = resolve(&fake, &Given::none()).await.unwrap_err().to_string();
    assert!(failure.contains("compressed"), "{failure}");
}

#[tokio::test]
async fn what_no_container_can_be_started_from_is_named() {
    let json = |value: serde_json::Value| serde_json::to_vec(&value).unwrap();
    let manifest = |config: &str, layer: &str, more: serde_json::Value| {
        let mut manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": {"mediaType": config, "digest": Digest::sha256(b"{}"), "size": 2},
            "layers": [{"mediaType": layer, "digest": Digest::sha256(b"l"), "size": 2}],
        });
        manifest.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json(manifest)
    };
    let (config, layer) = ("application/vnd.oci.image.config.v1+json", "application/vnd.oci.image.layer.v1.tar");
    for (bytes, expected) in [
        (
            manifest(
                "application/vnd.cncf.helm.config.v1+json",
                "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
                json!({}),
            ),
            "a Helm chart",
        ),
        (manifest("application/vnd.docker.plugin.v1+json", layer, json!({})), "a Docker plugin"),
        (manifest(config, "application/vnd.dev.cosign.simplesigning.v1+json", json!({})), "a cosign signature"),
        (manifest(config, "application/vnd.in-toto+json", json!({})), "an attestation"),
        (
            manifest(
                "application/vnd.oci.empty.v1+json",
                "application/x",
                json!({"artifactType": "application/vnd.x"}),
            ),
            "an OCI artifact of the type `application/vnd.x`",
        ),
    ] {
        let found = body(bytes, MANIFEST).await.unwrap();
        assert_eq!(found.kind, Some(ContentKind::Artifact(expected.to_owned())));
        assert_eq!(found.platforms, Some(vec![]));
    }
    assert_eq!(body(Image::new().index, INDEX).await.unwrap().kind, Some(ContentKind::Image));
}

#[tokio::test]
async fn indexes_in_indexes_are_read_to_the_third_level() {
    let image = Image::new();
    let amd64 = json!({"os": "linux", "architecture": "amd64"});
    // Each level holds the one below it for linux/amd64; the first is the image's own index.
    let mut levels = vec![image.index.clone()];
    for _ in 0..3 {
        let inner = levels.last().unwrap();
        let entry =
            json!({"mediaType": INDEX, "digest": Digest::sha256(inner), "size": inner.len(), "platform": amd64});
        levels
            .push(serde_json::to_vec(&json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]})).unwrap());
    }
    let served = levels.clone();
    let inner = image.clone();
    let fake = Fake::new(move |request| {
        let name = request.url.path().rsplit('/').next().unwrap();
        match (served.iter().find(|bytes| Digest::sha256(bytes).as_str() == name), name.parse::<usize>()) {
            (Some(bytes), _) => manifest(bytes, INDEX),
            (None, Ok(level)) => manifest(&served[level], INDEX),
            _ => inner.answer(request),
        }
    })
    .await;
    let client = client(&plain(&[&fake]));
    for (level, expected) in
        [(0, vec![Some(1120), Some(2120)]), (1, vec![Some(1120), Some(2120)]), (2, vec![Some(1120), Some(2120)])]
    {
        let found = client.resolve(request(&format!("{}/a:{level}", fake.host()), None), &Given::none()).await.unwrap();
        let sizes: Vec<_> = found.platforms.unwrap().into_iter().map(|found| found.size).collect();
        assert_eq!(sizes, expected, "{level}");
    }
    // Deeper than that, platforms are known without their sizes.
    let found = client.resolve(request(&format!("{}/a:3", fake.host()), None), &Given::none()).await.unwrap();
    let platforms = found.platforms.unwrap();
    assert_eq!(
        (platforms.len(), platforms[0].platform.to_string(), platforms[0].size),
        (2, "linux/amd64".to_owned(), None)
    );
}
