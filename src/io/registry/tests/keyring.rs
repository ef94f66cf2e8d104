//! Docker configs and Secrets, and the kubelet's matching.

use super::support::keyring;
use crate::{
    io::registry::{Credential, Keyring},
    model::{failure::Problem, reference::ImageReference},
};

fn image(text: &str) -> ImageReference {
    text.parse().unwrap()
}

#[test]
fn keys_match_by_the_kubelets_rule() {
    let cases = [
        ("*.example.com", "a.example.com/x", true),
        ("*.example.com", "example.com/x", false),
        ("*.example.com", "a.b.example.com/x", false),
        ("*.*.example.com", "a.example.com/x", false),
        ("a.*.com", "a.example.com/x", true),
        ("*-good.example.com", "very-good.example.com/x", true),
        ("a.example.*", "a.example.com/x", true),
        ("e*.com", "quay.com/x", false),
        ("a*b*c.example.com", "a1b2c.example.com/x", true),
        ("a*b*c.example.com", "abd.example.com/x", false),
        ("a*a.example.com", "a.example.com/x", false),
        ("a.example.com:8443", "a.example.com:8443/x", true),
        ("a.example.com", "a.example.com:8443/x", false),
        ("a.example.com:8443", "a.example.com:9443/x", false),
        ("a.example.com:443", "a.example.com/x", false),
        ("*.example.com:1111/blah", "a.example.com:1111/blah/x", true),
        ("a.example.com/team", "a.example.com/team/x", true),
        // the prefix is textual
        ("a.example.com/team", "a.example.com/teams/x", true),
        ("a.example.com/team/", "a.example.com/teams/x", false),
        ("a.example.com/other", "a.example.com/team/x", false),
        ("*.io/foo", "x.io/foo/bar", true),
        ("https://*.docker.io/v1/", "x.docker.io/any/path", true),
        ("https://*.docker.io/v2/", "x.docker.io/any/path", true),
        // Docker Hub's aliases, and nothing else for it
        ("https://index.docker.io/v1/", "busybox", true),
        ("https://index.docker.io/v1/", "team/app", true),
        ("https://index.docker.io/v1/", "index.docker.io/team/app", true),
        ("https://index.docker.io", "busybox", true),
        ("index.docker.io", "docker.io/team/app", true),
        ("docker.io", "busybox", true),
        ("https://docker.io", "team/app", true),
        ("https://index.docker.io/v1/", "registry.example.com/a", false),
        ("https://index.docker.io/v1/", "registry:5000/foo", false),
        ("https://index.docker.io/v1/", "registry.tld/foo/bar", false),
        ("https://index.docker.io/v1/", "myhostdocker.io/a", false),
        ("docker.io", "myhostdocker.io/a", false),
        ("docker.io", "quay.io/a", false),
        // with or without scheme and version
        ("registry.example.com", "registry.example.com/a", true),
        ("registry.example.com/", "registry.example.com/a", true),
        ("https://registry.example.com", "registry.example.com/a", true),
        ("http://registry.example.com", "registry.example.com/a", true),
        ("https://registry.example.com/v1/", "registry.example.com/a", true),
        ("https://registry.example.com/v2/", "registry.example.com/a", true),
        ("https://registry.example.com/v2/team", "registry.example.com/team/a", true),
        ("registry.example.com", "registry.example.com.evil.net/a", false),
        ("registry.example.com", "evil-registry.example.com/a", false),
        ("*", "registry/a", false),
        ("*:5000", "registry:5000/a", true),
        ("", "registry.example.com/a", false),
        ("ftp://registry.example.com", "registry.example.com/a", false),
        ("registry example com", "registry.example.com/a", false),
        ("[::1]:5000", "[::1]:5000/a", true),
    ];
    for (key, reference, expected) in cases {
        let ring = keyring(&[(key, "u", "p")]);
        assert_eq!(ring.matches(&image(reference)), expected, "{key} {reference}");
        assert_eq!(ring.matching(&image(reference)).len(), usize::from(expected), "{key} {reference}");
    }
}

#[test]
fn the_most_specific_key_is_first() {
    let mut ring = keyring(&[
        ("h.io", "host", ""),
        ("h.io/team", "team", ""),
        ("*.io", "glob", ""),
        ("h.io/team/app", "app", ""),
        ("x.io", "x", ""),
    ]);
    ring.merge(keyring(&[("h.io/team", "second", "")]));
    let found = ring.matching(&image("h.io/team/app:1"));
    let users: Vec<&str> = found.iter().map(|credential| credential.username.as_str()).collect();
    assert_eq!(users, ["app", "team", "second", "host", "glob"]);
    // Docker Hub's own key only where nothing else matched
    let ring = keyring(&[("https://index.docker.io/v1/", "hub", ""), ("docker.io/team", "team", "")]);
    let user =
        |reference: &str| ring.matching(&image(reference)).iter().map(|c| c.username.clone()).collect::<Vec<_>>();
    assert_eq!(user("team/app"), ["team"]);
    assert_eq!(user("other/app"), ["hub"]);
}

#[test]
fn docker_configs() {
    // user `u`, password `p:w`
    let cases: [(&str, Option<(&str, &str)>); 13] = [
        (r#"{"auths":{"registry.example.com":{"auth":"dTpwOnc="}}}"#, Some(("u", "p:w"))),
        (r#"{"auths":{"https://registry.example.com":{"username":"u","password":"p:w"}}}"#, Some(("u", "p:w"))),
        (
            r#"{"auths":{"https://registry.example.com/v2/":{"auth":"dTpwOnc=","email":"x@example.com"}}}"#,
            Some(("u", "p:w")),
        ),
        (r#"{"auths":{"registry.example.com":{"auth":"","username":"u","password":"p:w"}}}"#, Some(("u", "p:w"))),
        (r#"{"auths":{"registry.example.com":{}}}"#, None),
        (r#"{"auths":{"registry.example.com":null}}"#, None),
        (r#"{"auths":{"registry.example.com":{"auth":"dTpwOnc"}}}"#, Some(("u", "p:w"))),
        (r#"{"auths":{"registry.example.com":{"auth":"dTpwOnc=\n"}}}"#, Some(("u", "p:w"))),
        (
            r#"{"credsStore":"desktop","credHelpers":{"*.example.com":"ecr-login"},"auths":{"registry.example.com":{"auth":"dTpwOnc="}}}"#,
            Some(("u", "p:w")),
        ),
        (r#"{"auths":null}"#, None),
        ("{}", None),
        ("{}\n", None),
        (r#"{"auths":{"registry.example.com:443":{"auth":"dTpwOnc="}}}"#, None),
    ];
    for (text, expected) in cases {
        let ring = Keyring::parse_dockerconfigjson(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"));
        let reference = image("registry.example.com/a");
        let found: Vec<_> =
            ring.matching(&reference).into_iter().map(|c| (c.username.as_str(), c.password.as_str())).collect();
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{text}");
    }
    // legacy, without the wrapper
    let ring = Keyring::parse_dockercfg(br#"{"registry.example.com":{"auth":"dTpwOnc="}}"#).unwrap();
    assert_eq!(ring.matching(&image("registry.example.com/a")), [&Credential::basic("u", "p:w")]);
}

#[test]
fn broken_docker_configs_are_named_without_their_values() {
    let cases: [(&[u8], &str); 14] = [
        (b"[]", "object"),
        (b"\"canary\"", "object"),
        (b"canary", "no JSON"),
        (b"", "no JSON"),
        (b"{\"auths\":{\"h\":{\"auth\":\"canary", "no JSON"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        (b"eyJhdXRocyI6e319", "encoded twice"),
        (b"eyJhdXRocyI6e319\n", "encoded twice"),
        (br#"{"auths":[]}"#, "`auths`"),
        (br#"{"auths":"canary"}"#, "`auths`"),
        (br#"{"auths":{"registry.example.com":"canary"}}"#, "registry.example.com"),
        (br#"{"auths":{"registry.example.com":{"auth":"canary!"}}}"#, "registry.example.com"),
        (br#"{"auths":{"registry.example.com":{"auth":"Y2FuYXJ5"}}}"#, "registry.example.com"),
        (br#"{"auths":{"registry.example.com":{"password":["canary"]}}}"#, "registry.example.com.password"),
    ];
    for (bytes, words) in cases {
        let error = Keyring::parse_dockerconfigjson(bytes).unwrap_err();
        let text = format!("{error} {error:?} {}", Problem::from(error.clone()));
        assert!(text.contains(words), "{text}");
        assert!(!text.contains("canary") && !text.contains("Y2FuYXJ5"), "{text}");
    }
    // The two types mixed up
    let error = Keyring::parse_dockercfg(br#"{"auths":{"h.example.com":{"auth":"dTpwOnc="}}}"#).unwrap_err();
    assert!(Problem::from(error).to_string().contains("kubernetes.io/dockerconfigjson"));
    let ring = Keyring::parse_dockerconfigjson(br#"{"h.example.com":{"auth":"dTpwOnc="}}"#).unwrap();
    assert!(ring.is_empty() && ring.warnings()[0].contains("legacy"), "{:?}", ring.warnings());
}

#[test]
fn helpers_are_one_warning() {
    let ring = Keyring::parse_dockerconfigjson(
        br#"{"credsStore":"desktop","credHelpers":{"a.example.com":"ecr-login","b.example.com":"gcr"},"auths":{"h.example.com":{"auth":"dTpwOnc="}}}"#,
    )
    .unwrap();
    assert_eq!(ring.warnings().len(), 1);
    assert!(ring.matches(&image("h.example.com/x")));
    // what the nodes cannot use is said
    let ring = Keyring::parse_dockerconfigjson(br#"{"auths":{"h.example.com":{"identitytoken":"canary"}}}"#).unwrap();
    assert!(ring.matches(&image("h.example.com/x")) && ring.warnings()[0].contains("kubelet"));
    assert!(!format!("{ring:?} {:?}", ring.warnings()).contains("canary"));
}

#[test]
fn a_login_that_is_written_twice_and_differs_is_said() {
    // dTpwOnc= is u:p:w
    for (entry, warned) in [
        (r#"{"auth":"dTpwOnc=","username":"u","password":"p:w"}"#, false),
        (r#"{"auth":"dTpwOnc=","username":"u"}"#, false),
        (r#"{"auth":"dTpwOnc=","username":"canary"}"#, true),
        (r#"{"auth":"dTpwOnc=","username":"u","password":"canary"}"#, true),
    ] {
        let config = format!(r#"{{"auths":{{"h.example.com":{entry}}}}}"#);
        let ring = Keyring::parse_dockerconfigjson(config.as_bytes()).unwrap();
        assert_eq!(ring.warnings().len(), usize::from(warned), "{entry}");
        assert!(ring.warnings().iter().all(|text| text.contains("h.example.com") && !text.contains("canary")));
        assert_eq!(ring.matching(&image("h.example.com/x")), [&Credential::basic("u", "p:w")]);
    }
}

#[test]
fn near_misses_are_explained() {
    let said = |config: &str, reference: &str| {
        Keyring::parse_dockerconfigjson(config.as_bytes()).unwrap().near_miss(&image(reference)).unwrap_or_default()
    };
    let entry = |key: &str| format!(r#"{{"auths":{{"{key}":{{"auth":"dTpwOnc="}}}}}}"#);
    assert!(said(&entry("registry.example.com:443"), "registry.example.com/a").contains("no port is not 443"));
    assert!(said(&entry("registry.example.com/v2"), "registry.example.com/a").contains("`registry.example.com/v2`"));
    assert!(said(&entry("registry.example.com/other"), "registry.example.com/a").contains("prefix"));
    assert!(said(&entry("registry-1.docker.io"), "busybox").contains("registry-1.docker.io"));
    assert!(said(r#"{"credHelpers":{"registry.example.com":"x"}}"#, "registry.example.com/a").contains("helper"));
    assert!(said(r#"{"credsStore":"x"}"#, "registry.example.com/a").contains("helper"));
    assert_eq!(said(&entry("quay.io"), "registry.example.com/a"), "");
}

#[test]
fn debug_hides_values() {
    let ring = keyring(&[("registry.example.com", "canary-user", "canary-password")]);
    let text = format!("{ring:?} {:?} {:?}", ring.matching(&image("registry.example.com/a")), ring.warnings());
    assert!(text.contains("registry.example.com") && !text.contains("canary"), "{text}");
}
